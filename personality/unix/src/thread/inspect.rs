//! Inspection of the processes of a system, for files that show them to programs.

use super::{System, Task, Thread};
use crate::Result;
use crate::process::{ExactPid, Pid, Process};
use crate::tty::Terminal;
use crate::vfs::Directories;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use mach::Machine;

/// A thread, and its address space.
type ThreadAndMemory<M> = (Arc<Thread<M>>, Arc<Task<M>>);

impl<M: Machine> System<M> {
    /// The ids of all processes, zombies included.
    pub fn process_ids(&self) -> Vec<Pid> {
        self.processes().with(|table| table.processes().map(Process::pid).collect())
    }

    /// The ids of all processes, in a form that never refers to a later process with the same
    /// number.
    pub fn exact_process_ids(&self) -> Vec<ExactPid> {
        self.processes().with(|table| table.processes().map(Process::exact_pid).collect())
    }

    /// The ids of the threads of a process. `ESRCH`.
    pub fn thread_ids(&self, process: ExactPid) -> Result<Vec<Pid>> {
        self.processes().with(|table| Ok(table.exact_process(process)?.threads().collect()))
    }

    /// Does something with the root and working directories of every thread.
    pub fn each_directories(&self, work: impl Fn(&Directories)) {
        let all: Vec<_> = self.life.threads.lock().values().map(|thread| thread.directories()).collect();
        all.iter().for_each(|directories| work(directories));
    }

    /// A thread of a process and its memory, if the process still has the memory that it had when
    /// `opened` was taken. `None` for zombies, and after an exec. `ESRCH`.
    pub fn opened_memory(
        &self,
        process: ExactPid,
        opened: &Weak<Task<M>>,
    ) -> Result<Option<ThreadAndMemory<M>>> {
        self.processes().with(|table| table.exact_process(process).map(drop))?;
        let Some(thread) = self.thread_of_exact(process) else { return Ok(None) };
        let memory = opened.upgrade().filter(|memory| Arc::ptr_eq(memory, thread.memory()));
        Ok(memory.map(|memory| (thread, memory)))
    }

    /// The controlling terminal of a session.
    pub fn terminal_of_session(&self, session: Pid) -> Option<Arc<Terminal>> {
        self.files.terminal(session)
    }
}
