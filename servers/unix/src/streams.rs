//! Passes bytes between the host and a command: a pipe of the command's on one side, a stream of
//! the host's on the other. Between the two no byte is changed or lost: a side that does not read
//! makes the other one wait.

use alloc::sync::{Arc, Weak};
use alloc::vec;
use core::future::Future;
use macadamia_sync::Mutex;
use unix::file::OpenFile;
use unix::poll::{PollQueue, Readiness, until_ready};
use unix::{AttemptError, Bytes, UserBuffer};

/// The most bytes that are passed in one step.
const PIECE: usize = 16384;

/// A stream from or to the host.
pub trait Stream: Send + Sync {
    /// Reads bytes from the host. Waits until there is at least one. 0: the host has closed its
    /// end.
    fn read(&self, buffer: &mut [u8]) -> impl Future<Output = usize> + Send;

    /// Writes all of `bytes` to the host, waiting for room. Returns false if the host has closed
    /// its end.
    fn write(&self, bytes: &[u8]) -> impl Future<Output = bool> + Send;

    /// Waits until the host has everything that was written, or has closed its end.
    fn drain(&self) -> impl Future<Output = ()> + Send;
}

/// Passes the bytes of `stream` to `pipe`, the write end of a pipe, until the stream or the pipe
/// has ended. Then it closes the pipe.
pub async fn bring(stream: Arc<impl Stream>, pipe: Arc<OpenFile>) {
    let mut bytes = vec![0; PIECE];
    loop {
        let count = stream.read(&mut bytes).await;
        if count == 0 || !fill(&pipe, &bytes[..count]).await {
            return;
        }
    }
}

/// Writes all of `bytes` to a pipe. Returns false if the pipe has no readers.
async fn fill(pipe: &OpenFile, bytes: &[u8]) -> bool {
    let (Some(end), Some(queue)) = (pipe.pipe_end(), queue(pipe)) else { return false };
    let mut bytes = Bytes::of(bytes);
    while bytes.remaining() > 0 {
        if until_ready(queue, Readiness::WRITE, || end.write_now(&mut bytes)).await.is_err() {
            return false;
        }
    }
    true
}

fn queue(pipe: &OpenFile) -> Option<&PollQueue> {
    pipe.object()?.queue()
}

/// A pipe of a command's output, and the stream to which it goes.
pub struct Output<S> {
    stream: Arc<S>,
    /// The read end of the pipe. It is closed when [`Output::pass`] has ended.
    pipe: Weak<OpenFile>,
    /// Held while bytes are under way from the pipe to the stream.
    passing: Mutex<()>,
}

impl<S: Stream> Output<S> {
    /// The output that is read from `pipe`, the read end of a pipe.
    pub fn new(stream: Arc<S>, pipe: &Arc<OpenFile>) -> Arc<Output<S>> {
        Arc::new(Output { stream, pipe: Arc::downgrade(pipe), passing: Mutex::new(()) })
    }

    /// Passes the bytes of `pipe`, the one of [`Output::new`], to the stream, until there are no
    /// more, or the host has closed its end. Then it closes the pipe, so that programs notice that
    /// nothing reads what they write.
    pub async fn pass(self: Arc<Self>, pipe: Arc<OpenFile>) {
        let Some(queue) = queue(&pipe) else { return };
        let mut bytes = Bytes::empty(PIECE);
        loop {
            let is_ready = || match pipe.readiness() {
                none if none.is_empty() => Err(AttemptError::WouldBlock),
                _ => Ok(()),
            };
            // Waiting cannot fail.
            let _ = until_ready(queue, Readiness::READ, is_ready).await;
            let _passing = self.passing.lock().await;
            if !self.step(&pipe, &mut bytes).await {
                return;
            }
        }
    }

    /// Passes what is in the pipe, as far as it fits into `bytes`. Returns false at the end of the
    /// pipe or of the stream.
    async fn step(&self, pipe: &OpenFile, bytes: &mut Bytes) -> bool {
        let is_open = match pipe.pipe_end().map(|end| end.read_now(bytes)) {
            Some(Err(AttemptError::WouldBlock)) => true,
            Some(Ok(1..)) => self.stream.write(bytes.done()).await,
            _ => false,
        };
        bytes.retreat(bytes.transferred());
        is_open
    }

    /// Passes what is in the pipe now, and waits until the host has got it. Nothing is passed
    /// afterwards: programs that go on writing do not keep a system that ends.
    pub async fn finish(&self) {
        let passing = self.passing.lock().await;
        if let Some(pipe) = self.pipe.upgrade() {
            let mut left = pipe.object().and_then(|object| object.readable_bytes().ok()).unwrap_or(0);
            while left > 0 {
                let count = left.min(PIECE);
                if !self.step(&pipe, &mut Bytes::empty(count)).await {
                    break;
                }
                left -= count;
            }
        }
        self.stream.drain().await;
        // The lock is never released, so that `pass` does nothing more.
        core::mem::forget(passing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::Mutex as Lock;
    use unix::testing::{Task, World, pipe};
    use unix::vfs::OpenFlags;

    /// A stream with room for some bytes, whose other end the test is.
    #[derive(Default)]
    struct Host {
        state: Lock<State>,
        queue: PollQueue,
    }

    #[derive(Default)]
    struct State {
        sent: VecDeque<u8>,
        got: Vec<u8>,
        room: usize,
        is_closed: bool,
    }

    impl Host {
        fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
            let result = change(&mut self.state.lock().unwrap());
            self.queue.wake(Readiness::ALL);
            result
        }

        async fn until<T>(&self, mut attempt: impl FnMut(&mut State) -> Option<T> + Unpin) -> T {
            let attempt = || attempt(&mut self.state.lock().unwrap()).ok_or(AttemptError::WouldBlock);
            until_ready(&self.queue, Readiness::ALL, attempt).await.unwrap()
        }
    }

    impl Stream for Host {
        async fn read(&self, buffer: &mut [u8]) -> usize {
            let taken = self.until(|state| match state.sent.len().min(buffer.len()) {
                0 if !state.is_closed => None,
                count => {
                    state.sent.drain(..count).zip(buffer.iter_mut()).for_each(|(from, to)| *to = from);
                    Some(count)
                }
            });
            taken.await
        }

        async fn write(&self, bytes: &[u8]) -> bool {
            let mut left = bytes;
            while !left.is_empty() {
                let written = self.until(|state| match left.len().min(state.room) {
                    _ if state.is_closed => Some(None),
                    0 => None,
                    count => {
                        state.room -= count;
                        state.got.extend(&left[..count]);
                        Some(Some(count))
                    }
                });
                let Some(count) = written.await else { return false };
                left = &left[count..];
            }
            true
        }

        async fn drain(&self) {}
    }

    /// All values of bytes, more of them than a pipe holds.
    fn many() -> Vec<u8> {
        (0..200_000u32).map(|number| (number + number / 251) as u8).collect()
    }

    #[test]
    fn all_bytes_come_in_order_and_then_the_end() {
        let (world, host) = (World::new(), Arc::new(Host::default()));
        let (read, write) = pipe(OpenFlags::NONBLOCK);
        let mut task = Task::new(bring(host.clone(), write));
        task.waits();
        host.with(|state| state.sent.extend(many()));
        let mut got = Vec::new();
        loop {
            let ended = task.run().is_some();
            match world.read(&read, 70_000) {
                Ok(bytes) if bytes.is_empty() => break assert!(ended),
                Ok(bytes) => got.extend(bytes),
                Err(_) => host.with(|state| state.is_closed = true),
            }
        }
        assert_eq!(got, many());
    }

    #[test]
    fn a_pipe_without_readers_ends_the_input() {
        let host = Arc::new(Host::default());
        let (read, write) = pipe(OpenFlags::NONBLOCK);
        let mut task = Task::new(bring(host.clone(), write));
        task.waits();
        drop(read);
        host.with(|state| state.sent.extend(b"abc"));
        task.finish();
    }

    /// A command's output, the task that passes it, and the write end of its pipe.
    type Passing = (Arc<Output<Host>>, Task<()>, Arc<OpenFile>);

    /// Output to a host that has room for some bytes.
    fn output(room: usize) -> (World, Arc<Host>, Passing) {
        let host = Arc::new(Host::default());
        host.with(|state| state.room = room);
        let (read, write) = pipe(OpenFlags::NONBLOCK);
        let output = Output::new(host.clone(), &read);
        let mut task = Task::new(output.clone().pass(read));
        task.waits();
        (World::new(), host, (output, task, write))
    }

    #[test]
    fn a_writer_waits_for_a_host_that_does_not_read_and_everything_arrives() {
        let (world, host, (output, mut task, write)) = output(10);
        let (all, mut written) = (many(), 0);
        while written < all.len() {
            match world.write(&write, &all[written..]) {
                Ok(count) => written += count,
                Err(error) => {
                    assert_eq!(error, unix::Error::EAGAIN);
                    host.with(|state| state.room += 1000);
                }
            }
            task.waits();
        }
        drop(write);
        host.with(|state| state.room = usize::MAX);
        task.finish();
        assert_eq!(host.with(|state| core::mem::take(&mut state.got)), all);
        Task::new(async move { output.finish().await }).finish();
    }

    #[test]
    fn a_host_that_has_closed_its_end_breaks_the_pipe() {
        let (world, host, (_, mut task, write)) = output(1);
        assert_eq!(world.write(&write, b"abc"), Ok(3));
        task.waits();
        host.with(|state| state.is_closed = true);
        task.finish();
        assert_eq!(world.write(&write, b"abc"), Err(unix::Error::EPIPE));
    }

    #[test]
    fn the_end_passes_what_is_there_and_does_not_wait_for_programs_that_go_on_writing() {
        let (world, host, (output, mut task, write)) = output(1);
        let written = world.write(&write, &many()).unwrap();
        task.waits();
        let more = world.write(&write, b"in time").unwrap();
        let mut end = Task::new(async move { output.finish().await });
        end.waits();
        host.with(|state| state.room = usize::MAX);
        task.waits();
        end.finish();
        assert_eq!(host.with(|state| state.got.len()), written + more);
        assert_eq!(world.write(&write, b"too late"), Ok(8));
        task.waits();
        assert_eq!(host.with(|state| state.got.len()), written + more, "nothing more is passed");
    }
}
