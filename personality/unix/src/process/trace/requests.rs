//! The requests of tracers that concern the process table: attach, resume, detach.

use super::stops::TraceStop;
use super::{TraceOptions, TraceResume, Tracer, Tracing};
use crate::process::table::Table;
use crate::process::{InspectAs, Pid};
use crate::signal::{Signal, SignalInformation};
use crate::{Error, Privilege, Result};
use alloc::boxed::Box;

impl Table {
    /// Makes thread `tracer` the tracer of thread `tid`: by PTRACE_ATTACH (no options), which stops
    /// it, or by PTRACE_SEIZE. `EPERM`, `ESRCH`.
    ///
    /// The caller has to take what it then inspects of the tracee after this call, so that it is
    /// not that of another program: [`Table::may_inspect`] states the reason.
    pub fn attach(&mut self, tracer: Pid, tid: Pid, seize: Option<TraceOptions>) -> Result<()> {
        let process = self.thread(tracer)?.pid;
        let pid = self.thread(tid)?.pid;
        if process == pid {
            return Err(Error::EPERM);
        }
        self.may_inspect(tracer, pid, InspectAs::RealUser)?;
        if self.is_ended(pid) || self.tracing(tid).is_some() {
            return Err(Error::EPERM);
        }
        let options = seize.unwrap_or_default();
        self.set_tracing(tid, Tracing::new(Tracer { thread: tracer, process }, seize.is_some(), options));
        if seize.is_none() {
            let sender = self.thread(tracer)?.credentials.user.real;
            let cause = crate::signal::Cause::Kill { process: process.number(), user: sender };
            self.generate_for_thread(tid, SignalInformation { signal: Signal::STOP, error: 0, cause });
        }
        // A thread that is stopped already reports that to its new tracer.
        self.wake(tid);
        Ok(())
    }

    /// Makes the parent of the process of thread `tid` its tracer (PTRACE_TRACEME): the thread that
    /// made the process, if that still exists. `EPERM` if it is traced already; `ESRCH` without a
    /// parent.
    pub fn trace_me(&mut self, tid: Pid) -> Result<()> {
        if self.tracing(tid).is_some() {
            return Err(Error::EPERM);
        }
        let process = self.process_of(tid)?;
        let (pid, creator) = (process.pid, process.creator);
        let parent = process.state.parent.ok_or(Error::EPERM)?;
        let made_by = creator.filter(|thread| self.thread(*thread).is_ok_and(|t| t.pid == parent));
        let thread = made_by.or_else(|| self.process(parent).ok()?.first_thread()).ok_or(Error::EPERM)?;
        self.may_inspect(thread, pid, InspectAs::RealUser)?;
        self.set_tracing(
            tid,
            Tracing::new(Tracer { thread, process: parent }, false, TraceOptions::default()),
        );
        Ok(())
    }

    /// Makes the new thread `tid` a tracee of the tracer of `creator`.
    pub fn inherit_tracing(&mut self, creator: Pid, tid: Pid) {
        let Some(of_creator) = self.tracing(creator) else { return };
        let (tracer, is_seized, options) = (of_creator.tracer, of_creator.is_seized, of_creator.options);
        let mut tracing = Tracing::new(tracer, is_seized, options);
        tracing.is_interrupted = is_seized;
        self.set_tracing(tid, tracing);
        if !is_seized {
            let information = SignalInformation::system(Signal::STOP);
            self.generate_for_thread(tid, information);
        }
    }

    fn set_tracing(&mut self, tid: Pid, tracing: Tracing) {
        let tracer = tracing.tracer.process;
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.tracing = Some(Box::new(tracing));
        }
        if let Some(process) = self.processes.get_mut(&tracer) {
            process.tracees.insert(tid);
        }
    }

    /// Whether the tracer of thread `tid` may trace a program with more privileges than it has
    /// itself; true if there is no tracer.
    pub fn tracer_may_gain(&self, tid: Pid) -> bool {
        let Some(tracing) = self.tracing(tid) else { return true };
        let (Ok(tracer), Ok(thread)) = (self.thread(tracing.tracer.thread), self.thread(tid)) else {
            return false;
        };
        tracer.credentials.has_in(&thread.credentials.namespace, Privilege::Inspect)
    }

    /// Sets the options of a stopped tracee. `ESRCH`.
    pub fn set_trace_options(&mut self, tracer: Pid, tid: Pid, options: TraceOptions) -> Result<()> {
        self.stopped_tracee(tracer, tid)?.options = options;
        Ok(())
    }

    /// Lets a stopped tracee go on. A signal takes the place of the one because of which it
    /// stopped, if it did; `None` suppresses that one. `ESRCH`.
    pub fn resume_tracee(
        &mut self,
        tracer: Pid,
        tid: Pid,
        how: TraceResume,
        signal: Option<Signal>,
    ) -> Result<()> {
        self.stopped_tracee(tracer, tid)?.resume = how;
        self.release_tracee(tracer, tid, signal);
        Ok(())
    }

    /// Ends the tracing of a stopped tracee, which goes on (PTRACE_DETACH). `ESRCH`.
    pub fn detach(&mut self, tracer: Pid, tid: Pid, signal: Option<Signal>) -> Result<()> {
        self.stopped_tracee(tracer, tid)?;
        self.release_tracee(tracer, tid, signal);
        self.forget_tracing(tid);
        Ok(())
    }

    /// Ends the stop of a tracee with what its tracer says about the signal.
    fn release_tracee(&mut self, tracer: Pid, tid: Pid, signal: Option<Signal>) {
        let information = self.tracing(tid).and_then(Tracing::information);
        let stop = self.tracing_mut(tid).and_then(|tracing| tracing.stop.take());
        let sender = self.thread(tracer).map_or((0, 0), |t| (t.pid.number(), t.credentials.user.real));
        let cause = crate::signal::Cause::Kill { process: sender.0, user: sender.1 };
        let pid = self.thread(tid).map_or(tid, |thread| thread.pid);
        let own = self.seen_by(pid, SignalInformation { signal: Signal::STOP, error: 0, cause });
        let new = |signal, cause| match information {
            Some(information) if information.signal == signal => information,
            _ => SignalInformation { signal, error: 0, cause },
        };
        match stop {
            Some(TraceStop::Signal(_)) => {
                let blocked = |t: &crate::process::Thread, signal| t.blocked.contains(signal);
                let injected = signal.map(|signal| new(signal, own.cause));
                let later = self.threads.get_mut(&tid).and_then(|thread| {
                    thread.injected = injected.filter(|i| !blocked(thread, i.signal));
                    injected.filter(|i| blocked(thread, i.signal))
                });
                if let Some(information) = later {
                    self.generate_for_thread(tid, information);
                }
            }
            Some(TraceStop::Call { .. } | TraceStop::Handler) => {
                if let Some(signal) = signal {
                    self.generate_for_thread(tid, new(signal, cause));
                }
            }
            _ => {}
        }
        self.wake(tid);
    }

    /// Removes the record of a tracee, wherever it is.
    pub(super) fn forget_tracing(&mut self, tid: Pid) {
        let Some(tracing) = self.threads.get_mut(&tid).and_then(|thread| thread.tracing.take()) else {
            return;
        };
        if let Some(process) = self.processes.get_mut(&tracing.tracer.process) {
            process.tracees.remove(&tid);
        }
        self.wake(tid);
    }

    /// Makes a seized tracee stop as soon as possible (PTRACE_INTERRUPT). `EIO` if it was not
    /// seized, `ESRCH`.
    pub fn interrupt_tracee(&mut self, tracer: Pid, tid: Pid) -> Result<()> {
        let tracing = self.tracee(tracer, tid)?;
        if !tracing.is_seized {
            return Err(Error::EIO);
        }
        match tracing.stop {
            Some(_) if tracing.is_listening => {
                tracing.stop = None;
                tracing.is_interrupted = true;
            }
            // A tracee that is stopped has stopped.
            Some(_) => return Ok(()),
            None => tracing.is_interrupted = true,
        }
        self.wake(tid);
        Ok(())
    }

    /// Leaves a seized tracee in the stop of its process, and reports when that ends
    /// (PTRACE_LISTEN). `EIO` if it is in no such stop, `ESRCH`.
    pub fn listen_for_tracee(&mut self, tracer: Pid, tid: Pid) -> Result<()> {
        let stops = self.group_stop_of(tid).is_some();
        let tracing = self.stopped_tracee(tracer, tid)?;
        let is_stop_event = matches!(tracing.stop, Some(TraceStop::Group(_) | TraceStop::Interrupt));
        if !tracing.is_seized || !is_stop_event {
            return Err(Error::EIO);
        }
        tracing.is_listening = true;
        tracing.is_unreported = false;
        // The stop may have ended before: the tracee then reports that now.
        if !stops || tracing.is_interrupted {
            tracing.stop = None;
            tracing.is_interrupted = true;
            self.wake(tid);
        }
        Ok(())
    }
}
