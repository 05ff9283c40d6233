//! The records of each process and thread in the process table.

use super::children::Children;
use super::dump::Dump;
use super::sharing::Share;
use super::state::IndexedState;
use super::trace::{Tracer, Tracing};
use super::{ExactPid, Limits, Pid, PidNamespace, Usage};
use crate::credentials::Credentials;
use crate::namespace::{Namespaces, UserNamespace};
use crate::schedule::{Schedule, TimerSlack};
use crate::signal::{
    Actions, AlternateStack, ChildEvent, PendingSignals, Signal, SignalInformation, SignalSet,
};
use crate::sync::SpinLock;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::task::Waker;
use core::time::Duration;

/// The records of all processes, or of all threads, by id.
pub(super) struct Records<T> {
    // Boxed: when an entry is added or removed, the tree moves the entries after it, which are then
    // only pointers.
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

    /// How often a record has been looked up (tests check costs with it).
    #[cfg(test)]
    pub(super) fn looks(&self) -> usize {
        self.looks.get()
    }
}

/// How the table reaches a thread that is running its program.
pub trait Control: Send + Sync {
    /// Makes the thread come to the server before its next instruction in the program, on whatever
    /// processor it runs, even if it is only about to enter its program (docs/src/architecture.md,
    /// K15). Does not block and does not call back.
    fn recall(&self);

    /// The processor time that the underlying thread of the machine has used since it was made: in
    /// the program, and in the server on its behalf. Does not block and does not call back.
    fn times(&self) -> (Duration, Duration) {
        (Duration::ZERO, Duration::ZERO)
    }
}

/// A listener that is called when signals become pending for a process or its threads.
pub trait Listener: Send + Sync {
    /// Called when a signal may have become pending. Must not block; the table is not locked.
    fn notify(&self);
}

/// How a process or thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// The process called exit with this status.
    Exited(u8),
    /// A signal ended the process.
    Killed(Signal),
    /// A signal ended the process, which left an image of itself.
    Dumped(Signal),
}

impl ExitStatus {
    /// The event that the parent learns for this exit status.
    pub fn event(self) -> ChildEvent {
        match self {
            ExitStatus::Exited(status) => ChildEvent::Exited(status),
            ExitStatus::Killed(signal) => ChildEvent::Killed(signal),
            ExitStatus::Dumped(signal) => ChildEvent::Dumped(signal),
        }
    }
}

/// How far a process has come between its start and its removal by wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The process runs, or is stopped.
    Running,
    /// The process is ending: each of its threads exits as soon as it notices.
    Ending(ExitStatus),
    /// The process has no threads any more, and its parent has not waited for it yet.
    Zombie(ExitStatus),
}

/// Whether a process is stopped by job control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The process is not stopped.
    Running,
    /// A signal stops the process; threads that still run have yet to notice.
    Stopping(Signal),
    /// All threads of the process have stopped, and its parent has got its signal.
    Stopped(Signal),
}

/// The state of a thread as `ps` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// The thread runs or could run.
    Running,
    /// The thread waits, and a signal interrupts the wait.
    Sleeping,
    /// The thread is stopped by job control.
    Stopped,
    /// The thread is stopped for its tracer.
    Traced,
}

/// The record of a process.
pub struct Process {
    pub(super) pid: Pid,
    pub(super) state: IndexedState,
    pub(super) children: Children,
    pub(super) threads: BTreeSet<Pid>,
    /// The exit status of the first thread, if that ended before other threads.
    pub(super) leader_status: Option<ExitStatus>,
    /// Threads of this process that wait for children.
    pub(super) child_waiters: Vec<Pid>,
    /// The thread of the parent that vfork suspends until this process execs or ends.
    pub(super) vfork_parent: Option<Pid>,
    /// The OOM killer has chosen the process: until it has ended, it does not wait for memory.
    pub(super) gives_memory: bool,
    /// The threads that threads of this process trace. A process whose threads have ended is among
    /// them until its tracer has waited for it.
    pub(super) tracees: BTreeSet<Pid>,
    /// The traced threads that have ended, until this process has waited for them.
    pub(super) ended_tracees: BTreeMap<Pid, ExitStatus>,
    /// The tracer of the first thread, after that has ended: it learns of the end of the process
    /// before the parent does.
    pub(super) tracer: Option<Tracer>,
    /// What the threads leave for the image of the process, if there is to be one.
    pub(super) dump: Option<Box<Dump>>,
    /// The thread that made this process.
    pub(super) creator: Option<Pid>,
    /// The thread that executes a new program and waits for the others to end.
    pub(super) executing: Option<Pid>,
    pub(super) actions: Arc<SpinLock<Actions>>,
    pub(super) pending: PendingSignals,
    /// How many signals are queued for the process and its threads, charged to the user of
    /// `credentials`.
    pub(super) queued: u64,
    /// The overrun count of the last delivered signal of each POSIX timer.
    pub(super) timer_overruns: BTreeMap<u32, u32>,
    /// The listeners that are called when signals become pending.
    pub(super) listeners: Vec<Weak<dyn Listener>>,
    /// How often the process has called exec.
    pub(super) executions: u64,
    /// How often the parent had called exec when this process was made.
    pub(super) parent_executions: u64,
    /// The number that distinguishes the process from others with its id ([`ExactPid`]).
    pub(super) birth: u64,
    /// Whether processes with the same user ids may inspect this one (PR_SET_DUMPABLE).
    pub(super) is_dumpable: bool,
    /// How many SIGXCPU the process has been sent: one for each second above the limit.
    pub(super) time_warnings: u64,
    /// Resources that the ended threads of the process used.
    pub(super) ended_usage: Usage,
    /// What the process has used lately, which lowers its priority.
    pub(super) share: Share,
    /// The namespace of processes in which the process has its number.
    pub(super) pid_namespace: PidNamespace,
    /// The namespace of users to which the memory of the process belongs.
    pub(super) memory_owner: UserNamespace,
    /// Credentials of the first thread; they stay after that thread has ended.
    pub(super) credentials: Arc<Credentials>,
    /// The process's name (prctl(2), `ps`); it stays after its threads have ended.
    pub(super) name: [u8; 16],

    /// Resources that those children used for which the process has waited.
    pub children_usage: Usage,
    /// The resource limits of the process.
    pub limits: Limits,
    /// Whether programs that the process executes are placed at random addresses.
    pub randomises: bool,
    /// The nice value of the process, -20..=19.
    pub nice: i8,
    /// How readily the OOM killer chooses the process, -1000..=1000: this many thousandths of all
    /// memory are added to its size. With -1000 it is never chosen.
    pub memory_adjustment: i16,
    /// The lowest memory adjustment that may be set without privilege.
    pub least_memory_adjustment: i16,
    /// Whether orphans among the descendants of the process become its children
    /// (PR_SET_CHILD_SUBREAPER).
    pub is_subreaper: bool,
    /// Monotonic time at which the process started.
    pub started: Duration,
}

impl Process {
    /// The id of the process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The process's identity, which no later process with the same id has.
    pub fn exact_pid(&self) -> ExactPid {
        ExactPid::new(self.pid, self.birth)
    }

    /// Whether processes with the same user ids may inspect this one (PR_GET_DUMPABLE).
    pub fn is_dumpable(&self) -> bool {
        self.is_dumpable
    }

    /// Sets whether processes with the same user ids may inspect this one (PR_SET_DUMPABLE).
    pub fn set_dumpable(&mut self, is_dumpable: bool) {
        self.is_dumpable = is_dumpable;
    }

    /// The id of the process's parent; `None` for the first process.
    pub fn parent(&self) -> Option<Pid> {
        self.state.parent
    }

    /// The ids of the process's children.
    #[cfg(test)]
    pub(super) fn children(&self) -> impl Iterator<Item = Pid> + '_ {
        self.children.iter()
    }

    /// The process group of the process.
    pub fn group(&self) -> Pid {
        self.state.group
    }

    /// The session of the process.
    pub fn session(&self) -> Pid {
        self.state.session
    }

    /// The ids of the process's threads.
    pub fn threads(&self) -> impl Iterator<Item = Pid> + '_ {
        self.threads.iter().copied()
    }

    /// The first thread of the process, or any other if that has ended; `None` without threads.
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

    /// Whether the process is stopped by job control.
    #[cfg(test)]
    pub(super) fn stop(&self) -> Stop {
        self.state.stop
    }

    /// Whether the process is a zombie: nothing but its status is left.
    pub fn is_zombie(&self) -> bool {
        matches!(self.state.phase, Phase::Zombie(_))
    }

    /// Whether the process is ending or has ended.
    pub fn is_ending(&self) -> bool {
        self.state.phase != Phase::Running || self.pending.set().contains(Signal::KILL)
    }

    /// Whether the process leads its session.
    pub fn is_session_leader(&self) -> bool {
        self.state.session == self.pid
    }

    /// The namespace of processes in which the process is.
    pub fn pid_namespace(&self) -> &PidNamespace {
        &self.pid_namespace
    }

    /// What the process does about each signal.
    pub fn actions(&self) -> &Arc<SpinLock<Actions>> {
        &self.actions
    }

    /// Signals pending for the process as a whole.
    pub fn pending(&self) -> &PendingSignals {
        &self.pending
    }

    /// The credentials with which the process acts.
    pub fn credentials(&self) -> &Arc<Credentials> {
        &self.credentials
    }

    /// The name of the process: up to 15 bytes.
    pub fn name(&self) -> &[u8] {
        trim(&self.name)
    }
}

/// The record of a thread.
pub struct Thread {
    pub(super) tid: Pid,
    pub(super) pid: Pid,
    pub(super) control: Arc<dyn Control>,
    /// Whether the thread is in its program, where only `control` reaches it.
    pub(super) is_in_program: bool,
    /// The waker of the thread's request, if the request blocks.
    pub(super) waker: Option<Waker>,
    /// The thread has to exit although its process goes on: another thread executes a new program.
    pub(super) must_exit: bool,
    /// The thread has stopped, because its process stops.
    pub(super) is_stopped: bool,
    pub(super) blocked: SignalSet,
    /// The signal mask that is restored when the thread next enters its program and no handler runs
    /// (sigsuspend, ppoll).
    pub(super) saved_mask: Option<SignalSet>,
    /// Blocked signals that a sigtimedwait of this thread takes.
    pub(super) awaited: SignalSet,
    pub(super) pending: PendingSignals,
    pub(super) credentials: Arc<Credentials>,
    pub(super) name: [u8; 16],
    /// The other namespaces in which the thread is.
    pub(super) namespaces: Arc<Namespaces>,
    /// What is recorded if another thread traces this one.
    pub(super) tracing: Option<Box<Tracing>>,
    /// What decides about the thread's system calls, in the front end's form; new threads and
    /// programs keep it.
    pub(super) filter: Option<Arc<dyn Any + Send + Sync>>,
    /// The signal that the thread takes next, after its tracer has seen it.
    pub(super) injected: Option<SignalInformation>,

    /// The thread's alternate signal stack.
    pub stack: AlternateStack,
    /// Resources that the thread has used, without the processor time of its present underlying
    /// thread.
    pub(super) usage: Usage,
    /// The signal that the thread gets when its parent ends (PR_SET_PDEATHSIG).
    pub parent_death_signal: Option<Signal>,
    /// How the thread is scheduled.
    pub schedule: Schedule,
    /// By how much the thread's waits may be longer.
    pub timer_slack: TimerSlack,
    /// The priority of the thread's input and output, in the front end's form.
    pub io_priority: u16,
}

impl Thread {
    /// The id of the thread's process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The credentials with which the thread acts.
    pub fn credentials(&self) -> &Arc<Credentials> {
        &self.credentials
    }

    /// The namespaces in which the thread is, beyond those of users, mounts and processes.
    pub fn namespaces(&self) -> &Arc<Namespaces> {
        &self.namespaces
    }

    /// Sets the namespaces in which the thread is.
    pub fn set_namespaces(&mut self, namespaces: Arc<Namespaces>) {
        self.namespaces = namespaces;
    }

    /// Sets how the thread is reached: exec gives it another underlying thread.
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

    /// The signals that the thread blocks.
    pub fn blocked(&self) -> SignalSet {
        self.blocked
    }

    /// Signals that are pending for this thread alone.
    pub fn pending(&self) -> &PendingSignals {
        &self.pending
    }

    /// The name of the thread: up to 15 bytes.
    pub fn name(&self) -> &[u8] {
        trim(&self.name)
    }

    /// The thread's state as `ps` shows it.
    pub fn run_state(&self) -> RunState {
        if self.tracing.as_ref().is_some_and(|tracing| tracing.stop().is_some()) {
            return RunState::Traced;
        }
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

/// A name as it is stored: its first 15 bytes.
pub(super) fn stored_name(name: &[u8]) -> [u8; 16] {
    let mut stored = [0; 16];
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len()).min(15);
    stored[..length].copy_from_slice(&name[..length]);
    stored
}
