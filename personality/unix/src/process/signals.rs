//! Generating signals (kill(2), tgkill(2), sigqueue(3)): permission, target, stop and continue.

use super::records::{ExitStatus, Phase, Process, Stop};
use super::table::{Table, Wake};
use super::{Pid, Resource};
use crate::file::{SignalOwner, SignalTarget};
use crate::signal::{
    Action, Cause, ChildEvent, DefaultAction, Disposition, Signal, SignalInformation, SignalSet,
};
use crate::{Error, Result};
use alloc::vec::Vec;

/// The processes that a call of kill(2) addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The process with this id.
    Process(Pid),
    /// Every process of the group with this id.
    Group(Pid),
    /// Every process of the sender's namespace except its first one and the sender's own.
    Everyone,
}

impl Table {
    /// Sends a signal from thread `sender` (kill(2)); `None` only checks the permission. `ESRCH`,
    /// `EPERM`, `EAGAIN`.
    pub fn kill(&mut self, sender: Pid, target: Target, signal: Option<Signal>) -> Result<()> {
        let thread = self.thread(sender)?;
        let own = thread.pid;
        let cause = Cause::Kill { process: own.number(), user: thread.credentials.user.real };
        let information = signal.map(|signal| SignalInformation { signal, error: 0, cause });
        let targets: Vec<Pid> = match target {
            Target::Process(pid) => return self.send_to_process(sender, pid, signal, information),
            Target::Group(group) => self.group_members(group),
            Target::Everyone => {
                let namespace = self.pid_namespace(own);
                let others = |pid: &Pid| *pid != own && self.number_in(&namespace, *pid) > 1;
                let targets: Vec<Pid> = self.processes.keys().copied().filter(others).collect();
                // A signal to all processes goes to those that the sender may signal. The other
                // processes are no error.
                let mut result = if targets.is_empty() { Err(Error::ESRCH) } else { Ok(()) };
                for pid in targets {
                    match self.send_to_process(sender, pid, signal, information) {
                        Ok(()) | Err(Error::EPERM) => {}
                        error => result = error,
                    }
                }
                return result;
            }
        };
        let mut result = Err(Error::ESRCH);
        for pid in targets {
            match self.send_to_process(sender, pid, signal, information) {
                Ok(()) => result = Ok(()),
                Err(error) if result.is_err() => result = Err(error),
                Err(_) => {}
            }
        }
        result
    }

    /// Sends a signal from thread `sender` to thread `target` (tgkill(2)), which must be one of
    /// `process`, if that is given. `None` for the signal only checks the permission. `ESRCH`,
    /// `EPERM`, `EAGAIN`.
    pub fn kill_thread(
        &mut self,
        sender: Pid,
        process: Option<Pid>,
        target: Pid,
        signal: Option<Signal>,
    ) -> Result<()> {
        let thread = self.thread(sender)?;
        let cause = Cause::ThreadKill { process: thread.pid.number(), user: thread.credentials.user.real };
        let information = signal.map(|signal| SignalInformation { signal, error: 0, cause });
        self.send_to_thread(sender, process, target, signal, information)
    }

    /// Sends a signal with `information` from thread `sender` to process `pid`, if the sender has
    /// permission (kill, sigqueue).
    pub fn send_to_process(
        &mut self,
        sender: Pid,
        pid: Pid,
        signal: Option<Signal>,
        information: Option<SignalInformation>,
    ) -> Result<()> {
        self.check_permission(sender, pid, signal)?;
        let is_outside = self.is_outside(sender, pid);
        let information = information.map(|information| self.stated_by(sender, pid, information));
        information
            .map_or(Ok(()), |information| self.generate(Recipient::Process(pid), information, is_outside))
    }

    /// Sends a signal with `information` from thread `sender` to thread `target`, if the sender has
    /// permission (tgkill, rt_tgsigqueueinfo).
    pub fn send_to_thread(
        &mut self,
        sender: Pid,
        process: Option<Pid>,
        target: Pid,
        signal: Option<Signal>,
        information: Option<SignalInformation>,
    ) -> Result<()> {
        let pid = self.thread(target)?.pid;
        if process.is_some_and(|process| process != pid) {
            return Err(Error::ESRCH);
        }
        self.check_permission(sender, pid, signal)?;
        let is_outside = self.is_outside(sender, pid);
        let information = information.map(|information| self.stated_by(sender, pid, information));
        information
            .map_or(Ok(()), |information| self.generate(Recipient::Thread(target), information, is_outside))
    }

    /// The information of a signal that thread `sender` sends to process `pid`. What it states
    /// itself is replaced if it has other numbers in the namespaces of the recipient.
    fn stated_by(&self, sender: Pid, pid: Pid, mut information: SignalInformation) -> SignalInformation {
        let (Ok(thread), Ok(recipient)) = (self.thread(sender), self.process(pid)) else {
            return information;
        };
        if let Cause::Queue { process, user, .. } = &mut information.cause {
            if self.pid_namespace(thread.pid) != recipient.pid_namespace {
                *process = self.number_in(&recipient.pid_namespace, thread.pid);
            }
            if thread.credentials.namespace != recipient.credentials.namespace {
                *user = recipient.credentials.namespace.shown_user(thread.credentials.user.real);
            }
        }
        information
    }

    fn check_permission(&self, sender: Pid, pid: Pid, signal: Option<Signal>) -> Result<()> {
        let (thread, target) = (self.thread(sender)?, self.process(pid)?);
        let same_session =
            || self.process(thread.pid).is_ok_and(|process| process.state.session == target.state.session);
        let allowed = thread.pid == pid
            || thread.credentials.may_signal(&target.credentials)
            || (signal == Some(Signal::CONT) && same_session());
        if allowed { Ok(()) } else { Err(Error::EPERM) }
    }

    /// Sends a signal that the system generates to process `pid`, if the process lives.
    pub fn generate_for_process(&mut self, pid: Pid, information: SignalInformation) {
        // A signal of the system becomes pending even if there is no record for its information.
        let _ = self.generate(Recipient::Process(pid), information, true);
    }

    /// Sends a signal that the system generates to thread `tid`, if the thread lives.
    pub fn generate_for_thread(&mut self, tid: Pid, information: SignalInformation) {
        let _ = self.generate(Recipient::Thread(tid), information, true);
    }

    /// Sends a signal that the system generates to every process of `group`.
    pub fn generate_for_group(&mut self, group: Pid, information: SignalInformation) {
        for pid in self.group_members(group) {
            self.generate_for_process(pid, information);
        }
    }

    /// Signals the owner of a file, as far as the thread that made it the owner may. If a signal
    /// that says what has happened finds no room, SIGIO says that something has.
    pub fn signal_for_file(&mut self, owner: &SignalOwner, information: SignalInformation) {
        let recipients: Vec<(Pid, Recipient)> = match owner.target {
            SignalTarget::Process(exact) if self.exact_process(exact).is_ok() => {
                Vec::from([(exact.pid(), Recipient::Process(exact.pid()))])
            }
            SignalTarget::Thread(exact, tid)
                if self.exact_process(exact).is_ok()
                    && self.thread(tid).is_ok_and(|thread| thread.pid == exact.pid()) =>
            {
                Vec::from([(exact.pid(), Recipient::Thread(tid))])
            }
            SignalTarget::Group(leader) => {
                let members = self.group_of(leader).map_or(Vec::new(), |group| self.group_members(group));
                members.into_iter().map(|pid| (pid, Recipient::Process(pid))).collect()
            }
            SignalTarget::Process(_) | SignalTarget::Thread(..) => return,
        };
        for (pid, recipient) in recipients {
            let may = |process: &Process| owner.setter.may_signal_for_file(&process.credentials);
            if self.process(pid).is_ok_and(may)
                && self.generate(recipient, information, true) == Err(Error::EAGAIN)
            {
                let _ = self.generate(recipient, SignalInformation::system(Signal::IO), true);
            }
        }
    }

    /// Whether a thread, a process or a group has this id.
    pub fn has_id(&self, id: Pid) -> bool {
        self.processes.contains_key(&id) || self.threads.contains_key(&id) || self.groups.contains_key(&id)
    }

    /// Raises a signal that an instruction of thread `tid` caused. The program cannot put it off:
    /// if it blocks or ignores the signal, the default action is taken.
    pub fn force(&mut self, tid: Pid, information: SignalInformation) {
        let signal = information.signal;
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let blocked = thread.blocked.contains(signal);
        thread.blocked.remove(signal);
        let pid = thread.pid;
        if let Some(process) = self.processes.get(&pid) {
            let mut actions = process.actions.lock();
            if blocked || actions.get(signal).disposition == Disposition::Ignore {
                actions.set(signal, Action::default());
            }
        }
        self.generate_for_thread(tid, information);
    }

    /// Records `expirations` (at least 1) of POSIX timer `timer` of process `pid`: queues its
    /// signal (for thread `tid`, if given), or counts overruns while the signal is pending.
    pub fn expire_timer(
        &mut self,
        pid: Pid,
        tid: Option<Pid>,
        expirations: u32,
        (timer, signal, value): (u32, Signal, u64),
    ) {
        let cause = Cause::Timer { timer, overrun: expirations - 1, value };
        let information = SignalInformation { signal, error: 0, cause };
        let pending = match tid {
            Some(tid) => self.threads.get_mut(&tid).map(|thread| &mut thread.pending),
            None => self.processes.get_mut(&pid).map(|process| &mut process.pending),
        };
        if pending.is_some_and(|pending| !pending.add_overrun(timer, expirations)) {
            let _ = self.generate(tid.map_or(Recipient::Process(pid), Recipient::Thread), information, true);
        }
    }

    /// Removes the pending signals of a deleted POSIX timer.
    pub fn forget_timer(&mut self, pid: Pid, timer: u32) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.timer_overruns.remove(&timer);
        let mut freed = process.pending.discard_timer(timer);
        for tid in &process.threads {
            freed += self.threads.get_mut(tid).map_or(0, |thread| thread.pending.discard_timer(timer));
        }
        self.uncharge_signals(pid, freed as u64);
    }

    /// Sets the action for `signal`, and returns the old one. If the signal is ignored now, pending
    /// instances of it are removed. `EINVAL` for signals that cannot be caught.
    pub fn set_action(&mut self, pid: Pid, signal: Signal, action: Action) -> Result<Action> {
        if SignalSet::UNMASKABLE.contains(signal) {
            return Err(Error::EINVAL);
        }
        let process = self.process_mut(pid)?;
        let (old, ignores) = {
            let mut actions = process.actions.lock();
            (actions.set(signal, action), actions.ignores(signal))
        };
        if ignores {
            self.discard(pid, SignalSet::of(&[signal]));
        }
        Ok(old)
    }

    /// Sets the signal mask of thread `tid` and returns the old one. `ESRCH`.
    pub fn set_mask(&mut self, tid: Pid, mask: SignalSet) -> Result<SignalSet> {
        let thread = self.thread_mut(tid)?;
        let old = core::mem::replace(&mut thread.blocked, mask.as_mask());
        let pid = thread.pid;
        // This thread may have been chosen to take signals of the process that it now blocks:
        // choose another.
        if !(mask & !old).is_empty() {
            self.wake_takers(pid);
        }
        Ok(old)
    }

    /// Removes pending instances of `signals` for process `pid` and its threads.
    fn discard(&mut self, pid: Pid, signals: SignalSet) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let mut freed = process.pending.discard(signals);
        for tid in &process.threads {
            freed += self.threads.get_mut(tid).map_or(0, |thread| thread.pending.discard(signals));
        }
        self.uncharge_signals(pid, freed as u64);
    }

    pub(super) fn uncharge_signals(&mut self, pid: Pid, count: u64) {
        if count == 0 {
            return;
        }
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.queued = process.queued.saturating_sub(count);
        let user = process.credentials.user.real;
        self.charge(user, 0, -(count as i64));
    }

    /// Makes a signal pending. `from_outside` says that no process of the recipient's namespace has
    /// sent it.
    fn generate(
        &mut self,
        recipient: Recipient,
        information: SignalInformation,
        from_outside: bool,
    ) -> Result<()> {
        let signal = information.signal;
        let pid = match recipient {
            Recipient::Process(pid) => pid,
            Recipient::Thread(tid) => self.thread(tid)?.pid,
        };
        let process = self.process(pid)?;
        if process.state.phase != Phase::Running {
            return Ok(());
        }
        if SignalSet::STOPPING.contains(signal) {
            self.discard(pid, SignalSet::of(&[Signal::CONT]));
        } else if signal == Signal::CONT {
            self.discard(pid, SignalSet::STOPPING);
            self.resume(pid);
        }
        if self.is_lost(recipient, pid, signal, from_outside) {
            return Ok(());
        }
        let information = self.seen_by(pid, information);
        let process = self.process(pid)?;
        let user = process.credentials.user.real;
        let used = self.users.get(&user).map_or(0, |charges| charges.signals);
        let room = used < process.limits.soft(Resource::PendingSignals);
        let pending = match recipient {
            Recipient::Process(pid) => &mut self.process_mut(pid)?.pending,
            Recipient::Thread(tid) => &mut self.thread_mut(tid)?.pending,
        };
        // Standard signals of the system keep their information even if the user's quota is used
        // up.
        let room = room || (!signal.is_real_time() && !information.is_from_program());
        if pending.push(information, room)? {
            self.process_mut(pid)?.queued += 1;
            self.charge(user, 0, 1);
        }
        if let Some(process) = self.processes.get(&pid) {
            let listeners = process.listeners.iter().filter_map(|listener| listener.upgrade());
            self.wakes.extend(listeners.map(Wake::Notify));
        }
        if signal == Signal::KILL || (self.is_fatal(recipient, pid, signal) && !self.is_traced(recipient)) {
            self.begin_exit(pid, ExitStatus::Killed(signal));
            return Ok(());
        }
        match recipient {
            Recipient::Thread(tid) if self.wants(tid, signal) => self.wake(tid),
            Recipient::Thread(_) => {}
            Recipient::Process(pid) => self.wake_taker(pid, signal),
        }
        Ok(())
    }

    /// Whether `signal` ends its recipient's process and a thread would take it now. The process
    /// then ends by this signal, whatever other signals its threads cause before they notice: in a
    /// pipeline that Ctrl-C ends, a writer whose reader ended first ends by SIGINT and not by
    /// SIGPIPE. False for a signal that asks for a core image, on which the thread acts that takes
    /// it, and for signals to init, which only its own fault ends.
    fn is_fatal(&self, recipient: Recipient, pid: Pid, signal: Signal) -> bool {
        if self.is_init(pid) || signal.default_action() != DefaultAction::Terminate {
            return false;
        }
        let Some(process) = self.processes.get(&pid) else { return false };
        let takes = |tid: &Pid| {
            self.threads.get(tid).is_some_and(|thread| !thread.must_exit && !thread.blocked.contains(signal))
        };
        process.state.stop == Stop::Running
            && process.actions.lock().get(signal).disposition == Disposition::Default
            && match recipient {
                Recipient::Thread(tid) => takes(&tid),
                Recipient::Process(_) => process.threads.iter().any(takes),
            }
    }

    /// Whether `signal` has no effect on its recipient and does not even become pending. A blocked
    /// signal becomes pending, since the program may set a handler before it unblocks the signal.
    fn is_lost(&self, recipient: Recipient, pid: Pid, signal: Signal, from_outside: bool) -> bool {
        let Some(process) = self.processes.get(&pid) else { return true };
        let actions = process.actions.lock();
        let default = actions.get(signal).disposition == Disposition::Default;
        let protected = self.is_init(pid) && default && signal.default_action() != DefaultAction::Continue;
        if protected && SignalSet::UNMASKABLE.contains(signal) {
            return pid == Pid::INIT || !from_outside;
        }
        if signal != Signal::KILL && self.is_traced(recipient) {
            // The tracer sees signals that the program ignores.
            return false;
        }
        let ignored = protected || actions.ignores(signal);
        let first = match recipient {
            Recipient::Thread(tid) => Some(tid),
            Recipient::Process(_) => process.first_thread(),
        };
        let thread = first.and_then(|tid| self.threads.get(&tid));
        ignored && !thread.is_some_and(|thread| thread.blocked.contains(signal))
    }

    /// Whether the thread that takes a signal is traced: for a signal to a process, its first one.
    fn is_traced(&self, recipient: Recipient) -> bool {
        let thread = match recipient {
            Recipient::Thread(tid) => Some(tid),
            Recipient::Process(pid) => self.processes.get(&pid).and_then(|process| process.first_thread()),
        };
        thread.is_some_and(|tid| self.tracing(tid).is_some())
    }

    /// Continues a stopped process: its threads go on, and the parent gets its signal.
    fn resume(&mut self, pid: Pid) {
        let Some(process) = self.processes.get(&pid) else { return };
        let stop = process.state.stop;
        if stop == Stop::Running {
            return;
        }
        self.change_state(pid, |state| state.stop = Stop::Running);
        self.group_stop_changed(pid, true);
        self.wake_all_threads(pid);
        if matches!(stop, Stop::Stopped(_)) {
            self.notify_parent(pid, ChildEvent::Continued);
        }
    }

    /// Sends SIGCHLD to the parent because `pid` stopped or continued, unless the parent does not
    /// want that (SA_NOCLDSTOP).
    pub(super) fn notify_parent(&mut self, pid: Pid, event: ChildEvent) {
        // A parent that traces the process gets the reports of a tracer instead.
        let parent = self.processes.get(&pid).and_then(|process| process.state.parent);
        if self.tracing(pid).is_some_and(|tracing| Some(tracing.tracer_process()) == parent) {
            return;
        }
        self.change_state(pid, |state| state.unreported = Some(event));
        let Some(parent) = self.processes.get(&pid).and_then(|process| process.state.parent) else {
            return;
        };
        let wanted = self.processes.get(&parent).is_some_and(|parent| {
            let action = parent.actions.lock().get(Signal::CHLD);
            action.disposition != Disposition::Ignore && !action.flags.no_child_stop
        });
        if wanted {
            let information = self.child_information(Signal::CHLD, pid, event);
            self.generate_for_process(parent, information);
        }
        self.wake_child_waiters(parent);
    }

    fn wants(&self, tid: Pid, signal: Signal) -> bool {
        self.threads.get(&tid).is_some_and(|thread| {
            !thread.must_exit && (!thread.blocked.contains(signal) || thread.awaited.contains(signal))
        })
    }

    /// Wakes one thread of `pid` that can take `signal`: the first thread if it can.
    fn wake_taker(&mut self, pid: Pid, signal: Signal) {
        let Some(process) = self.processes.get(&pid) else { return };
        let first = process.first_thread().into_iter();
        let taker = first.chain(process.threads.iter().copied()).find(|tid| self.wants(*tid, signal));
        if let Some(taker) = taker {
            self.wake(taker);
        }
    }

    /// Chooses again which threads take the signals that are pending for the process, and wakes
    /// these threads.
    pub(super) fn wake_takers(&mut self, pid: Pid) {
        let pending = self.processes.get(&pid).map_or(SignalSet::EMPTY, |process| process.pending.set());
        pending.iter().for_each(|signal| self.wake_taker(pid, signal));
    }
}

#[derive(Clone, Copy)]
enum Recipient {
    Process(Pid),
    Thread(Pid),
}
