//! Helpers of the tests: a system that checks for leaks at its end, and a pager for files.

use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::{BoxFuture, DataRequest, DataReturn, Pager, Vm, VmMap, VmStatistics};
use crate::machine::simulated::Simulated;
use crate::machine::{Machine, PAGE_SIZE, Protection};
use crate::{KernError, KernResult};

pub(super) const BASE: u64 = 0x40_0000;

/// A machine and its memory system. When it is dropped, all memory must have been given back.
pub(super) struct System {
    pub(super) machine: Simulated,
    pub(super) vm: Option<Arc<Vm<Simulated>>>,
    frames: u32,
}

impl System {
    pub(super) fn new(frames: u32) -> Self {
        let machine = Simulated::new(frames);
        let vm = Some(Vm::new(machine.clone()).unwrap());
        Self { machine, vm, frames }
    }

    pub(super) fn vm(&self) -> &Arc<Vm<Simulated>> {
        self.vm.as_ref().unwrap()
    }

    pub(super) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.machine.block_on(future)
    }

    pub(super) fn map(&self) -> Arc<VmMap<Simulated>> {
        self.run(VmMap::new(self.vm(), PAGE_SIZE, 1 << 47)).unwrap()
    }
}

impl Drop for System {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let nothing = VmStatistics { free: self.frames, ..VmStatistics::default() };
        assert_eq!(self.vm().statistics(), nothing, "frames leaked, or a count is wrong");
        self.vm = None;
        assert_eq!(self.machine.free_frames(), self.frames, "free frames not given back");
        assert_eq!(self.machine.reserved(), 0, "server memory leaked");
        assert_eq!(self.machine.pmaps(), 0, "address spaces leaked");
    }
}

/// Stores like a program: through the translation, with page faults served by the map.
pub(super) async fn store(map: &VmMap<Simulated>, address: u64, bytes: &[u8]) -> KernResult {
    let machine = map.vm().machine();
    let mut done = 0;
    while done < bytes.len() {
        let at = address + done as u64;
        let count = (bytes.len() - done).min((PAGE_SIZE - at % PAGE_SIZE) as usize);
        let written = map.with_pmap(|pmap| machine.user_write(pmap, at, &bytes[done..done + count]));
        match written.ok_or(KernError::Terminated)? {
            Some(()) => done += count,
            None => map.fault(at, Protection::WRITE).await?,
        }
    }
    Ok(())
}

/// Loads like a program: through the translation, with page faults served by the map.
pub(super) async fn load(map: &VmMap<Simulated>, address: u64, length: usize) -> KernResult<Vec<u8>> {
    let machine = map.vm().machine();
    let mut bytes = alloc::vec![0; length];
    let mut done = 0;
    while done < length {
        let at = address + done as u64;
        let count = (length - done).min((PAGE_SIZE - at % PAGE_SIZE) as usize);
        let read = map.with_pmap(|pmap| machine.user_read(pmap, at, &mut bytes[done..done + count]));
        match read.ok_or(KernError::Terminated)? {
            Some(()) => done += count,
            None => map.fault(at, Protection::READ).await?,
        }
    }
    Ok(bytes)
}

/// A file whose contents are a vector.
#[derive(Default)]
pub(super) struct FilePager {
    pub(super) contents: Mutex<Vec<u8>>,
    pub(super) requests: Mutex<Vec<(u64, usize)>>,
    pub(super) returns: Mutex<Vec<(u64, usize)>>,
    /// Whether it says that a device fills pages.
    pub(super) has_device: AtomicBool,
}

impl FilePager {
    pub(super) fn new(contents: Vec<u8>) -> Arc<Self> {
        Arc::new(Self { contents: Mutex::new(contents), ..Self::default() })
    }
}

impl Pager<Simulated> for FilePager {
    fn data_request<'a>(&'a self, request: DataRequest<'a, Simulated>) -> BoxFuture<'a, KernResult<usize>> {
        alloc::boxed::Box::pin(async move {
            self.requests.lock().unwrap().push((request.offset, request.length()));
            let contents = self.contents.lock().unwrap();
            let from = (request.offset as usize).min(contents.len());
            let to = (from + request.length()).min(contents.len());
            request.write(0, &contents[from..to]);
            Ok(to - from)
        })
    }

    fn data_return<'a>(&'a self, data: DataReturn<'a, Simulated>) -> BoxFuture<'a, KernResult> {
        alloc::boxed::Box::pin(async move {
            self.returns.lock().unwrap().push((data.offset, data.length()));
            let mut contents = self.contents.lock().unwrap();
            let end = data.offset as usize + data.length();
            if contents.len() < end {
                contents.resize(end, 0);
            }
            data.read(0, &mut contents[data.offset as usize..end]);
            Ok(())
        })
    }

    fn fills_by_device(&self) -> bool {
        self.has_device.load(Ordering::Relaxed)
    }
}
