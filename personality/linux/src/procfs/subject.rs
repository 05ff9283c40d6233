//! A [`Subject`]: the process or the thread that a directory of /proc shows.

use alloc::sync::Arc;
use mach::Machine;
use unix::Result;
use unix::process::{self, ExactPid, Pid, Process, RunState, Table, Usage};
use unix::thread::{System, Thread};

/// A process, or one of its threads. The process is identified exactly: a subject never refers to a
/// later process with the same id.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Subject {
    /// The process.
    pub(super) process: ExactPid,
    /// The thread of the process that is shown; `None` if the process as a whole is.
    pub(super) thread: Option<Pid>,
}

impl Subject {
    /// A process as a whole.
    pub(super) fn process(process: ExactPid) -> Subject {
        Subject { process, thread: None }
    }

    /// The id of the process or thread.
    pub(super) fn id(self) -> Pid {
        self.thread.unwrap_or(self.process.pid())
    }

    /// The records of the process, and of the thread: of a process its first, which a zombie has
    /// not. `ESRCH`.
    pub(super) fn records(self, table: &Table) -> Result<(&Process, Option<&process::Thread>)> {
        let process = table.exact_process(self.process)?;
        match self.thread {
            None => Ok((process, process.threads().next().and_then(|tid| table.thread(tid).ok()))),
            Some(tid) if process.threads().any(|own| own == tid) => Ok((process, Some(table.thread(tid)?))),
            Some(_) => Err(unix::Error::ESRCH),
        }
    }

    /// The thread, or a thread of the process; `None` if it has ended.
    pub(super) fn find<M: Machine>(self, system: &System<M>) -> Option<Arc<Thread<M>>> {
        let found = system.thread_of_exact(self.process)?;
        match self.thread {
            None => Some(found),
            Some(tid) => system.thread(tid).filter(|thread| thread.pid() == found.pid()),
        }
    }

    /// The resources that the process, or the thread alone, has used. `ESRCH`.
    pub(super) fn usage(self, table: &Table) -> Result<Usage> {
        Ok(match (self.thread, self.records(table)?) {
            (Some(_), (_, Some(thread))) => thread.usage(),
            (_, (process, _)) => table.usage(process),
        })
    }

    /// The state, as a letter and in words. A process is in the state of its most active thread.
    /// `ESRCH`.
    pub(super) fn state(self, table: &Table) -> Result<(char, &'static str)> {
        let (process, thread) = self.records(table)?;
        if process.is_zombie() {
            return Ok(('Z', "zombie"));
        }
        let is_any = |state| match (self.thread, thread) {
            (Some(_), Some(thread)) => thread.run_state() == state,
            (None, Some(thread)) if state == RunState::Traced => thread.run_state() == state,
            _ => process.threads().filter_map(|tid| table.thread(tid).ok()).any(|t| t.run_state() == state),
        };
        Ok(match () {
            () if is_any(RunState::Traced) => ('t', "tracing stop"),
            () if is_any(RunState::Running) => ('R', "running"),
            () if is_any(RunState::Sleeping) => ('S', "sleeping"),
            () => ('T', "stopped"),
        })
    }

    /// The name of the thread, or of the process. `ESRCH`.
    pub(super) fn name(self, table: &Table) -> Result<&[u8]> {
        Ok(match (self.thread, self.records(table)?) {
            (Some(_), (_, Some(thread))) => thread.name(),
            (_, (process, _)) => process.name(),
        })
    }
}
