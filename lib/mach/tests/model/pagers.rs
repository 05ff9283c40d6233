//! A pager for tests: a file in a vector, slow in the machine's virtual time.

use std::sync::{Arc, Mutex};

use mach::machine::Machine;
use mach::machine::simulated::Simulated;
use mach::vm::{BoxFuture, DataRequest, DataReturn, Pager};
use mach::{KernError, KernResult};

/// A pager for a file. It has the contents that have been written back; the page cache may have
/// newer ones.
pub(crate) struct FilePager {
    pub(crate) contents: Mutex<Vec<u8>>,
    /// The number of requests that still succeed; the next fails.
    pub(crate) fail: Mutex<Option<u32>>,
    /// How long a request takes, in microseconds.
    pub(crate) delay: u64,
}

impl FilePager {
    pub(crate) fn new(contents: Vec<u8>, delay: u64) -> Arc<Self> {
        Arc::new(Self { contents: Mutex::new(contents), fail: Mutex::new(None), delay })
    }

    fn fails(&self) -> bool {
        let mut fail = self.fail.lock().unwrap();
        match *fail {
            Some(0) => {
                *fail = None;
                true
            }
            Some(left) => {
                *fail = Some(left - 1);
                false
            }
            None => false,
        }
    }
}

impl Pager<Simulated> for FilePager {
    fn data_request<'a>(&'a self, request: DataRequest<'a, Simulated>) -> BoxFuture<'a, KernResult<usize>> {
        Box::pin(async move {
            request.machine.sleep_until(request.machine.now() + self.delay).await;
            if self.fails() {
                return Err(KernError::Failure);
            }
            let contents = self.contents.lock().unwrap();
            let from = (request.offset as usize).min(contents.len());
            let to = (from + request.length()).min(contents.len());
            request.write(0, &contents[from..to]);
            Ok(to - from)
        })
    }

    fn data_return<'a>(&'a self, data: DataReturn<'a, Simulated>) -> BoxFuture<'a, KernResult> {
        Box::pin(async move {
            data.machine.sleep_until(data.machine.now() + self.delay).await;
            if self.fails() {
                return Err(KernError::Failure);
            }
            let mut contents = self.contents.lock().unwrap();
            let from = data.offset as usize;
            let to = (from + data.length()).min(contents.len());
            if from < to {
                data.read(0, &mut contents[from..to]);
            }
            Ok(())
        })
    }
}
