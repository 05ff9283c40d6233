//! Process descriptors (pidfd_open(2)).

use alloc::sync::{Arc, Weak};
use mach::Machine;
use unix::Result;
use unix::file::{FileObject, OpenFile};
use unix::poll::{PollQueue, Readiness};
use unix::process::{ExactPid, Listener, Pid};
use unix::thread::System;
use unix::vfs::OpenFlags;

/// A file that identifies one process (pidfd_open(2)), even after another process has got its id.
/// The file is ready for reading once the process has ended.
pub(crate) struct PidFile<M: Machine> {
    system: Weak<System<M>>,
    process: ExactPid,
    queue: PollQueue,
}

impl<M: Machine> PidFile<M> {
    /// Makes a process descriptor for process `pid`; the only flag that is used is
    /// [`OpenFlags::NONBLOCK`]. `ESRCH`.
    pub(crate) fn create(system: &Arc<System<M>>, pid: Pid, flags: OpenFlags) -> Result<Arc<OpenFile>> {
        let process =
            system.processes().with(|table| table.process(pid).map(|process| process.exact_pid()))?;
        let queue = PollQueue::new();
        let file = Arc::new(PidFile { system: Arc::downgrade(system), process, queue });
        let listener: Weak<PidFile<M>> = Arc::downgrade(&file);
        system.processes().with(|table| table.listen(pid, listener))?;
        let kept = flags.intersection(OpenFlags::NONBLOCK);
        Ok(OpenFile::of_object(file, kept | OpenFlags::READ_WRITE))
    }

    /// The process that the descriptor identifies.
    pub(crate) fn process(&self) -> ExactPid {
        self.process
    }

    fn has_ended(&self) -> bool {
        let Some(system) = self.system.upgrade() else { return true };
        system
            .processes()
            .with(|table| table.exact_process(self.process).map_or(true, |process| process.is_zombie()))
    }
}

impl<M: Machine> Listener for PidFile<M> {
    fn notify(&self) {
        self.queue.wake(Readiness::READ);
    }
}

impl<M: Machine> FileObject for PidFile<M> {
    fn readiness(&self) -> Readiness {
        if self.has_ended() { Readiness::READ } else { Readiness::empty() }
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.queue)
    }

    fn label(&self) -> &'static str {
        "anon_inode:[pidfd]"
    }
}
