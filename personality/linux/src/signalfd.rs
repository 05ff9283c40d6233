//! Files from which signals are read (signalfd(2)).

use crate::layout::signal::to_descriptor_information;
use alloc::sync::{Arc, Weak};
use mach::Machine;
use unix::file::{FileObject, Io, OpenFile};
use unix::poll::{PollQueue, Readiness};
use unix::process::{Listener, Pid};
use unix::signal::{SignalInformation, SignalSet};
use unix::sync::SpinLock;
use unix::thread::{System, Thread};
use unix::vfs::OpenFlags;
use unix::{AttemptError, Error, UserBuffer, copy_out_all};

/// Bytes of a record (struct signalfd_siginfo).
const RECORD: usize = 128;

/// A file from which pending signals are read: those of the process that made it, whichever process
/// reads it.
pub(crate) struct SignalFile<M: Machine> {
    system: Weak<System<M>>,
    pid: Pid,
    mask: SpinLock<SignalSet>,
    queue: PollQueue,
}

impl<M: Machine> SignalFile<M> {
    /// Makes a file for the signals in `mask` of `thread`'s process.
    pub(crate) fn create(thread: &Thread<M>, mask: SignalSet, flags: OpenFlags) -> Arc<OpenFile> {
        let system = thread.system();
        let file = Arc::new(SignalFile {
            system: Arc::downgrade(system),
            pid: thread.pid(),
            mask: SpinLock::new(mask.as_mask()),
            queue: PollQueue::new(),
        });
        let listener: Weak<SignalFile<M>> = Arc::downgrade(&file);
        // If the process has ended, it gets no more signals.
        let _ = system.processes().with(|table| table.listen(thread.pid(), listener));
        OpenFile::of_object(file, flags | OpenFlags::READ_WRITE)
    }

    /// Sets which signals the file reads from now on.
    pub(crate) fn set_mask(&self, mask: SignalSet) {
        *self.mask.lock() = mask.as_mask();
        self.queue.wake(Readiness::READ);
    }

    /// The signals that the file reads.
    pub(crate) fn mask(&self) -> SignalSet {
        *self.mask.lock()
    }

    fn take(&self) -> Option<SignalInformation> {
        let (system, mask) = (self.system.upgrade()?, *self.mask.lock());
        system.processes().with(|table| {
            let tid = table.process(self.pid).ok()?.threads().next()?;
            table.take_signal(tid, mask)
        })
    }
}

impl<M: Machine> Listener for SignalFile<M> {
    fn notify(&self) {
        self.queue.wake(Readiness::READ);
    }
}

impl<M: Machine> FileObject for SignalFile<M> {
    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        if to.remaining() < RECORD {
            return Err(Error::EINVAL.into());
        }
        let mut done = 0;
        while to.remaining() >= RECORD {
            // Make sure that a record can be stored before a signal is taken.
            match copy_out_all(to, &[0; RECORD]) {
                Ok(()) => to.retreat(RECORD),
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
            let Some(information) = self.take() else { break };
            match copy_out_all(to, &to_descriptor_information(&information)) {
                Ok(()) => done += RECORD,
                // The memory has become inaccessible since the check: the signal is lost.
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        if done == 0 { Err(AttemptError::WouldBlock) } else { Ok(done) }
    }

    fn readiness(&self) -> Readiness {
        let Some(system) = self.system.upgrade() else { return Readiness::empty() };
        let mask = *self.mask.lock();
        let pending = system.processes().with(|table| {
            let Ok(process) = table.process(self.pid) else { return SignalSet::EMPTY };
            let threads = process.threads().filter_map(|tid| table.thread(tid).ok());
            threads.fold(process.pending().set(), |set, thread| set | thread.pending().set())
        });
        if (pending & mask).is_empty() { Readiness::empty() } else { Readiness::READ }
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.queue)
    }

    fn label(&self) -> &'static str {
        "anon_inode:[signalfd]"
    }
}
