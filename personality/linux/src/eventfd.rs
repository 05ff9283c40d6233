//! Event counters (eventfd(2)).

use alloc::sync::Arc;
use unix::file::{FileObject, Io, OpenFile};
use unix::poll::{PollQueue, Readiness};
use unix::sync::SpinLock;
use unix::vfs::OpenFlags;
use unix::{AttemptError, Error, UserBuffer, copy_in_all, copy_out_all};

/// A counter that programs can wait for.
pub(crate) struct EventCounter {
    count: SpinLock<u64>,
    /// Whether a read takes 1 from the counter instead of all (EFD_SEMAPHORE).
    semaphore: bool,
    queue: PollQueue,
}

/// The largest value of the counter.
const MAXIMUM: u64 = u64::MAX - 1;

impl EventCounter {
    /// Makes a counter, as an open file.
    pub(crate) fn create(initial: u64, semaphore: bool, flags: OpenFlags) -> Arc<OpenFile> {
        let counter = EventCounter { count: SpinLock::new(initial), semaphore, queue: PollQueue::new() };
        OpenFile::of_object(Arc::new(counter), flags | OpenFlags::READ_WRITE)
    }
}

impl EventCounter {
    /// The value of the counter.
    pub(crate) fn count(&self) -> u64 {
        *self.count.lock()
    }

    /// Adds 1 for an event of the system; a counter at its maximum stays there.
    pub(crate) fn add_one(&self) {
        let mut count = self.count.lock();
        *count = (*count + 1).min(MAXIMUM);
        drop(count);
        self.queue.wake(Readiness::READ);
    }
}

impl FileObject for EventCounter {
    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        if to.remaining() < 8 {
            return Err(Error::EINVAL.into());
        }
        let mut count = self.count.lock();
        if *count == 0 {
            return Err(AttemptError::WouldBlock);
        }
        let taken = if self.semaphore { 1 } else { *count };
        copy_out_all(to, &taken.to_ne_bytes())?;
        *count -= taken;
        drop(count);
        self.queue.wake(Readiness::WRITE);
        Ok(8)
    }

    fn try_write(&self, _io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
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
            return Err(AttemptError::WouldBlock);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use unix::testing::World;

    #[test]
    fn an_event_counter_is_read_written_and_polled() {
        let w = World::new();
        let event = EventCounter::create(3, false, OpenFlags::NONBLOCK);
        assert_eq!(w.read(&event, 7), Err(Error::EINVAL));
        assert_eq!(w.read(&event, 100), Ok(3u64.to_ne_bytes().to_vec()));
        assert_eq!(w.read(&event, 8), Err(Error::EAGAIN));
        assert_eq!(w.write(&event, &[0; 7]), Err(Error::EINVAL));
        assert_eq!(w.write(&event, &u64::MAX.to_ne_bytes()), Err(Error::EINVAL));
        assert_eq!(w.write(&event, &(u64::MAX - 1).to_ne_bytes()), Ok(8));
        assert_eq!(w.write(&event, &1u64.to_ne_bytes()), Err(Error::EAGAIN));
        assert_eq!(event.readiness(), Readiness::READ);
        let semaphore = EventCounter::create(2, true, OpenFlags::NONBLOCK);
        assert_eq!(w.read(&semaphore, 8), Ok(1u64.to_ne_bytes().to_vec()));
        assert_eq!(w.read(&semaphore, 8), Ok(1u64.to_ne_bytes().to_vec()));
        assert_eq!(w.read(&semaphore, 8), Err(Error::EAGAIN));
    }
}
