//! The streams of bytes to and from the host, by the rings that the server shares with their
//! driver.

use crate::places;
use crate::report::say;
use alloc::sync::Arc;
use core::time::Duration;
use rt::root::Status;
use unix::poll::{PollQueue, Readiness, until_ready};
use unix::sync::SpinLock;
use unix::{AttemptError, Environment};
use unix_server::options::STREAMS;
use unix_server::streams::Stream;
use virtio_console::client;

/// The name of the server that drives the streams.
const NAME: &str = "streams";
/// How far the memory shared for a stream is from that for the stream before.
const NEXT_STREAM: u64 = 1 << 32;
/// How often the driver is looked at, which may have ended.
const CHECK: Duration = Duration::from_secs(1);

/// A stream, and the tasks that wait for it.
pub(crate) struct HostStream {
    ends: SpinLock<client::Stream>,
    queue: PollQueue,
}

/// The streams that the command has as its descriptors, at the indices of these.
#[derive(Clone, Default)]
pub(crate) struct Streams(pub(crate) [Option<Arc<HostStream>>; STREAMS]);

impl Streams {
    /// Opens the streams for the descriptors that are `wanted`. The calling thread must be the
    /// worker that is notified. Blocks until the driver has started.
    ///
    /// # Errors
    /// The status with which root or the driver has refused.
    pub(crate) fn open(wanted: [bool; STREAMS]) -> Result<Streams, Status> {
        let mut streams = Streams::default();
        for (number, stream) in (0u32..).zip(&mut streams.0) {
            if wanted[number as usize] {
                // The first port of the device is for a console.
                let (port, area) = (number + 1, places::STREAMS + u64::from(number) * NEXT_STREAM);
                let ends = client::open(NAME, port, area, l4::utcb::my_global_id(), places::STREAM_NEWS)?;
                *stream = Some(Arc::new(HostStream { ends: SpinLock::new(ends), queue: PollQueue::new() }));
            }
        }
        Ok(streams)
    }

    /// Wakes those that wait for the driver, whose notification bits are `bits`.
    pub(crate) fn notified(&self, bits: u64) {
        if bits & places::STREAM_NEWS != 0 {
            for stream in self.0.iter().flatten() {
                stream.queue.wake(Readiness::READ | Readiness::WRITE);
            }
        }
    }

    /// Ends the system if the driver ends: bytes that were under way are lost then.
    pub(crate) async fn watch(self, environment: Arc<dyn Environment>) {
        let is_lost = |stream: &Arc<HostStream>| stream.ends.lock().has_ended();
        while self.0.iter().flatten().next().is_some() {
            environment.sleep_until(environment.monotonic() + CHECK).await;
            if self.0.iter().flatten().any(is_lost) {
                say(format_args!("unix: the server {NAME} has ended, and bytes of the command's are lost"));
                crate::end(crate::FAILED);
            }
        }
    }
}

impl HostStream {
    async fn until<T>(&self, interest: Readiness, mut attempt: impl FnMut() -> Option<T> + Unpin) -> T {
        loop {
            let ready = until_ready(&self.queue, interest, || attempt().ok_or(AttemptError::WouldBlock));
            if let Ok(value) = ready.await {
                return value;
            }
        }
    }
}

impl Stream for HostStream {
    async fn read(&self, buffer: &mut [u8]) -> usize {
        self.until(Readiness::READ, || self.ends.lock().read(buffer)).await
    }

    async fn write(&self, bytes: &[u8]) -> bool {
        let mut left = bytes;
        while !left.is_empty() {
            let written = self.until(Readiness::WRITE, || {
                let mut ends = self.ends.lock();
                match ends.write(left) {
                    Some(0) => {
                        ends.wait();
                        Some(ends.write(left)).filter(|&written| written != Some(0))
                    }
                    written => Some(written),
                }
            });
            let Some(count) = written.await else { return false };
            left = &left[count..];
        }
        true
    }

    async fn drain(&self) {
        self.until(Readiness::WRITE, || self.ends.lock().is_drained().then_some(())).await;
    }
}
