//! New processes and threads, and what exec does to a process (clone(2), execve(2)).

use super::children::Children;
use super::records::{Phase, Process, Stop, Thread, stored_name};
use super::sharing::Share;
use super::state::{IndexedState, ProcessState};
use super::table::Table;
use super::{Control, Limits, Pid, PidNamespace, Resource, Usage};
use crate::credentials::Credentials;
use crate::namespace::{Namespaces, UserNamespace};
use crate::schedule::{Schedule, TimerSlack};
use crate::signal::{Actions, AlternateStack, PendingSignals, Signal, SignalSet};
use crate::sync::SpinLock;
use crate::{Error, Privilege, Result};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

/// The properties of a new thread or process, as far as the process table is concerned (clone(2)).
pub struct NewThread {
    /// How the new thread is recalled from its program.
    pub control: Arc<dyn Control>,
    /// Whether to make a thread of the caller's process, instead of a process.
    pub same_process: bool,
    /// Whether the new process shares the caller's signal actions.
    pub share_actions: bool,
    /// Whether signals with handlers get their default actions in the new process.
    pub clear_handlers: bool,
    /// Whether the new process becomes a child of the caller's parent instead of the caller.
    pub same_parent: bool,
    /// The signal that the parent gets when the new process ends.
    pub exit_signal: Option<Signal>,
    /// Whether the caller waits until the new process executes a program or ends (vfork(2)).
    pub vfork: bool,
    /// Whether the new thread keeps the caller's alternate signal stack. It must be false if both
    /// run in the same address space, except after vfork(2).
    pub keep_stack: bool,
    /// The credentials of the new thread, if they are not those of the caller.
    pub credentials: Option<Arc<Credentials>>,
    /// The namespaces of the new thread, if they are not those of the caller.
    pub namespaces: Option<Arc<Namespaces>>,
    /// The present time of the monotonic clock.
    pub now: Duration,
}

/// The program that exec puts in place of a process's old program, as far as the process table is
/// concerned.
pub struct NewProgram<'a> {
    /// The name of the new program.
    pub name: &'a [u8],
    /// The credentials with which the new program runs.
    pub credentials: Arc<Credentials>,
    /// Whether the caller of exec could have read the program's file. If not, only the superuser
    /// may inspect the process.
    pub is_readable: bool,
    /// The namespace of users to which the memory of the program belongs.
    pub memory_owner: UserNamespace,
    /// How the thread that runs the new program is recalled to the server.
    pub control: Arc<dyn Control>,
}

impl Table {
    /// Makes the first process, in a session and group of its own. It must be called once, on an
    /// empty table.
    pub fn create_init(&mut self, control: Arc<dyn Control>, credentials: Credentials, now: Duration) -> Pid {
        let pid = Pid::INIT;
        let first = self.ids.allocate();
        debug_assert_eq!(first, Some(pid));
        let credentials = Arc::new(credentials);
        let process = Process {
            pid,
            state: IndexedState::new(ProcessState {
                parent: None,
                group: pid,
                session: pid,
                phase: Phase::Running,
                stop: Stop::Running,
                unreported: None,
                exit_signal: Some(Signal::CHLD),
                is_held: false,
            }),
            children: Children::default(),
            threads: BTreeSet::from([pid]),
            leader_status: None,
            child_waiters: Vec::new(),
            vfork_parent: None,
            tracees: BTreeSet::new(),
            ended_tracees: BTreeMap::new(),
            tracer: None,
            dump: None,
            creator: None,
            gives_memory: false,
            executing: None,
            actions: Arc::new(SpinLock::new(Actions::default())),
            pending: PendingSignals::default(),
            queued: 0,
            timer_overruns: BTreeMap::new(),
            listeners: Vec::new(),
            executions: 0,
            parent_executions: 0,
            birth: 0,
            is_dumpable: true,
            time_warnings: 0,
            ended_usage: Usage::default(),
            share: Share::starting(now),
            pid_namespace: PidNamespace::default(),
            memory_owner: UserNamespace::default(),
            credentials: credentials.clone(),
            name: stored_name(b"init"),
            children_usage: Usage::default(),
            limits: Limits::with_threads(self.max_threads),
            randomises: true,
            nice: 0,
            memory_adjustment: 0,
            least_memory_adjustment: 0,
            is_subreaper: false,
            started: now,
        };
        let thread = Thread {
            tid: pid,
            pid,
            control,
            is_in_program: false,
            waker: None,
            must_exit: false,
            is_stopped: false,
            blocked: SignalSet::EMPTY,
            saved_mask: None,
            awaited: SignalSet::EMPTY,
            pending: PendingSignals::default(),
            credentials: credentials.clone(),
            namespaces: self.first_namespaces.clone(),
            name: stored_name(b"init"),
            stack: AlternateStack::default(),
            usage: Usage::default(),
            parent_death_signal: None,
            schedule: Schedule::default(),
            timer_slack: TimerSlack::INITIAL,
            io_priority: 0,
            tracing: None,
            filter: None,
            injected: None,
        };
        self.charge(credentials.user.real, 1, 0);
        self.enter_process(process);
        self.threads.insert(pid, thread);
        pid
    }

    /// Makes a thread or a process as thread `caller` asked; returns its new id. The new thread
    /// starts in the server. A new process begins in the namespace that the namespaces of the
    /// thread have for children, and is its first one if it has none. `ENOMEM` if that has ended.
    /// `EINVAL` for a thread if that is not its process's, and for a sibling of a first process.
    ///
    /// `EAGAIN` if a limit on threads is reached, ids have run out, or the caller has to end (the
    /// thread that it made now would not learn that it has to end, too). `EINTR` if a signal is
    /// pending: it may have been sent to a process group, and a new process of the group would not
    /// get it, so the call has to be repeated after the signal.
    pub fn create(&mut self, caller: Pid, new: NewThread) -> Result<Pid> {
        let parent_thread = self.thread(caller)?;
        let (pid, user) = (parent_thread.pid, parent_thread.credentials.user.real);
        let is_free = |privilege| parent_thread.credentials.has(privilege);
        let privileged = is_free(Privilege::Resource) || is_free(Privilege::Administrator);
        if self.must_exit(caller) {
            return Err(Error::EAGAIN);
        }
        if new.same_parent && !new.same_process && self.is_init(pid) {
            return Err(Error::EINVAL);
        }
        if !new.same_process && self.has_work(caller) {
            return Err(Error::EINTR);
        }
        if self.threads.len() >= self.max_threads {
            return Err(Error::EAGAIN);
        }
        let limit = self.process(pid)?.limits.soft(Resource::Processes);
        let threads = self.users.get(&user).map_or(0, |charges| charges.threads);
        if threads >= limit && !privileged {
            return Err(Error::EAGAIN);
        }
        let tid = self.ids.allocate().ok_or(Error::EAGAIN)?;
        let entered = self.enter_new(caller, pid, tid, &new);
        match entered {
            Ok(()) => {
                self.charge(user, 1, 0);
                self.forks += 1;
                Ok(tid)
            }
            Err(error) => {
                self.release_id(tid);
                Err(error)
            }
        }
    }

    /// Adds a new thread with its id to the table, and its process if that is new.
    fn enter_new(&mut self, caller: Pid, pid: Pid, tid: Pid, new: &NewThread) -> Result<()> {
        let parent_thread = self.thread(caller)?;
        let thread = Thread {
            tid,
            pid: if new.same_process { pid } else { tid },
            control: new.control.clone(),
            is_in_program: false,
            waker: None,
            must_exit: false,
            is_stopped: false,
            blocked: parent_thread.blocked,
            saved_mask: None,
            awaited: SignalSet::EMPTY,
            pending: PendingSignals::default(),
            credentials: new.credentials.clone().unwrap_or_else(|| parent_thread.credentials.clone()),
            namespaces: new.namespaces.clone().unwrap_or_else(|| parent_thread.namespaces.clone()),
            name: parent_thread.name,
            stack: if new.keep_stack { parent_thread.stack } else { AlternateStack::default() },
            usage: Usage::default(),
            parent_death_signal: None,
            schedule: parent_thread.schedule.inherited(0).0,
            timer_slack: parent_thread.timer_slack.inherited(),
            io_priority: parent_thread.io_priority,
            tracing: None,
            filter: parent_thread.filter.clone(),
            injected: None,
        };
        let namespace = match new.same_process {
            true if thread.namespaces.for_children != self.pid_namespace(pid) => return Err(Error::EINVAL),
            true => self.pid_namespace(pid),
            false => thread.namespaces.for_children.clone(),
        };
        self.enter_namespace(tid, &namespace, !new.same_process)?;
        if new.same_process {
            self.process_mut(pid)?.threads.insert(tid);
        } else {
            self.create_process(caller, pid, tid, new, namespace)?;
        }
        self.threads.insert(tid, thread);
        Ok(())
    }

    fn create_process(
        &mut self,
        caller: Pid,
        caller_pid: Pid,
        pid: Pid,
        new: &NewThread,
        namespace: PidNamespace,
    ) -> Result<()> {
        let share = self.share_of_child(caller_pid, new.now);
        let caller_thread = self.thread(caller)?;
        let origin = self.process(caller_pid)?;
        let actions = match new.share_actions {
            true => origin.actions.clone(),
            false => {
                let mut copy = origin.actions.lock().clone();
                if new.clear_handlers {
                    copy.clear_handlers();
                }
                Arc::new(SpinLock::new(copy))
            }
        };
        let parent = if new.same_parent { origin.state.parent } else { Some(caller_pid) };
        let exit_signal = if new.same_parent { origin.state.exit_signal } else { new.exit_signal };
        let process = Process {
            pid,
            state: IndexedState::new(ProcessState {
                parent,
                group: origin.state.group,
                session: origin.state.session,
                phase: Phase::Running,
                stop: Stop::Running,
                unreported: None,
                exit_signal,
                is_held: false,
            }),
            children: Children::default(),
            threads: BTreeSet::from([pid]),
            leader_status: None,
            child_waiters: Vec::new(),
            vfork_parent: new.vfork.then_some(caller),
            tracees: BTreeSet::new(),
            ended_tracees: BTreeMap::new(),
            tracer: None,
            dump: None,
            creator: Some(caller).filter(|_| !new.same_parent),
            gives_memory: false,
            executing: None,
            actions,
            pending: PendingSignals::default(),
            queued: 0,
            timer_overruns: BTreeMap::new(),
            listeners: Vec::new(),
            executions: 0,
            parent_executions: if new.same_parent { origin.parent_executions } else { origin.executions },
            birth: self.forks + 1,
            is_dumpable: origin.is_dumpable,
            time_warnings: 0,
            ended_usage: Usage::default(),
            share,
            pid_namespace: namespace,
            memory_owner: origin.memory_owner.clone(),
            credentials: new.credentials.clone().unwrap_or_else(|| caller_thread.credentials.clone()),
            name: caller_thread.name,
            children_usage: Usage::default(),
            limits: origin.limits.clone(),
            randomises: origin.randomises,
            nice: caller_thread.schedule.inherited(origin.nice).1,
            memory_adjustment: origin.memory_adjustment,
            least_memory_adjustment: origin.least_memory_adjustment,
            is_subreaper: false,
            started: new.now,
        };
        self.enter_process(process);
        Ok(())
    }

    /// The priority and the time slice of a thread for the machine, as
    /// [`Schedule::for_machine`] says. `ESRCH`.
    pub fn machine_schedule(&self, tid: Pid) -> Result<(u8, u32)> {
        let thread = self.thread(tid)?;
        let process = self.process(thread.pid)?;
        Ok(thread.schedule.for_machine(process.nice, process.share.level()))
    }

    /// The same for a thread whose underlying thread is new; `None` if it has these values already.
    pub(crate) fn unusual_schedule(&self, tid: Pid) -> Option<(u8, u32)> {
        let thread = self.thread(tid).ok()?;
        let process = self.process(thread.pid).ok()?;
        let (nice, level) = (process.nice, process.share.level());
        (!thread.schedule.is_usual(nice, level)).then(|| thread.schedule.for_machine(nice, level))
    }

    /// Removes a thread that [`Table::create`] made and that never ran, because the rest of clone
    /// failed.
    pub fn abandon(&mut self, tid: Pid) {
        let Some(thread) = self.threads.remove(&tid) else { return };
        if thread.pid == tid {
            self.remove_process(tid);
            return;
        }
        self.release_id(tid);
        self.charge(thread.credentials.user.real, -1, 0);
        if let Some(process) = self.processes.get_mut(&thread.pid) {
            process.threads.remove(&tid);
            self.thread_exited(thread.pid);
        }
    }

    /// Begins to replace the program of `tid`'s process: every other thread has to exit. `EAGAIN`
    /// if the process is ending or another thread has begun before; the caller then has to exit.
    pub fn begin_exec(&mut self, tid: Pid) -> Result<()> {
        let pid = self.thread(tid)?.pid;
        let process = self.process_mut(pid)?;
        if process.state.phase != Phase::Running || process.executing.is_some_and(|other| other != tid) {
            return Err(Error::EAGAIN);
        }
        process.executing = Some(tid);
        let others: Vec<Pid> = process.threads.iter().copied().filter(|other| *other != tid).collect();
        for other in others {
            if let Some(thread) = self.threads.get_mut(&other) {
                thread.must_exit = true;
            }
            self.wake(other);
        }
        Ok(())
    }

    /// Whether `tid` is the only thread left in its process.
    pub fn is_alone(&self, tid: Pid) -> bool {
        self.process_of(tid).is_ok_and(|process| process.threads.len() == 1)
    }

    /// Finishes exec: the thread takes the process's id, which is returned. Handlers, the alternate
    /// stack and whatever pointed into the old memory are reset, and a parent in vfork goes on. The
    /// thread must be the only one of its process. `ESRCH`, with nothing changed, if it has ended.
    pub fn finish_exec(&mut self, tid: Pid, program: NewProgram<'_>) -> Result<Pid> {
        let pid = self.process_of(tid)?.pid;
        if tid != pid {
            self.become_first_thread(tid, pid);
        }
        if let Some(tracing) = self.tracing_mut(pid) {
            tracing.executed = Some(tid);
        }
        let own_ids = program.credentials.acts_for_itself();
        // The order matters: a change of user ids makes the process one that others may not
        // inspect, and the new program's own setting must not undo that.
        if let Some(process) = self.processes.get_mut(&pid) {
            process.is_dumpable = own_ids && program.is_readable;
            process.memory_owner = program.memory_owner;
        }
        self.replace_credentials(pid, program.credentials);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads = BTreeSet::from([pid]);
            process.executing = None;
            process.executions += 1;
            process.leader_status = None;
            process.timer_overruns = BTreeMap::new();
            process.name = stored_name(program.name);
            let mut actions = process.actions.lock().clone();
            actions.reset_for_exec();
            process.actions = Arc::new(SpinLock::new(actions));
        }
        if let Some(thread) = self.threads.get_mut(&pid) {
            thread.set_control(program.control);
            thread.name = stored_name(program.name);
            thread.stack = AlternateStack::default();
            if !own_ids {
                thread.parent_death_signal = None;
            }
        }
        self.change_state(pid, |state| state.exit_signal = Some(Signal::CHLD));
        self.release_vfork(pid);
        Ok(pid)
    }

    /// Makes thread `tid` the first thread of process `pid`, whose first thread has ended. From now
    /// on the process counts against the limits of the user of `tid`.
    fn become_first_thread(&mut self, tid: Pid, pid: Pid) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        self.release_id(tid);
        thread.tid = pid;
        let credentials = thread.credentials.clone();
        self.threads.insert(pid, thread);
        if let Some(tracer) = self.processes.get_mut(&pid).and_then(|process| process.tracer.take())
            && let Some(process) = self.processes.get_mut(&tracer.process)
        {
            process.tracees.remove(&pid);
        }
        self.traced_id_changed(tid, pid);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let signals = process.queued as i64;
        let (from, to) = (process.credentials.user.real, credentials.user.real);
        process.credentials = credentials;
        self.charge(from, -1, -signals);
        self.charge(to, 0, signals);
    }

    /// Wakes the parent's thread that waits in vfork for `pid`.
    pub(super) fn release_vfork(&mut self, pid: Pid) {
        if let Some(waiter) = self.processes.get_mut(&pid).and_then(|process| process.vfork_parent.take()) {
            self.wake(waiter);
        }
    }

    /// Whether the vfork of thread `caller` still has to wait for process `child`.
    pub fn vfork_waits(&self, caller: Pid, child: Pid) -> bool {
        self.processes.get(&child).is_some_and(|process| process.vfork_parent == Some(caller))
    }
}
