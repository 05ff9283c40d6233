//! Pipes and FIFOs (pipe(7), fifo(7)).

mod room;
mod splice;
#[cfg(test)]
mod tests;

pub use splice::{splice, tee};

use crate::file::{FileObject, Io, OpenFile};
use crate::poll::{PollQueue, Readiness, until_ready};
use crate::ring::Ring;
use crate::sync::SpinLock;
use crate::vfs::{Attachment, Caller, FileType, OpenFlags, PAGE_SIZE, VnodeRef};
use crate::{AttemptError, Error, Identity, Result, UserBuffer};
use alloc::sync::Arc;
use room::Room;

/// Writes of up to this many bytes are not interleaved with others (PIPE_BUF).
pub const PIPE_BUF: usize = 4096;
/// The capacity of a new pipe, bytes.
pub const DEFAULT_CAPACITY: usize = 65536;
/// The capacity, in bytes, of a new pipe whose user has many pipes already.
pub const SMALL_CAPACITY: usize = 2 * PAGE_SIZE;

/// A pipe or an open FIFO.
pub struct Pipe {
    /// User id and group id that own a pipe without a name.
    owner: (u32, u32),
    state: SpinLock<State>,
    queue: PollQueue,
}

struct State {
    bytes: Ring,
    /// The pipe's capacity, charged to the user that made it.
    room: Room,
    readers: u32,
    writers: u32,
    /// How often the pipe was opened for reading. An open of a FIFO that waits compares this count,
    /// to notice a partner that has closed its end again.
    reader_openings: u64,
    writer_openings: u64,
}

impl State {
    fn count(&mut self, reads: bool, writes: bool) {
        if reads {
            self.readers += 1;
            self.reader_openings += 1;
        }
        if writes {
            self.writers += 1;
            self.writer_openings += 1;
        }
    }
}

/// One end of a pipe, or both in one (a FIFO that was opened for reading and writing).
pub struct PipeEnd {
    pipe: Arc<Pipe>,
    reads: bool,
    writes: bool,
    /// [`State::writer_openings`] when this end was opened without a writer: a reader that never
    /// had a writer sees no hang-up.
    first_writer: u64,
}

/// Makes a pipe that the caller owns: the read end and the write end. `flags` are the status flags
/// of both. `ENFILE` if the user has too many pipes.
pub fn pipe(caller: &Caller<'_>, flags: OpenFlags) -> Result<(Arc<OpenFile>, Arc<OpenFile>)> {
    let pipe = Pipe::new((caller.identity.user, caller.identity.group), caller).ok_or(Error::ENFILE)?;
    // The read end counts as having had a writer from the beginning, so that it sees a hang-up when
    // the write end is closed.
    let (read, write) = (PipeEnd::open(&pipe, true, false, 0), PipeEnd::open(&pipe, false, true, 0));
    Ok((
        OpenFile::of_object(read, flags | OpenFlags::READ),
        OpenFile::of_object(write, flags | OpenFlags::WRITE),
    ))
}

/// Opens a FIFO. Blocks until the other end is opened, unless the FIFO is opened with O_NONBLOCK or
/// for reading and writing. `ENXIO` for a non-blocking open for writing without a reader, `ENOMEM`
/// if the user has too many pipes.
pub(crate) async fn open_fifo(
    caller: &Caller<'_>,
    vnode: &VnodeRef,
    flags: OpenFlags,
) -> Result<Arc<dyn FileObject>> {
    let hooks = vnode.hooks().ok_or(Error::ENXIO)?;
    let pipe = {
        let mut attachment = hooks.attachment.lock();
        let present = match &*attachment {
            Attachment::Pipe(pipe) => pipe.upgrade(),
            _ => None,
        };
        match present {
            Some(pipe) => pipe,
            None => {
                // A FIFO's owner is that of its name in the file system.
                let pipe = Pipe::new((0, 0), caller).ok_or(Error::ENOMEM)?;
                *attachment = Attachment::Pipe(Arc::downgrade(&pipe));
                pipe
            }
        }
    };
    let (reads, writes) = (flags.contains(OpenFlags::READ), flags.contains(OpenFlags::WRITE));
    let nonblock = flags.contains(OpenFlags::NONBLOCK);
    let (met, reader_openings, writer_openings) = {
        let mut state = pipe.state.lock();
        if writes && !reads && nonblock && state.readers == 0 {
            return Err(Error::ENXIO);
        }
        // As soon as this end is counted, a partner that waits may be woken, finish, and close its
        // end again. So look for a partner before.
        let met = if reads { state.writers > 0 } else { state.readers > 0 };
        let openings = (state.reader_openings, state.writer_openings);
        state.count(reads, writes);
        (met, openings.0, openings.1)
    };
    // If this future is dropped, the end is dropped with it and is not counted any more.
    let end = PipeEnd::counted(&pipe, reads, writes, if met { 0 } else { writer_openings });
    if met || nonblock || (reads && writes) {
        return Ok(end);
    }
    let arrived = until_ready(&pipe.queue, Readiness::ALL, || {
        let state = pipe.state.lock();
        let partner = match reads {
            true => state.writers > 0 || state.writer_openings != writer_openings,
            false => state.readers > 0 || state.reader_openings != reader_openings,
        };
        if partner { Ok(()) } else { Err(AttemptError::WouldBlock) }
    });
    match arrived.await {
        Ok(()) => Ok(end),
        Err(_) => Err(Error::EIO),
    }
}

impl Pipe {
    /// A new, empty pipe; `None` if the caller's user has too many.
    fn new(owner: (u32, u32), caller: &Caller<'_>) -> Option<Arc<Pipe>> {
        let room = Room::new(&caller.process.account(), caller.identity)?;
        let state = State {
            bytes: Ring::new(room.bytes()),
            room,
            readers: 0,
            writers: 0,
            reader_openings: 0,
            writer_openings: 0,
        };
        Some(Arc::new(Pipe { owner, state: SpinLock::new(state), queue: PollQueue::new() }))
    }

    /// How many bytes the pipe can hold (F_GETPIPE_SZ).
    pub fn capacity(&self) -> usize {
        self.state.lock().bytes.capacity()
    }

    /// Sets the capacity in bytes (F_SETPIPE_SZ), rounded up to a power of two of pages; returns
    /// the new one. `EPERM` for more than one pipe or all of the user's pipes may have without
    /// privilege, `EBUSY` if the pipe holds more bytes than that, `ENOMEM` without memory.
    pub fn set_capacity(&self, identity: &Identity, capacity: usize) -> Result<usize> {
        if capacity > 1 << 31 {
            return Err(Error::EINVAL);
        }
        let capacity = capacity.max(1).next_multiple_of(PAGE_SIZE).next_power_of_two();
        let mut state = self.state.lock();
        // A smaller storage is set before its charge is made smaller, so that the pipe never holds
        // memory that is not charged.
        if capacity < state.room.bytes() {
            state.bytes.set_capacity(capacity)?;
        }
        state.room.resize(capacity, identity)?;
        state.bytes.set_capacity(capacity)?;
        drop(state);
        self.queue.wake(Readiness::WRITE);
        Ok(capacity)
    }
}

impl PipeEnd {
    fn open(pipe: &Arc<Pipe>, reads: bool, writes: bool, first_writer: u64) -> Arc<PipeEnd> {
        pipe.state.lock().count(reads, writes);
        PipeEnd::counted(pipe, reads, writes, first_writer)
    }

    /// Makes a pipe end that is counted in the pipe's state already, and wakes the threads that
    /// wait for it.
    fn counted(pipe: &Arc<Pipe>, reads: bool, writes: bool, first_writer: u64) -> Arc<PipeEnd> {
        pipe.queue.wake(Readiness::ALL);
        Arc::new(PipeEnd { pipe: pipe.clone(), reads, writes, first_writer })
    }

    /// Another end of the same pipe, as an open through a link to an open file makes it.
    pub(crate) fn open_again(&self, flags: OpenFlags) -> Arc<PipeEnd> {
        let (reads, writes) = (flags.contains(OpenFlags::READ), flags.contains(OpenFlags::WRITE));
        PipeEnd::open(&self.pipe, reads, writes, 0)
    }

    /// The pipe that this is an end of.
    pub fn pipe(&self) -> &Arc<Pipe> {
        &self.pipe
    }
}

impl PipeEnd {
    /// Takes out the bytes that there are, as read(2) does, without blocking.
    pub fn read_now(&self, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        if to.remaining() == 0 {
            return Ok(0);
        }
        let mut state = self.pipe.state.lock();
        if state.bytes.is_empty() {
            return if state.writers == 0 { Ok(0) } else { Err(AttemptError::WouldBlock) };
        }
        let count = state.bytes.drain(usize::MAX, to)?;
        drop(state);
        self.pipe.queue.wake(Readiness::WRITE);
        Ok(count)
    }

    /// Puts in as many bytes as there is room for, as write(2) does, without blocking: all of up to
    /// [`PIPE_BUF`] bytes, or nothing.
    pub fn write_now(&self, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let count = from.remaining();
        if count == 0 {
            return Ok(0);
        }
        let mut state = self.pipe.state.lock();
        if state.readers == 0 {
            return Err(Error::EPIPE.into());
        }
        let space = state.bytes.space();
        let written = if count <= PIPE_BUF {
            if space < count {
                return Err(AttemptError::WouldBlock);
            }
            state.bytes.fill_exactly(count, from)?;
            count
        } else {
            if space == 0 {
                return Err(AttemptError::WouldBlock);
            }
            state.bytes.fill(space, from)?
        };
        drop(state);
        self.pipe.queue.wake(Readiness::READ);
        Ok(written)
    }
}

impl FileObject for PipeEnd {
    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        self.read_now(to)
    }

    fn try_write(&self, _io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        self.write_now(from)
    }

    fn pipe_end(&self) -> Option<&PipeEnd> {
        Some(self)
    }

    fn writes_all(&self) -> bool {
        true
    }

    fn readiness(&self) -> Readiness {
        let state = self.pipe.state.lock();
        let mut ready = Readiness::empty();
        if self.reads {
            ready.set(Readiness::READ, !state.bytes.is_empty());
            ready.set(Readiness::HANGUP, state.writers == 0 && state.writer_openings != self.first_writer);
        }
        if self.writes {
            ready.set(Readiness::WRITE, state.bytes.space() >= PIPE_BUF);
            ready.set(Readiness::ERROR, state.readers == 0);
        }
        ready
    }

    /// A writer may leave room because it was too little for its write of all or nothing. Another
    /// writer can use that room.
    fn left_for_another(&self, write: bool) -> Option<bool> {
        let state = self.pipe.state.lock();
        Some(match write {
            false => !state.bytes.is_empty() || state.writers == 0,
            true => state.bytes.space() > 0 || state.readers == 0,
        })
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.pipe.queue)
    }

    fn file_type(&self) -> FileType {
        FileType::Fifo
    }

    fn owner(&self) -> (u32, u32) {
        self.pipe.owner
    }

    fn label(&self) -> &'static str {
        "pipe"
    }

    fn readable_bytes(&self) -> Result<usize> {
        Ok(self.pipe.state.lock().bytes.len())
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        let mut state = self.pipe.state.lock();
        state.readers -= u32::from(self.reads);
        state.writers -= u32::from(self.writes);
        if state.readers == 0 && state.writers == 0 {
            state.bytes.clear();
        }
        drop(state);
        self.pipe.queue.wake(Readiness::ALL);
    }
}
