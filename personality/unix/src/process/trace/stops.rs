//! The stops of traced threads.

use super::{TraceResume, Tracing};
use crate::process::records::{Phase, Stop};
use crate::process::table::Table;
use crate::process::{Delivery, Pid};
use crate::signal::{Cause, ChildEvent, Signal, SignalInformation};
use crate::{Error, Result};

/// What a tracee may be asked to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// It has made a process by fork.
    Fork,
    /// It has made a process by vfork.
    VFork,
    /// It has made a thread or process by clone.
    Clone,
    /// It has executed a program.
    Exec,
    /// The child that it made by vfork has executed a program or ended.
    VForkDone,
    /// It is about to end.
    Exit,
    /// A filter of its system calls asks the tracer.
    Filter,
}

impl TraceEvent {
    /// The place of the event among [`TraceOptions::events`](super::TraceOptions::events), from 1
    /// on.
    pub fn number(self) -> u8 {
        match self {
            TraceEvent::Fork => 1,
            TraceEvent::VFork => 2,
            TraceEvent::Clone => 3,
            TraceEvent::Exec => 4,
            TraceEvent::VForkDone => 5,
            TraceEvent::Exit => 6,
            TraceEvent::Filter => 7,
        }
    }

    pub(super) fn bit(self) -> u8 {
        1 << self.number()
    }
}

/// Why a tracee has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceStop {
    /// It is about to take a signal.
    Signal(SignalInformation),
    /// A signal stops its process. With PTRACE_SEIZE this is reported as an event.
    Group(Signal),
    /// It has to stop because of PTRACE_INTERRUPT, or because the stop of its process has ended, or
    /// it is new.
    Interrupt,
    /// It begins a system call, or ends one.
    Call {
        /// Whether it begins the system call.
        is_entry: bool,
    },
    /// It has executed the single step into a signal handler.
    Handler,
    /// An event that the tracer asked for, with its value.
    Event(TraceEvent, u64),
}

impl Tracing {
    /// How wait reports a stop.
    pub(super) fn report_of(&self, stop: TraceStop, group: Option<Signal>) -> ChildEvent {
        /// The number of the event that is reported for a stop of a tracee that was seized.
        const STOP: u8 = 128;
        let traced = |signal, event| ChildEvent::Traced { signal, event, is_call: false };
        match stop {
            TraceStop::Signal(information) => traced(information.signal, 0),
            TraceStop::Group(signal) => traced(signal, if self.is_seized { STOP } else { 0 }),
            TraceStop::Interrupt => traced(group.unwrap_or(Signal::TRAP), STOP),
            TraceStop::Handler => traced(Signal::TRAP, 0),
            TraceStop::Event(event, _) => traced(Signal::TRAP, event.number()),
            TraceStop::Call { .. } => {
                ChildEvent::Traced { signal: Signal::TRAP, event: 0, is_call: self.options.marks_calls }
            }
        }
    }
}

impl Table {
    /// What is recorded of thread `tid` as a tracee; `None` if it is not traced.
    pub fn tracing(&self, tid: Pid) -> Option<&Tracing> {
        self.threads.get(&tid)?.tracing.as_deref()
    }

    pub(in crate::process) fn tracing_mut(&mut self, tid: Pid) -> Option<&mut Tracing> {
        self.threads.get_mut(&tid)?.tracing.as_deref_mut()
    }

    /// Begins a stop of thread `tid`, whose registers are where its tracer finds them: its tracer
    /// is told. `call` is the number of the system call in which the thread is. False if the thread
    /// does not stop: it is not traced, or it has to end.
    pub fn begin_trace_stop(&mut self, tid: Pid, stop: TraceStop, call: Option<u64>) -> bool {
        let is_last = matches!(stop, TraceStop::Event(TraceEvent::Exit, _));
        let ends = !is_last && self.must_exit(tid);
        let Some(thread) = self.threads.get_mut(&tid) else { return false };
        if let TraceStop::Signal(information) = stop {
            // If the tracer ends or does not trace any more, the signal is delivered.
            thread.injected = Some(information);
        }
        let Some(tracing) = thread.tracing.as_deref_mut().filter(|_| !ends) else { return false };
        tracing.stop = Some(stop);
        tracing.is_unreported = true;
        tracing.is_listening = false;
        tracing.call = call;
        tracing.information = match stop {
            TraceStop::Signal(information) => Some(information),
            _ => None,
        };
        if let TraceStop::Event(_, message) = stop {
            tracing.message = message;
        }
        if matches!(stop, TraceStop::Call { .. }) {
            tracing.message = if stop == (TraceStop::Call { is_entry: true }) { 1 } else { 2 };
        }
        self.tell_tracer(tid);
        true
    }

    /// The signal that stops the process of thread `tid` at present.
    pub(super) fn group_stop_of(&self, tid: Pid) -> Option<Signal> {
        match self.process_of(tid).ok()?.state.stop {
            Stop::Running => None,
            Stop::Stopping(signal) | Stop::Stopped(signal) => Some(signal),
        }
    }

    /// Sends SIGCHLD to the tracer of `tid`, and wakes its threads that wait.
    fn tell_tracer(&mut self, tid: Pid) {
        let group = self.group_stop_of(tid);
        let Some(tracing) = self.tracing(tid) else { return };
        let (tracer, stop) = (tracing.tracer.process, tracing.stop);
        let Some(stop) = stop else { return };
        let event = tracing.report_of(stop, group);
        self.tell_process(tracer, tid, event);
    }

    /// Whether thread `tid` stays in its stop.
    pub fn is_in_trace_stop(&self, tid: Pid) -> bool {
        let Some(stop) = self.tracing(tid).and_then(|tracing| tracing.stop) else { return false };
        let gives_memory = self.process_of(tid).is_ok_and(|process| process.gives_memory);
        match stop {
            TraceStop::Event(TraceEvent::Exit, _) => !gives_memory,
            _ => !self.must_exit(tid),
        }
    }

    /// Ends the stop of thread `tid`, which goes on; returns how its tracer has resumed it.
    pub fn end_trace_stop(&mut self, tid: Pid) -> TraceResume {
        let Some(thread) = self.threads.get_mut(&tid) else { return TraceResume::Run };
        thread.is_stopped = false;
        let Some(tracing) = thread.tracing.as_deref_mut() else { return TraceResume::Run };
        tracing.stop = None;
        tracing.is_unreported = false;
        tracing.is_listening = false;
        tracing.information = None;
        tracing.resume
    }

    /// The stop that thread `tid` has to make before it takes signals, if any.
    pub(in crate::process) fn trace_delivery(&mut self, tid: Pid, pid: Pid) -> Option<Delivery> {
        let stopped_by = self.group_stop_of(tid);
        if let Some(before) = self.tracing_mut(tid)?.executed.take() {
            return Some(Delivery::Executed(before));
        }
        let thread = self.threads.get_mut(&tid)?;
        let tracing = thread.tracing.as_deref_mut()?;
        if let Some(signal) = stopped_by.filter(|_| !tracing.has_joined_stop) {
            tracing.has_joined_stop = true;
            tracing.is_interrupted = false;
            thread.is_stopped = true;
            self.finish_stop(pid);
            return Some(Delivery::Trace(TraceStop::Group(signal)));
        }
        core::mem::take(&mut tracing.is_interrupted).then_some(Delivery::Trace(TraceStop::Interrupt))
    }

    /// Sends SIGTRAP to thread `tid`, which has executed a program, if its tracer has not asked for
    /// anything else (PTRACE_SEIZE, PTRACE_O_TRACEEXEC).
    pub fn signal_execution(&mut self, tid: Pid) {
        if self.tracing(tid).is_some_and(|tracing| !tracing.is_seized) {
            let cause = Cause::Kill { process: tid.number(), user: 0 };
            self.generate_for_thread(tid, SignalInformation { signal: Signal::TRAP, error: 0, cause });
        }
    }

    /// Whether a stop of its process keeps thread `tid` stopped: a tracee goes on as its tracer
    /// says.
    pub(in crate::process) fn stop_holds(&self, tid: Pid) -> bool {
        self.group_stop_of(tid).is_some() && self.tracing(tid).is_none_or(|tracing| !tracing.has_joined_stop)
    }

    /// To be called when a new stop of process `pid` begins (`is_over` false), or its stop is over:
    /// its tracees report that.
    pub(in crate::process) fn group_stop_changed(&mut self, pid: Pid, is_over: bool) {
        let Some(process) = self.processes.get(&pid) else { return };
        let traced = process.threads.iter().copied().filter(|tid| self.tracing(*tid).is_some());
        for tid in traced.collect::<alloc::vec::Vec<Pid>>() {
            let Some(tracing) = self.tracing_mut(tid) else { continue };
            let had_joined = core::mem::take(&mut tracing.has_joined_stop);
            if is_over && tracing.is_seized && had_joined {
                tracing.is_interrupted = true;
                if tracing.is_listening {
                    tracing.stop = None;
                }
                self.wake(tid);
            }
        }
    }

    /// Whether system calls of thread `tid` are reported when they begin: its tracer has resumed it
    /// so.
    pub fn stops_at_calls(&self, tid: Pid) -> Option<TraceResume> {
        let resume = self.tracing(tid)?.resume;
        matches!(resume, TraceResume::Calls | TraceResume::Emulate | TraceResume::EmulateStep)
            .then_some(resume)
    }

    /// The stop at `event` with its value, if the tracer of thread `tid` has asked for it.
    pub fn event_stop(&self, tid: Pid, event: TraceEvent, message: u64) -> Option<TraceStop> {
        self.tracing(tid)?.options.wants(event).then_some(TraceStop::Event(event, message))
    }

    /// The tracee `tid` of thread `tracer`, which is stopped. `ESRCH`.
    pub fn stopped_tracee(&mut self, tracer: Pid, tid: Pid) -> Result<&mut Tracing> {
        let lives = self.is_in_trace_stop(tid);
        let tracing = self.tracee(tracer, tid)?;
        if lives && !tracing.is_listening { Ok(tracing) } else { Err(Error::ESRCH) }
    }

    /// The tracee `tid` of thread `tracer`, in whatever state. `ESRCH`.
    pub fn tracee(&mut self, tracer: Pid, tid: Pid) -> Result<&mut Tracing> {
        self.tracing_mut(tid).filter(|tracing| tracing.tracer.thread == tracer).ok_or(Error::ESRCH)
    }

    /// Whether process `pid` is ending or has ended.
    pub(super) fn is_ended(&self, pid: Pid) -> bool {
        self.processes.get(&pid).is_none_or(|process| process.state.phase != Phase::Running)
    }
}
