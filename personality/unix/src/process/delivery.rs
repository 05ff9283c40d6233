//! Taking signals: what a thread has to do before it returns to its program.

use super::Pid;
use super::records::{ExitStatus, Phase, Stop};
use super::table::{FatalReport, Table};
use crate::signal::{
    Action, Cause, ChildEvent, DefaultAction, Disposition, Frame, Signal, SignalInformation, SignalSet,
};
use alloc::boxed::Box;

/// What a thread has to do next.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// Return to the program; from now on the thread counts as being there.
    Return,
    /// Enter a signal handler; then ask again.
    Handler(Box<Frame>),
    /// Stay stopped until the process is continued; then ask again.
    Stopped,
    /// Exit.
    Exit(ExitStatus),
}

impl Table {
    /// What thread `tid` has to do before it may return to its program. Takes at most one signal
    /// that has a handler.
    pub fn return_to_user(&mut self, tid: Pid) -> Delivery {
        loop {
            let Some(thread) = self.threads.get_mut(&tid) else {
                return Delivery::Exit(ExitStatus::Exited(0));
            };
            let pid = thread.pid;
            thread.awaited = SignalSet::EMPTY;
            let Some(process) = self.processes.get(&pid) else {
                return Delivery::Exit(ExitStatus::Exited(0));
            };
            match process.state.phase {
                Phase::Ending(status) | Phase::Zombie(status) => return Delivery::Exit(status),
                Phase::Running if thread.must_exit => return Delivery::Exit(ExitStatus::Exited(0)),
                Phase::Running => {}
            }
            thread.is_stopped = process.state.stop != Stop::Running;
            if thread.is_stopped {
                self.finish_stop(pid);
                return Delivery::Stopped;
            }
            let Some(information) = self.take_next(tid) else {
                if let Some(thread) = self.threads.get_mut(&tid) {
                    if let Some(mask) = thread.saved_mask.take() {
                        thread.blocked = mask;
                        // Signals that the old mask does not block are delivered now.
                        continue;
                    }
                    thread.is_in_program = true;
                    thread.waker = None;
                }
                return Delivery::Return;
            };
            if let Some(delivery) = self.act(tid, pid, information) {
                return delivery;
            }
        }
    }

    /// Acts on a signal that was taken; `None`: nothing to do for the thread, go on.
    fn act(&mut self, tid: Pid, pid: Pid, information: SignalInformation) -> Option<Delivery> {
        let signal = information.signal;
        let action = self.take_action(pid, signal)?;
        match action.disposition {
            Disposition::Ignore => None,
            Disposition::Handler(handler) => {
                let frame = self.enter_handler(tid, action, handler, information)?;
                Some(Delivery::Handler(Box::new(frame)))
            }
            // Only its own fault ends init; a sent signal of that number does not, also one that
            // was blocked meanwhile.
            Disposition::Default if pid == Pid::INIT && !information.is_forced() => None,
            Disposition::Default => match signal.default_action() {
                DefaultAction::Ignore | DefaultAction::Continue => None,
                DefaultAction::Stop => {
                    self.begin_stop(pid, signal);
                    None
                }
                DefaultAction::Terminate | DefaultAction::Core => {
                    self.report(tid, pid, information);
                    self.begin_exit(pid, ExitStatus::Killed(signal));
                    None
                }
            },
        }
    }

    /// The action for `signal`, which returns to the default if the program asked for that.
    fn take_action(&self, pid: Pid, signal: Signal) -> Option<Action> {
        let process = self.processes.get(&pid)?;
        let mut actions = process.actions.lock();
        let action = actions.get(signal);
        if action.flags.reset && matches!(action.disposition, Disposition::Handler(_)) {
            actions.set(signal, Action { disposition: Disposition::Default, ..action });
        }
        Some(action)
    }

    fn enter_handler(
        &mut self,
        tid: Pid,
        action: Action,
        handler: u64,
        information: SignalInformation,
    ) -> Option<Frame> {
        let thread = self.threads.get_mut(&tid)?;
        let saved_mask = thread.saved_mask.take().unwrap_or(thread.blocked);
        let stack = thread.stack;
        let own = if action.flags.no_defer { SignalSet::EMPTY } else { SignalSet::of(&[information.signal]) };
        let on_stack = action.flags.on_stack && stack.is_set();
        if on_stack && stack.auto_disarm {
            thread.stack = Default::default();
        }
        let mask = thread.blocked | action.mask | own;
        let _ = self.set_mask(tid, mask);
        Some(Frame { signal: information.signal, information, action, handler, saved_mask, stack, on_stack })
    }

    /// The frame of a handler could not be written: the thread gets SIGSEGV instead, fatally so if
    /// that was the signal.
    pub fn frame_failed(&mut self, tid: Pid, frame: &Frame) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.blocked = frame.saved_mask;
        thread.stack = frame.stack;
        let pid = thread.pid;
        if frame.signal == Signal::SEGV
            && let Some(process) = self.processes.get(&pid)
        {
            process.actions.lock().set(Signal::SEGV, Action::default());
        }
        self.force(tid, SignalInformation::system(Signal::SEGV));
    }

    /// Takes the next signal that thread `tid` does not block: its own faults first, then its own
    /// others, then its process's.
    fn take_next(&mut self, tid: Pid) -> Option<SignalInformation> {
        let thread = self.threads.get(&tid)?;
        let allowed = !thread.blocked;
        // The common case: no signal is pending.
        if thread.pending.is_empty() && self.processes.get(&thread.pid)?.pending.is_empty() {
            return None;
        }
        self.take_from(tid, SignalSet::SYNCHRONOUS & allowed, false)
            .or_else(|| self.take_from(tid, allowed, false))
            .or_else(|| self.take_from(tid, allowed, true))
    }

    /// Takes a pending signal in `wanted`, whether blocked or not, for sigtimedwait(2) and
    /// the like.
    pub fn take_signal(&mut self, tid: Pid, wanted: SignalSet) -> Option<SignalInformation> {
        self.take_from(tid, wanted, false).or_else(|| self.take_from(tid, wanted, true))
    }

    fn take_from(&mut self, tid: Pid, wanted: SignalSet, from_process: bool) -> Option<SignalInformation> {
        let thread = self.threads.get_mut(&tid)?;
        let pid = thread.pid;
        let process = self.processes.get_mut(&pid)?;
        let pending = if from_process { &mut process.pending } else { &mut thread.pending };
        let (information, freed) = pending.take(wanted)?;
        if let Cause::Timer { timer, overrun, .. } = information.cause {
            process.timer_overruns.insert(timer, overrun);
        }
        self.uncharge_signals(pid, u64::from(freed));
        Some(information)
    }

    /// timer_getoverrun(2).
    pub fn timer_overrun(&self, pid: Pid, timer: u32) -> u32 {
        self.processes.get(&pid).and_then(|process| process.timer_overruns.get(&timer)).copied().unwrap_or(0)
    }

    /// Stops process `pid` for `signal`, unless that is a terminal stop and its group is orphaned.
    fn begin_stop(&mut self, pid: Pid, signal: Signal) {
        let Some(process) = self.processes.get(&pid) else { return };
        if signal != Signal::STOP && self.is_orphaned(process.state.group) {
            return;
        }
        self.change_state(pid, |state| state.stop = Stop::Stopping(signal));
        self.wake_all_threads(pid);
    }

    /// Completes a stop if every thread has noticed: the parent is told.
    pub(super) fn finish_stop(&mut self, pid: Pid) {
        let Some(process) = self.processes.get(&pid) else { return };
        let Stop::Stopping(signal) = process.state.stop else { return };
        if process.threads.iter().all(|tid| self.threads.get(tid).is_none_or(|thread| thread.is_stopped)) {
            self.change_state(pid, |state| state.stop = Stop::Stopped(signal));
            self.tell_parent(pid, ChildEvent::Stopped(signal));
        }
    }

    fn report(&mut self, tid: Pid, pid: Pid, information: SignalInformation) {
        if information.signal.default_action() == DefaultAction::Core
            && let Some(process) = self.processes.get(&pid)
        {
            let name = process.name().to_vec();
            self.reports.push(FatalReport { pid, tid, name, information });
        }
    }

    /// Replaces the mask of thread `tid` for one request (sigsuspend, ppoll, pselect):
    /// the old mask returns when the thread next enters its program, after handlers that the
    /// request's mask admits. `ESRCH`.
    pub fn set_temporary_mask(&mut self, tid: Pid, mask: SignalSet) -> crate::Result<()> {
        let old = self.set_mask(tid, mask)?;
        let thread = self.thread_mut(tid)?;
        thread.saved_mask.get_or_insert(old);
        Ok(())
    }

    /// Ends the effect of [`Table::set_temporary_mask`] immediately, because the request completed
    /// without being interrupted.
    pub fn end_temporary_mask(&mut self, tid: Pid) {
        if let Some(mask) = self.threads.get_mut(&tid).and_then(|thread| thread.saved_mask.take()) {
            let _ = self.set_mask(tid, mask);
        }
    }

    /// Declares which blocked signals a sigtimedwait of thread `tid` takes, so that they wake it.
    pub(super) fn set_awaited(&mut self, tid: Pid, awaited: SignalSet) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.awaited = awaited;
        }
    }
}
