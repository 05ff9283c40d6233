//! eventfd(2).

use super::{PollQueue, Readiness};
use crate::file::{FileObject, Io, OpenFile};
use crate::sync::SpinLock;
use crate::user_buffer::{copy_in_all, copy_out_all};
use crate::vfs::OpenFlags;
use crate::{Error, NotDone, UserBuffer};
use alloc::sync::Arc;
use core::any::Any;

/// A counter that can be waited for.
pub struct EventCounter {
    count: SpinLock<u64>,
    /// A read takes 1 instead of all (EFD_SEMAPHORE).
    semaphore: bool,
    queue: PollQueue,
}

/// The counter never exceeds this.
const MAXIMUM: u64 = u64::MAX - 1;

impl EventCounter {
    /// A counter as an open file.
    pub fn create(initial: u64, semaphore: bool, flags: OpenFlags) -> Arc<OpenFile> {
        let counter = EventCounter { count: SpinLock::new(initial), semaphore, queue: PollQueue::new() };
        OpenFile::of_object(Arc::new(counter), flags | OpenFlags::READ_WRITE)
    }
}

impl FileObject for EventCounter {
    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, NotDone> {
        if to.remaining() < 8 {
            return Err(Error::EINVAL.into());
        }
        let mut count = self.count.lock();
        if *count == 0 {
            return Err(NotDone::NotReady);
        }
        let taken = if self.semaphore { 1 } else { *count };
        copy_out_all(to, &taken.to_ne_bytes())?;
        *count -= taken;
        drop(count);
        self.queue.wake(Readiness::WRITE);
        Ok(8)
    }

    fn try_write(&self, _io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, NotDone> {
        let mut bytes = [0; 8];
        copy_in_all(from, &mut bytes)?;
        let added = u64::from_ne_bytes(bytes);
        let mut count = self.count.lock();
        if added > MAXIMUM {
            from.retreat(8);
            return Err(Error::EINVAL.into());
        }
        if added > MAXIMUM - *count {
            from.retreat(8);
            return Err(NotDone::NotReady);
        }
        *count += added;
        drop(count);
        self.queue.wake(Readiness::READ);
        Ok(8)
    }

    fn readiness(&self) -> Readiness {
        let count = *self.count.lock();
        let mut ready = Readiness::empty();
        ready.set(Readiness::READ, count > 0);
        ready.set(Readiness::WRITE, count < MAXIMUM);
        ready
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.queue)
    }

    fn label(&self) -> &'static str {
        "anon_inode:[eventfd]"
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
