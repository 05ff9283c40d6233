//! What the table knows of each process and thread.

use super::children::Children;
use super::state::IndexedState;
use super::{ExactPid, Limits, Pid, Usage};
use crate::credentials::Credentials;
use crate::signal::{Actions, AlternateStack, ChildEvent, PendingSignals, Signal, SignalSet};
use crate::sync::SpinLock;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::task::Waker;
use core::time::Duration;

/// Processes or threads, found by their ids.
pub(super) struct Records<T> {
    // Boxed: when an entry is added or removed, the tree moves the entries after it. This way it
    // moves pointers only.
    by_id: BTreeMap<Pid, Box<T>>,
    #[cfg(test)]
    looks: core::cell::Cell<usize>,
}

impl<T> Default for Records<T> {
    fn default() -> Records<T> {
        Records {
            by_id: BTreeMap::new(),
            #[cfg(test)]
            looks: Default::default(),
        }
    }
}

impl<T> Records<T> {
    pub(super) fn get(&self, id: &Pid) -> Option<&T> {
        self.look();
        self.by_id.get(id).map(Box::as_ref)
    }

    pub(super) fn get_mut(&mut self, id: &Pid) -> Option<&mut T> {
        self.look();
        self.by_id.get_mut(id).map(Box::as_mut)
    }

    pub(super) fn contains_key(&self, id: &Pid) -> bool {
        self.by_id.contains_key(id)
    }

    pub(super) fn insert(&mut self, id: Pid, record: T) {
        self.by_id.insert(id, Box::new(record));
    }

    pub(super) fn remove(&mut self, id: &Pid) -> Option<T> {
        self.by_id.remove(id).map(|record| *record)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Pid> {
        self.by_id.keys().inspect(|_| self.look())
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.by_id.values().map(Box::as_ref).inspect(|_| self.look())
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    #[cfg(not(test))]
    fn look(&self) {}

    #[cfg(test)]
    fn look(&self) {
        self.looks.set(self.looks.get() + 1);
    }

    /// How often a record was looked at.
    #[cfg(test)]
    pub(super) fn looks(&self) -> usize {
        self.looks.get()
    }
}

/// How the table reaches a thread that is running its program.
pub trait Control: Send + Sync {
    /// Makes the thread come to its server at its next user boundary, on whatever processor it
    /// runs, also if it is only about to enter its program (docs/src/architecture.md, K15). Does
    /// not wait and does not call back.
    fn recall(&self);

    /// The processor time that the thread of the machine has used since it was made: in its
    /// program, and in its server on its behalf. Does not wait and does not call back.
    fn times(&self) -> (Duration, Duration) {
        (Duration::ZERO, Duration::ZERO)
    }
}

/// What is told when signals become pending for a process or its threads.
pub trait Listener: Send + Sync {
    /// Something may have become pending. Does not wait; the table is not locked.
    fn notify(&self);
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// By exit, with this status.
    Exited(u8),
    /// By a signal.
    Killed(Signal),
}

impl ExitStatus {
    /// The event that the parent gets for this exit status.
    pub fn event(self) -> ChildEvent {
        match self {
            ExitStatus::Exited(status) => ChildEvent::Exited(status),
            ExitStatus::Killed(signal) => ChildEvent::Killed(signal),
        }
    }
}

/// The state of a process between its start and the moment when wait forgets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It runs.
    Running,
    /// It ends: each of its threads exits as soon as it notices.
    Ending(ExitStatus),
    /// It has no threads any more and waits for its parent.
    Zombie(ExitStatus),
}

/// Whether a process is stopped by job control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The process is not stopped.
    Running,
    /// A signal stops it; threads that still run have yet to notice.
    Stopping(Signal),
    /// All its threads have stopped and its parent was told.
    Stopped(Signal),
}

/// A thread as `ps` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// The thread runs or could run.
    Running,
    /// The thread waits, and a signal interrupts the wait.
    Sleeping,
    /// The thread is stopped by job control.
    Stopped,
}

/// A process.
pub struct Process {
    pub(super) pid: Pid,
    pub(super) state: IndexedState,
    pub(super) children: Children,
    pub(super) threads: BTreeSet<Pid>,
    /// The first thread's status, if it ended alone.
    pub(super) leader_status: Option<ExitStatus>,
    /// Threads of this process that wait for children.
    pub(super) child_waiters: Vec<Pid>,
    /// The thread of the parent that vfork suspends until this process execs or ends.
    pub(super) vfork_parent: Option<Pid>,
    /// It ends so that its memory comes back, and does not wait for memory until then.
    pub(super) gives_memory: bool,
    /// The thread that is replacing the program and waits for the others to end.
    pub(super) executing: Option<Pid>,
    pub(super) actions: Arc<SpinLock<Actions>>,
    pub(super) pending: PendingSignals,
    /// Records queued for it and its threads, charged to the user of `credentials`.
    pub(super) queued: u64,
    /// Overrun count of the last signal taken from each POSIX timer.
    pub(super) timer_overruns: BTreeMap<u32, u32>,
    /// The listeners that are told of new signals.
    pub(super) listeners: Vec<Weak<dyn Listener>>,
    /// How often the process has called exec.
    pub(super) executions: u64,
    /// How often its parent had replaced its program when this process was made.
    pub(super) parent_executions: u64,
    /// See [`ExactPid`].
    pub(super) birth: u64,
    /// Whether others with the same ids may inspect it (PR_SET_DUMPABLE).
    pub(super) is_dumpable: bool,
    /// SIGXCPU that it has been sent: one for each second above the limit.
    pub(super) time_warnings: u64,
    /// Resources that the process's ended threads used.
    pub(super) ended_usage: Usage,
    /// Credentials of the first thread, kept for when that is gone.
    pub(super) credentials: Arc<Credentials>,
    /// Name, as prctl and `ps` know it; kept for when its threads are gone.
    pub(super) name: [u8; 16],

    /// Resources that children used for which the process has waited.
    pub children_usage: Usage,
    /// Resource limits.
    pub limits: Limits,
    /// The nice value of the process, -20..=19.
    pub nice: i8,
    /// How readily it wants to be ended when memory is short, -1000..=1000: what is added to its
    /// size when the OOM killer chooses, in thousandths of all memory. -1000: never.
    pub memory_adjustment: i16,
    /// The least that it may be set to without privilege.
    pub least_memory_adjustment: i16,
    /// Orphans among its descendants become its children (PR_SET_CHILD_SUBREAPER).
    pub is_subreaper: bool,
    /// Monotonic time at which the process started.
    pub started: Duration,
}

impl Process {
    /// Its id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The process's identity, which no later process with its number shares.
    pub fn exact_pid(&self) -> ExactPid {
        ExactPid::new(self.pid, self.birth)
    }

    /// Whether others with the same ids may inspect it (PR_GET_DUMPABLE).
    pub fn is_dumpable(&self) -> bool {
        self.is_dumpable
    }

    /// Says whether others with the same ids may inspect it (PR_SET_DUMPABLE).
    pub fn set_dumpable(&mut self, is_dumpable: bool) {
        self.is_dumpable = is_dumpable;
    }

    /// The id of the process's parent; none for the first process.
    pub fn parent(&self) -> Option<Pid> {
        self.state.parent
    }

    /// Its children.
    #[cfg(test)]
    pub(super) fn children(&self) -> impl Iterator<Item = Pid> + '_ {
        self.children.iter()
    }

    /// The process group of the process.
    pub fn group(&self) -> Pid {
        self.state.group
    }

    /// Its session.
    pub fn session(&self) -> Pid {
        self.state.session
    }

    /// Its threads.
    pub fn threads(&self) -> impl Iterator<Item = Pid> + '_ {
        self.threads.iter().copied()
    }

    /// Its first thread, or any if that has ended.
    pub(super) fn first_thread(&self) -> Option<Pid> {
        self.threads.get(&self.pid).or(self.threads.first()).copied()
    }

    /// How many threads the process has.
    pub fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// Whether the process runs, ends, or is a zombie.
    pub fn phase(&self) -> Phase {
        self.state.phase
    }

    /// Whether the process is stopped.
    #[cfg(test)]
    pub(super) fn stop(&self) -> Stop {
        self.state.stop
    }

    /// Whether the process is a zombie: nothing but its status is left.
    pub fn is_zombie(&self) -> bool {
        matches!(self.state.phase, Phase::Zombie(_))
    }

    /// Whether it runs no longer, or will not from now on.
    pub fn is_ending(&self) -> bool {
        self.state.phase != Phase::Running || self.pending.set().contains(Signal::KILL)
    }

    /// Whether the process leads its session.
    pub fn is_session_leader(&self) -> bool {
        self.state.session == self.pid
    }

    /// What the process does about each signal.
    pub fn actions(&self) -> &Arc<SpinLock<Actions>> {
        &self.actions
    }

    /// Signals pending for the process as a whole.
    pub fn pending(&self) -> &PendingSignals {
        &self.pending
    }

    /// The users and groups with whose rights it acts.
    pub fn credentials(&self) -> &Arc<Credentials> {
        &self.credentials
    }

    /// The name of the process: up to 15 bytes.
    pub fn name(&self) -> &[u8] {
        trim(&self.name)
    }
}

/// A thread.
pub struct Thread {
    pub(super) tid: Pid,
    pub(super) pid: Pid,
    pub(super) control: Arc<dyn Control>,
    /// Whether it is in its program, where only `control` reaches it.
    pub(super) is_in_program: bool,
    /// The waker of the thread's request, if the request waits.
    pub(super) waker: Option<Waker>,
    /// It has to exit although its process lives on: another thread replaces the program.
    pub(super) must_exit: bool,
    /// The thread has noticed that its process stops.
    pub(super) is_stopped: bool,
    pub(super) blocked: SignalSet,
    /// The mask to return to when the thread next enters its program and no handler runs
    /// (sigsuspend, ppoll).
    pub(super) saved_mask: Option<SignalSet>,
    /// Blocked signals that a sigtimedwait of this thread takes.
    pub(super) awaited: SignalSet,
    pub(super) pending: PendingSignals,
    pub(super) credentials: Arc<Credentials>,
    pub(super) name: [u8; 16],

    /// Alternate signal stack.
    pub stack: AlternateStack,
    /// What it used, without the processor time of its present thread of the machine.
    pub(super) usage: Usage,
    /// Sent to the thread when its parent ends (PR_SET_PDEATHSIG).
    pub parent_death_signal: Option<Signal>,
}

impl Thread {
    /// Its process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The users and groups with whose rights it acts.
    pub fn credentials(&self) -> &Arc<Credentials> {
        &self.credentials
    }

    /// Says how it is reached from now on: exec gives it another thread of the machine.
    pub fn set_control(&mut self, control: Arc<dyn Control>) {
        self.usage = self.usage();
        self.control = control;
    }

    /// Resources that the thread has used until now.
    pub fn usage(&self) -> Usage {
        let (user, system) = self.control.times();
        let mut usage = self.usage;
        usage.user_time += user;
        usage.system_time += system;
        usage
    }

    /// Blocked signals.
    pub fn blocked(&self) -> SignalSet {
        self.blocked
    }

    /// Signals pending for this thread alone.
    pub fn pending(&self) -> &PendingSignals {
        &self.pending
    }

    /// The name of the thread: up to 15 bytes.
    pub fn name(&self) -> &[u8] {
        trim(&self.name)
    }

    /// The thread's state as `ps` shows it.
    pub fn run_state(&self) -> RunState {
        match (self.is_stopped, self.waker.is_some() && !self.is_in_program) {
            (true, _) => RunState::Stopped,
            (false, true) => RunState::Sleeping,
            (false, false) => RunState::Running,
        }
    }
}

fn trim(name: &[u8; 16]) -> &[u8] {
    &name[..name.iter().position(|byte| *byte == 0).unwrap_or(15)]
}

/// The stored form of a name: its first 15 bytes.
pub(super) fn stored_name(name: &[u8]) -> [u8; 16] {
    let mut stored = [0; 16];
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len()).min(15);
    stored[..length].copy_from_slice(&name[..length]);
    stored
}
