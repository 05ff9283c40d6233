//! [`FileObject`]: what an open file is if its bytes are not a vnode's data.

use super::LockOwner;
use crate::pipe::PipeEnd;
use crate::poll::{PollQueue, Readiness};
use crate::socket::UnixSocket;
use crate::tty::Terminal;
use crate::vfs::{Caller, FileMemory, FileType, OpenContext, OpenFlags};
use crate::{AttemptError, Error, Result, UserBuffer};
use alloc::sync::Arc;
use core::any::Any;
use core::time::Duration;

/// One read or write, as a file object sees it.
pub struct Io<'a> {
    /// The process and thread on whose behalf the read or write is done.
    pub caller: &'a Caller<'a>,
    /// The file offset, in bytes; meaningless for streams.
    pub position: u64,
    /// The status flags of the open file description.
    pub flags: OpenFlags,
    /// When the operation began ([`crate::Environment::monotonic`]).
    pub started: Duration,
    /// The object's deadline has passed: the attempt must not return [`AttemptError::WouldBlock`]
    /// again.
    pub expired: bool,
}

/// How a file object treats file offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Positions {
    /// The object has no offset: seeking fails with `ESPIPE`.
    Stream,
    /// Seeking succeeds and does nothing (/dev/null).
    Ignored,
    /// Offsets from 0 to this size are valid.
    Upto(u64),
}

/// A pipe end, terminal, socket, counter or device: an open file whose bytes are not a vnode's
/// data. The methods are attempts and never block; the `file` module waits for
/// [`FileObject::queue`] on their behalf.
pub trait FileObject: Any + Send + Sync {
    /// Copies the bytes that are there to the reader, without blocking. Bytes that could not be
    /// copied stay in the object.
    fn try_read(&self, io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let _ = (io, to);
        Err(Error::EINVAL.into())
    }

    /// Takes as many bytes from the writer as there is room for, without blocking.
    fn try_write(&self, io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let _ = (io, from);
        Err(Error::EINVAL.into())
    }

    /// Whether a blocking write goes on until everything is written.
    fn writes_all(&self) -> bool {
        false
    }

    /// Whether a read goes on until the buffer is full (/dev/zero).
    fn reads_all(&self) -> bool {
        false
    }

    /// Called when a descriptor for the object was closed in the table whose record locks `owner`
    /// owns, if the object has a name.
    fn descriptor_closed(&self, owner: LockOwner) {
        let _ = owner;
    }

    /// Whether the last close may wait (SO_LINGER).
    fn waits_at_close(&self) -> bool {
        false
    }

    /// For which operations the object is ready now.
    fn readiness(&self) -> Readiness {
        Readiness::READ | Readiness::WRITE
    }

    /// For an object that wakes only one of several waiting readers (or writers) at a change:
    /// whether another of them could be served now. `None` if a change wakes all of them.
    fn left_for_another(&self, write: bool) -> Option<bool> {
        let _ = write;
        None
    }

    /// The queue of the threads that wait for the readiness to change; `None` if it never changes.
    fn queue(&self) -> Option<&PollQueue> {
        None
    }

    /// Whether the object can signal an owner when it becomes ready (O_ASYNC). An object that
    /// becomes ready by signals must not.
    fn can_signal(&self) -> bool {
        self.pipe_end().is_some() || self.terminal().is_some() || self.file_type() == FileType::Socket
    }

    /// When a waiting read (or write) is attempted for the last time; `None` if it may wait without
    /// end.
    fn deadline(&self, io: &Io<'_>, write: bool) -> Option<Duration> {
        let _ = (io, write);
        None
    }

    /// When the object's readiness changes without a call (a timer's expiration).
    fn next_change(&self) -> Option<Duration> {
        None
    }

    /// Whether [`FileObject::next_change`] ever returns a time.
    fn changes_by_itself(&self) -> bool {
        false
    }

    /// How the object treats file offsets.
    fn positions(&self) -> Positions {
        Positions::Stream
    }

    /// The file type that fstat(2) reports for an object without a name.
    fn file_type(&self) -> FileType {
        FileType::Anonymous
    }

    /// The user id and group id that own an object without a name.
    fn owner(&self) -> (u32, u32) {
        (0, 0)
    }

    /// What is shown as the path of an object without a name: `pipe`, `socket` (with a number), or
    /// what a front end has for its own objects.
    fn label(&self) -> &'static str;

    /// How many bytes can be read now (FIONREAD).
    fn readable_bytes(&self) -> Result<usize> {
        Err(Error::ENOTTY)
    }

    /// Whether a mapping of the object is one of zeros (/dev/zero).
    fn maps_zeros(&self) -> bool {
        false
    }

    /// The memory that mmap(2) maps for this object. `ENODEV` if it has none.
    fn memory(&self) -> Result<Arc<dyn FileMemory>> {
        Err(Error::ENODEV)
    }

    /// The pipe end that this object is, if it is one.
    fn pipe_end(&self) -> Option<&PipeEnd> {
        None
    }

    /// The socket that this object is, if it is one.
    fn socket(&self) -> Option<&UnixSocket> {
        None
    }

    /// The terminal that this object is, if it is one.
    fn terminal(&self) -> Option<&Arc<Terminal>> {
        None
    }
}

/// A listener that is called when an open file description is closed.
pub trait CloseListener: Any + Send + Sync {
    /// Called when no descriptor refers to the description any more. `queue` is the file's poll
    /// queue. Must not block.
    fn closed(&self, queue: Option<&PollQueue>);
}

/// The driver of a device node.
pub trait DeviceDriver: Send + Sync {
    /// Opens the device, for a process that opens its node.
    fn open(&self, context: &OpenContext<'_>) -> Result<Arc<dyn FileObject>>;
}
