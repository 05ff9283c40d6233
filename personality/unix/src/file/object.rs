//! [`FileObject`]: what an open file does if it is not a vnode's data.

use crate::pipe::PipeEnd;
use crate::poll::{PollQueue, Readiness};
use crate::socket::UnixSocket;
use crate::tty::Terminal;
use crate::vfs::{Caller, FileType, OpenContext, OpenFlags};
use crate::{AttemptError, Error, Result, UserBuffer};
use alloc::sync::Arc;
use core::any::Any;
use core::time::Duration;

/// One read or write, as a file object sees it.
pub struct Io<'a> {
    /// The process and thread on whose behalf it is done.
    pub caller: &'a Caller<'a>,
    /// The file offset; meaningless for streams.
    pub position: u64,
    /// The status flags of the open file description.
    pub flags: OpenFlags,
    /// When the operation began ([`crate::Environment::monotonic`]).
    pub started: Duration,
    /// The object's deadline has passed: the attempt must not say [`AttemptError::WouldBlock`] again.
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

/// A pipe end, terminal, socket, counter, device: anything open whose bytes are not a vnode's data.
/// The methods are attempts and never wait; `file` waits for [`FileObject::queue`] on their behalf.
pub trait FileObject: Any + Send + Sync {
    /// Copies out what there is. Takes away only what it copied.
    fn try_read(&self, io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let _ = (io, to);
        Err(Error::EINVAL.into())
    }

    /// Takes as many bytes from the caller as there is room for.
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

    /// For which operations the object is ready now.
    fn readiness(&self) -> Readiness {
        Readiness::READ | Readiness::WRITE
    }

    /// If one of several that wait to read (or write) is enough for what comes: whether there is
    /// something for another now. `None`: all of them look at each change.
    fn left_for_another(&self, write: bool) -> Option<bool> {
        let _ = write;
        None
    }

    /// The queue of those that wait for the readiness to change; `None` if it never changes.
    fn queue(&self) -> Option<&PollQueue> {
        None
    }

    /// When a waiting read (or write) is attempted for the last time.
    fn deadline(&self, io: &Io<'_>, write: bool) -> Option<Duration> {
        let _ = (io, write);
        None
    }

    /// When its readiness changes by itself (a timer's expiration).
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

    /// The type that fstat(2) tells, if it has no name.
    fn file_type(&self) -> FileType {
        FileType::Anonymous
    }

    /// The user and group whose file it is, if it has no name.
    fn owner(&self) -> (u32, u32) {
        (0, 0)
    }

    /// What is shown instead of its path if it has no name: `pipe`, `socket` (with a number),
    /// or what a front end has for its own objects.
    fn label(&self) -> &'static str;

    /// Bytes that can be read now (FIONREAD).
    fn readable_bytes(&self) -> Result<usize> {
        Err(Error::ENOTTY)
    }

    /// Whether it is one of the devices that are made of nothing: reads and writes never wait and
    /// leave no trace.
    fn is_memory_device(&self) -> bool {
        false
    }

    /// The end of a pipe, if it is one.
    fn pipe_end(&self) -> Option<&PipeEnd> {
        None
    }

    /// The socket, if it is one.
    fn socket(&self) -> Option<&UnixSocket> {
        None
    }

    /// The terminal, if this object is one.
    fn terminal(&self) -> Option<&Arc<Terminal>> {
        None
    }
}

/// What is told when an open file description is closed.
pub trait CloseListener: Any + Send + Sync {
    /// No descriptor refers to the description any more. `queue` is the file's queue. Does not
    /// wait.
    fn closed(&self, queue: Option<&PollQueue>);
}

/// The driver of a device node.
pub trait DeviceDriver: Send + Sync {
    /// Opens the device.
    fn open(&self, context: &OpenContext<'_>) -> Result<Arc<dyn FileObject>>;
}
