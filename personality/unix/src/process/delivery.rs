//! Delivery of signals: what a thread has to do before it returns to its program.

use super::Pid;
use super::records::{ExitStatus, Phase, Stop};
use super::table::{FatalReport, Table};
use super::trace::TraceStop;
use crate::signal::{
    Action, Cause, ChildEvent, DefaultAction, Disposition, Frame, Signal, SignalInformation, SignalSet,
};
use alloc::boxed::Box;

/// What a thread in the server has to do next.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// The thread has to return to its program. From now on the table records it as running in its
    /// program.
    Return,
    /// The same as [`Return`](Self::Return), for one instruction.
    Step,
    /// The thread has to report that it has executed a program, and then ask again. This is its id
    /// before that.
    Executed(Pid),
    /// The thread has to enter a signal handler, and then ask again.
    Handler(Box<Frame>),
    /// The thread has to stay stopped until its process is continued, and then ask again.
    Stopped,
    /// The thread has to stop for its tracer ([`Table::begin_trace_stop`]), and then ask again.
    Trace(TraceStop),
    /// The thread has to exit with this status.
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
            if thread.tracing.is_some() {
                if let Some(delivery) = self.trace_delivery(tid, pid) {
                    return delivery;
                }
            } else if process.state.stop == Stop::Running {
                thread.is_stopped = false;
            } else {
                thread.is_stopped = true;
                self.finish_stop(pid);
                return Delivery::Stopped;
            }
            if let Some(injected) = self.threads.get_mut(&tid).and_then(|thread| thread.injected.take()) {
                match self.act(tid, pid, injected) {
                    Some(delivery) => return delivery,
                    None => continue,
                }
            }
            let Some(information) = self.take_next(tid) else {
                if let Some(thread) = self.threads.get_mut(&tid) {
                    if let Some(mask) = thread.saved_mask.take() {
                        thread.blocked = mask;
                        // The restored mask may admit signals that the temporary mask blocked: they
                        // are delivered now.
                        continue;
                    }
                    thread.is_in_program = true;
                    thread.waker = None;
                    if thread.tracing.as_ref().is_some_and(|tracing| tracing.resume().is_step()) {
                        return Delivery::Step;
                    }
                }
                return Delivery::Return;
            };
            if information.signal != Signal::KILL && self.tracing(tid).is_some() {
                return Delivery::Trace(TraceStop::Signal(information));
            }
            if let Some(delivery) = self.act(tid, pid, information) {
                return delivery;
            }
        }
    }

    /// Does what the action for a signal says, which thread `tid` has taken; `None` if the thread
    /// may go on.
    fn act(&mut self, tid: Pid, pid: Pid, information: SignalInformation) -> Option<Delivery> {
        let signal = information.signal;
        let action = self.take_action(pid, signal)?;
        match action.disposition {
            Disposition::Ignore => None,
            Disposition::Handler(handler) => {
                let frame = self.enter_handler(tid, action, handler, information)?;
                Some(Delivery::Handler(Box::new(frame)))
            }
            // A sent signal does not end init; only a fault of its own instruction does. This holds
            // for a signal that was blocked for a while, too. SIGKILL and SIGSTOP are pending for
            // the first process of another namespace only if they come from outside of that.
            Disposition::Default
                if self.is_init(pid)
                    && !information.is_forced()
                    && (pid == Pid::INIT || !SignalSet::UNMASKABLE.contains(signal)) =>
            {
                None
            }
            Disposition::Default => match signal.default_action() {
                DefaultAction::Ignore | DefaultAction::Continue => None,
                DefaultAction::Stop => {
                    self.begin_stop(pid, signal);
                    None
                }
                DefaultAction::Terminate | DefaultAction::Core => {
                    self.report(tid, pid, information);
                    if signal.default_action() == DefaultAction::Core {
                        self.begin_dump(tid, pid, information);
                    }
                    self.begin_exit(pid, ExitStatus::Killed(signal));
                    None
                }
            },
        }
    }

    /// The action for `signal`, which is set back to the default if the program asked for that
    /// (SA_RESETHAND).
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
        if stack.auto_disarm {
            // This holds for a handler on the usual stack, too. The frame has what is restored.
            thread.stack = Default::default();
        }
        let mask = thread.blocked | action.mask | own;
        let _ = self.set_mask(tid, mask);
        Some(Frame { signal: information.signal, information, action, handler, saved_mask, stack, on_stack })
    }

    /// To be called if the frame of a handler could not be written to the stack: the thread gets
    /// SIGSEGV instead. If SIGSEGV was the signal of that frame, its process ends.
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

    /// Takes the next signal that thread `tid` does not block: faults of the thread first, then the
    /// thread's other signals, then those of its process.
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

    /// Takes a pending signal in `wanted`, even a blocked one (sigtimedwait(2)).
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

    /// The overrun count of the last signal of POSIX timer `timer` (timer_getoverrun(2)).
    pub fn timer_overrun(&self, pid: Pid, timer: u32) -> u32 {
        self.processes.get(&pid).and_then(|process| process.timer_overruns.get(&timer)).copied().unwrap_or(0)
    }

    /// Begins to stop process `pid` because of `signal`, unless that is a stop signal of the
    /// terminal and the process group is orphaned.
    fn begin_stop(&mut self, pid: Pid, signal: Signal) {
        let Some(process) = self.processes.get(&pid) else { return };
        if signal != Signal::STOP && self.is_orphaned(process.state.group) {
            return;
        }
        self.change_state(pid, |state| state.stop = Stop::Stopping(signal));
        self.group_stop_changed(pid, false);
        self.wake_all_threads(pid);
    }

    /// Completes a stop if every thread of process `pid` has stopped: the parent gets its signal.
    pub(super) fn finish_stop(&mut self, pid: Pid) {
        let Some(process) = self.processes.get(&pid) else { return };
        let Stop::Stopping(signal) = process.state.stop else { return };
        if process.threads.iter().all(|tid| self.threads.get(tid).is_none_or(|thread| thread.is_stopped)) {
            self.change_state(pid, |state| state.stop = Stop::Stopped(signal));
            self.notify_parent(pid, ChildEvent::Stopped(signal));
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

    /// Replaces the mask of thread `tid` for one request (sigsuspend, ppoll, pselect). The old mask
    /// is restored when the thread next returns to its program, after handlers that the temporary
    /// mask admits. `ESRCH`.
    pub fn set_temporary_mask(&mut self, tid: Pid, mask: SignalSet) -> crate::Result<()> {
        let old = self.set_mask(tid, mask)?;
        let thread = self.thread_mut(tid)?;
        thread.saved_mask.get_or_insert(old);
        Ok(())
    }

    /// Restores the mask that [`Table::set_temporary_mask`] replaced, because the request completed
    /// without being interrupted.
    pub fn end_temporary_mask(&mut self, tid: Pid) {
        if let Some(mask) = self.threads.get_mut(&tid).and_then(|thread| thread.saved_mask.take()) {
            let _ = self.set_mask(tid, mask);
        }
    }

    /// Sets which blocked signals wake thread `tid`, because its sigtimedwait takes them.
    pub(super) fn set_awaited(&mut self, tid: Pid, awaited: SignalSet) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.awaited = awaited;
        }
    }
}
