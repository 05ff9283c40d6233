//! The streams of bytes to and from the host, by the rings that the server shares with their
//! driver.

use crate::again;
use crate::places;
use crate::report::say;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Arguments;
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

/// A stream, and the tasks that wait for it.
pub(crate) struct HostStream {
    port: u32,
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
                *stream =
                    Some(Arc::new(HostStream { port, ends: SpinLock::new(ends), queue: PollQueue::new() }));
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

    /// Connects the streams with the driver that is started in place of one that has ended. Ends
    /// the system when none is started any more: what was under way is lost then.
    pub(crate) async fn look_after(self, clock: Arc<dyn Environment>, log: impl Fn(Arguments<'_>)) {
        let streams: Vec<_> = self.0.into_iter().flatten().collect();
        let Some(first) = streams.first() else { return };
        loop {
            again::ended(&*clock, || first.ends.lock().has_ended()).await;
            for stream in &streams {
                let thread = l4::utcb::my_global_id();
                let again = || stream.ends.lock().open_again(NAME, stream.port, thread, places::STREAM_NEWS);
                if !again::connect(&*clock, again).await {
                    say(format_args!(
                        "unix: the server {NAME} has ended, and bytes of the command's are lost"
                    ));
                    crate::end(crate::FAILED);
                }
            }
            // Of what the driver did before a stream was connected there is no notification.
            streams.iter().for_each(|stream| stream.queue.wake(Readiness::READ | Readiness::WRITE));
            log(format_args!("the server {NAME} is there again"));
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
