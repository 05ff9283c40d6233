//! Processes as files (pidfd_open(2)).

use super::System;
use crate::file::{FileObject, OpenFile};
use crate::poll::{PollQueue, Readiness};
use crate::process::{Listener, Pid};
use crate::vfs::OpenFlags;
use crate::{Error, Result};
use alloc::sync::{Arc, Weak};
use core::any::Any;
use core::time::Duration;
use mach::Machine;

/// A file that stands for one process, also when its id is somebody else's again. Ready for reading once that has
/// ended.
pub struct PidFile<M: Machine> {
    system: Weak<System<M>>,
    pid: Pid,
    /// Tells it from a later process with the same id.
    started: Duration,
    queue: PollQueue,
}

impl<M: Machine> PidFile<M> {
    /// A file for process `pid`; of `flags`, [`OpenFlags::NONBLOCK`] counts. `ESRCH`.
    pub fn create(system: &Arc<System<M>>, pid: Pid, flags: OpenFlags) -> Result<Arc<OpenFile>> {
        let started = system.processes.with(|table| table.process(pid).map(|process| process.started))?;
        let queue = PollQueue::new();
        let file = Arc::new(PidFile { system: Arc::downgrade(system), pid, started, queue });
        let listener: Weak<PidFile<M>> = Arc::downgrade(&file);
        system.processes.with(|table| table.listen(pid, listener))?;
        let kept = flags.intersection(OpenFlags::NONBLOCK);
        Ok(OpenFile::of_object(file, kept | OpenFlags::READ_WRITE))
    }

    /// The process, zombies included. `ESRCH` once its parent has asked for its end.
    pub fn process(&self) -> Result<Pid> {
        let system = self.system.upgrade().ok_or(Error::ESRCH)?;
        system.processes.with(|table| match table.process(self.pid)?.started == self.started {
            true => Ok(self.pid),
            false => Err(Error::ESRCH),
        })
    }

    fn has_ended(&self) -> bool {
        let Ok(pid) = self.process() else { return true };
        let Some(system) = self.system.upgrade() else { return true };
        system.processes.with(|table| table.process(pid).map_or(true, |process| process.is_zombie()))
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

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
