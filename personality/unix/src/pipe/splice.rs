//! Moving bytes between a pipe and another file without copying them to a program's memory
//! (splice(2), tee(2)).

use super::{Pipe, State};
use crate::file::{OpenFile, transfer};
use crate::poll::{Readiness, until_ready};
use crate::sync::delay;
use crate::vfs::{Access, Caller, FileType, OpenFlags};
use crate::{AttemptError, Bytes, Error, Result, UserBuffer};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Bytes that are moved in one step.
const CHUNK: usize = 65536;

impl Pipe {
    /// Waits until the pipe has bytes (or no writer any more), unless `nonblock`; returns how many.
    async fn wait_readable(&self, nonblock: bool) -> Result<usize> {
        let look = || {
            let state = self.state.lock();
            let there = state.bytes.len();
            if there > 0 || state.writers == 0 { Ok(there) } else { Err(AttemptError::WouldBlock) }
        };
        self.wait(nonblock, Readiness::READ, look).await
    }

    /// Waits until the pipe has room, unless `nonblock`; returns how many bytes fit. `EPIPE`
    /// without a reader.
    async fn wait_writable(&self, nonblock: bool) -> Result<usize> {
        let look = || {
            let state = self.state.lock();
            match state.bytes.space() {
                _ if state.readers == 0 => Err(Error::EPIPE.into()),
                0 => Err(AttemptError::WouldBlock),
                space => Ok(space),
            }
        };
        self.wait(nonblock, Readiness::WRITE, look).await
    }

    async fn wait(
        &self,
        nonblock: bool,
        interest: Readiness,
        mut look: impl FnMut() -> Result<usize, AttemptError> + Send + Unpin,
    ) -> Result<usize> {
        let done = if nonblock { look() } else { until_ready(&self.queue, interest, look).await };
        done.map_err(|not_done| match not_done {
            AttemptError::Failed(error) => error,
            _ => Error::EAGAIN,
        })
    }

    /// Copies up to `count` bytes from the front of the pipe, which keeps them.
    fn peek(&self, count: usize) -> Result<Vec<u8>> {
        self.state.lock().peek(count)
    }

    /// Takes up to `count` bytes from the front of the pipe.
    fn take(&self, count: usize) -> Result<Vec<u8>> {
        let mut state = self.state.lock();
        let bytes = state.peek(count)?;
        state.bytes.consume(bytes.len());
        Ok(bytes)
    }
}

impl State {
    /// Copies up to `count` bytes from the front of the pipe, which keeps them.
    fn peek(&self, count: usize) -> Result<Vec<u8>> {
        let (front, back) = self.bytes.contents();
        let count = count.min(self.bytes.len());
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(count).map_err(|_| Error::ENOMEM)?;
        bytes.extend(front.iter().chain(back).take(count));
        Ok(bytes)
    }
}

/// Bytes taken out of a pipe, from which a transfer uses some. The rest is put back into the pipe
/// when this is dropped.
struct Taken<'a> {
    pipe: &'a Pipe,
    bytes: Bytes,
    progress: &'a mut usize,
}

impl<'a> Taken<'a> {
    fn new(pipe: &'a Pipe, count: usize, progress: &'a mut usize) -> Result<Taken<'a>> {
        delay("a splice takes");
        let bytes = pipe.take(count)?;
        Ok(Taken { pipe, bytes: Bytes::of(&bytes), progress })
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.progress += self.bytes.transferred();
        let left = self.bytes.left();
        if !left.is_empty() {
            self.pipe.state.lock().bytes.push_front(left);
            self.pipe.queue.wake(Readiness::READ);
        }
        self.pipe.queue.wake(Readiness::WRITE);
    }
}

/// Moves up to `count` bytes from one file to another, of which at least one is a pipe: the bytes
/// that are there now, or, unless `nonblock`, the next that come. An offset is for the file that is
/// no pipe (`ESPIPE` with a pipe); `None` means the file's own offset. `progress` has the count of
/// bytes that were moved even if the future is dropped.
pub async fn splice(
    caller: &Caller<'_>,
    (source, source_offset): (&Arc<OpenFile>, Option<&mut u64>),
    (target, target_offset): (&Arc<OpenFile>, Option<&mut u64>),
    count: usize,
    nonblock: bool,
    progress: &mut usize,
) -> Result<()> {
    source.check(Access::READ)?;
    target.check(Access::WRITE)?;
    let (from_pipe, to_pipe) = (source.pipe_end(), target.pipe_end());
    if (from_pipe.is_some() && source_offset.is_some()) || (to_pipe.is_some() && target_offset.is_some()) {
        return Err(Error::ESPIPE);
    }
    let nonblock = |file: &OpenFile| nonblock || file.flags().contains(OpenFlags::NONBLOCK);
    match (from_pipe, to_pipe) {
        (None, None) => Err(Error::EINVAL),
        (Some(from), to) => {
            if to.as_ref().is_some_and(|to| Arc::ptr_eq(to.pipe(), from.pipe()))
                || target.flags().contains(OpenFlags::APPEND)
            {
                return Err(Error::EINVAL);
            }
            let mut taken = loop {
                let there = from.pipe.wait_readable(nonblock(source)).await?;
                let mut count = count.min(there).min(CHUNK);
                if let Some(to) = &to {
                    count = count.min(to.pipe.wait_writable(nonblock(target)).await?);
                }
                if count == 0 {
                    return Ok(());
                }
                let taken = Taken::new(&from.pipe, count, progress)?;
                if taken.bytes.remaining() > 0 {
                    break taken;
                }
                // Another reader has taken the bytes: that is no end of the file, so wait again.
            };
            match target_offset {
                None => target.write(caller, &mut taken.bytes).await.map(drop),
                Some(offset) => {
                    let written = target.write_at(caller, *offset, &mut taken.bytes).await?;
                    *offset += written as u64;
                    Ok(())
                }
            }
        }
        (None, Some(to)) => {
            let room = to.pipe.wait_writable(nonblock(target)).await?;
            let count = count.min(room);
            if source.file_type() == FileType::Regular && source.object().is_none() {
                return transfer(caller, source, source_offset, target, None, count, progress).await;
            }
            let mut bytes = Bytes::empty(count.min(CHUNK));
            match source_offset {
                None => drop(source.read(caller, &mut bytes).await?),
                Some(offset) => *offset += source.read_at(caller, *offset, &mut bytes).await? as u64,
            }
            let mut bytes = bytes.into_supply();
            let written = target.write(caller, &mut bytes).await;
            *progress += bytes.transferred();
            written.map(drop)
        }
    }
}

/// Copies up to `count` bytes of one pipe into another; the first pipe keeps them. `EINVAL` if
/// either file is no pipe or both are one pipe.
pub async fn tee(
    source: &Arc<OpenFile>,
    target: &Arc<OpenFile>,
    count: usize,
    nonblock: bool,
) -> Result<usize> {
    source.check(Access::READ)?;
    target.check(Access::WRITE)?;
    let (Some(from), Some(to)) = (source.pipe_end(), target.pipe_end()) else {
        return Err(Error::EINVAL);
    };
    if Arc::ptr_eq(from.pipe(), to.pipe()) {
        return Err(Error::EINVAL);
    }
    loop {
        let there = from.pipe.wait_readable(nonblock).await?;
        let room = to.pipe.wait_writable(nonblock).await?;
        let bytes = from.pipe.peek(count.min(room))?;
        let copied = to.pipe.state.lock().bytes.push(&bytes)?;
        if copied > 0 {
            to.pipe.queue.wake(Readiness::READ);
            return Ok(copied);
        }
        if there == 0 || count == 0 {
            return Ok(0);
        }
        // Other threads have taken the bytes, or the room for them: that is no end of the file, so
        // wait again.
    }
}
