//! Processes that a signal ends, and that leave an image of their memory and registers: what their
//! threads leave for it.

use super::records::{ExitStatus, Phase};
use super::table::Table;
use super::{Pid, Resource, Usage};
use crate::signal::{SignalInformation, SignalSet};
use alloc::boxed::Box;
use alloc::vec::Vec;
use mach::machine::ThreadState;

/// What a thread leaves.
#[derive(Clone, Debug)]
pub struct ThreadDump {
    /// Its id.
    pub tid: Pid,
    /// Its registers.
    pub registers: ThreadState,
    /// Its extended state.
    pub extended: Vec<u8>,
    /// The signals that were pending for it.
    pub pending: SignalSet,
    /// The signals that it blocked.
    pub blocked: SignalSet,
    /// What it has used.
    pub usage: Usage,
}

/// What the threads of a process have left, that of the one that took the signal first.
#[derive(Clone, Debug)]
pub struct Dump {
    /// The thread that took the signal, and collects the rest.
    collector: Pid,
    /// The signal that ends the process.
    pub information: SignalInformation,
    /// What each thread has left.
    pub threads: Vec<ThreadDump>,
}

impl Dump {
    /// The thread that took the signal, and makes the image.
    pub(super) fn collector(&self) -> Pid {
        self.collector
    }
}

impl Table {
    /// Begins an image of process `pid`, which thread `tid` makes, unless the process must not have
    /// one.
    pub(super) fn begin_dump(&mut self, tid: Pid, pid: Pid, information: SignalInformation) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if process.is_dumpable && process.limits.soft(Resource::Core) > 0 && process.dump.is_none() {
            process.dump = Some(Box::new(Dump { collector: tid, information, threads: Vec::new() }));
        }
    }

    /// Adds what thread `tid` leaves to the image of its process, if there is to be one. True if
    /// this thread makes the image.
    pub fn add_to_dump(&mut self, tid: Pid, registers: ThreadState, extended: Vec<u8>) -> bool {
        let Some(thread) = self.threads.get(&tid) else { return false };
        let left = ThreadDump {
            tid,
            registers,
            extended,
            pending: thread.pending.set(),
            blocked: thread.blocked,
            usage: thread.usage(),
        };
        let pid = thread.pid;
        let Some(dump) = self.processes.get_mut(&pid).and_then(|process| process.dump.as_mut()) else {
            return false;
        };
        let is_collector = dump.collector == tid;
        let at = if is_collector { 0 } else { dump.threads.len() };
        dump.threads.insert(at, left);
        is_collector
    }

    /// Whether the process of thread `tid` leaves an image of itself.
    pub fn is_dumping(&self, tid: Pid) -> bool {
        self.process_of(tid).is_ok_and(|process| process.dump.is_some())
    }

    /// Takes what the threads of the process of thread `tid` have left.
    pub fn take_dump(&mut self, tid: Pid) -> Option<Dump> {
        let pid = self.thread(tid).ok()?.pid;
        self.processes.get_mut(&pid)?.dump.take().map(|dump| *dump)
    }

    /// Records that the image of the process of thread `tid` has been made.
    pub fn dumped(&mut self, tid: Pid) {
        let Ok(pid) = self.thread(tid).map(|thread| thread.pid) else { return };
        self.change_state(pid, |state| {
            if let Phase::Ending(ExitStatus::Killed(signal)) = state.phase {
                state.phase = Phase::Ending(ExitStatus::Dumped(signal));
            }
        });
    }
}
