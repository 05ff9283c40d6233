//! Threads whose system calls a tracer or filters see: their stops, with the registers where their
//! tracer finds them.

use crate::call::Outcome;
use crate::errno;
use crate::filter::{ARCHITECTURE, Action, Filters};
use crate::kept::Kept;
use crate::layout::registers::TRAP_FLAG;
use crate::linux::Linux;
use crate::names::number::{execve, rt_sigreturn};
use crate::return_to_user::{Interrupted, all};
use alloc::boxed::Box;
use alloc::sync::Arc;
use mach::Machine;
use mach::machine::{Resume, SystemCall, ThreadState};
use unix::Error;
use unix::front_end::Next;
use unix::process::{ExitStatus, Pid, Table, TraceEvent, TraceResume, TraceStop};
use unix::signal::{Cause, Fault, RestartKind, Signal, SignalInformation};
use unix::thread::Thread;

/// What RAX shows in a stop after a call that a signal interrupted, by which a tracer knows that
/// the call may be restarted (ERESTARTSYS and others).
fn restart_code(kind: RestartKind) -> u64 {
    let code: i64 = match kind {
        RestartKind::Never => 4,
        RestartKind::RestartSys => 512,
        RestartKind::RestartNoIntr => 513,
        RestartKind::RestartNoHand => 514,
        RestartKind::RestartBlock => 516,
    };
    (-code) as u64
}

/// How the call with this number is restarted, if RAX still says so after a stop.
fn restart_of(rax: u64, call: Option<u64>) -> Interrupted {
    let kind = match (rax as i64).checked_neg()? {
        512 => RestartKind::RestartSys,
        513 => RestartKind::RestartNoIntr,
        514 => RestartKind::RestartNoHand,
        516 => RestartKind::RestartBlock,
        _ => return None,
    };
    call.filter(|call| (*call as i64) >= 0).map(|call| (kind, call))
}

impl<M: Machine> Linux<M> {
    /// Stops a thread for its tracer, which may change the registers with which the thread goes on,
    /// and the call that is restarted. `call` is the number of the system call in which the thread
    /// is.
    pub(crate) async fn stop_for_tracer(
        &self,
        thread: &Arc<Thread<M>>,
        resume: &mut Resume,
        interrupted: &mut Interrupted,
        stop: TraceStop,
        call: Option<u64>,
    ) -> unix::Result<()> {
        let (tid, processes) = (thread.tid(), thread.system().processes());
        let was_step = processes.with(|table| table.tracing(tid).is_some_and(|t| t.resume().is_step()));
        let state = all(resume, thread)?;
        let call = interrupted.map_or(call, |(_, number)| Some(number));
        if let Some((kind, _)) = *interrupted {
            state.rax = restart_code(kind);
        }
        if was_step {
            state.rflags &= !TRAP_FLAG;
        }
        thread.set_registers(state)?;
        let stopped = processes.stop_for_tracer(tid, stop, call).await.is_some();
        let call = match stopped {
            true => processes.with(|table| table.tracing(tid).map_or(call, |tracing| tracing.call())),
            false => call,
        };
        let state = Box::new(thread.registers()?);
        *interrupted = restart_of(state.rax, call);
        *resume = Resume::Registers(state);
        Ok(())
    }

    /// Lets a thread that has just executed a program report that to its tracer, as the tracer has
    /// asked. `before` is the thread's id before.
    pub(crate) async fn report_execution(
        &self,
        thread: &Arc<Thread<M>>,
        resume: &mut Resume,
        interrupted: &mut Interrupted,
        before: Pid,
    ) -> unix::Result<()> {
        let (tid, processes) = (thread.tid(), thread.system().processes());
        let message = before.number().into();
        match processes.with(|table| table.event_stop(tid, TraceEvent::Exec, message)) {
            Some(stop) => self.stop_for_tracer(thread, resume, interrupted, stop, Some(execve)).await?,
            None => processes.with(|table| table.signal_execution(tid)),
        }
        self.stop_after_call(thread, resume, interrupted, execve).await
    }

    /// The stop at the first instruction of a signal handler, if the tracer lets the thread execute
    /// one instruction.
    pub(crate) async fn stop_at_handler(
        &self,
        thread: &Arc<Thread<M>>,
        resume: &mut Resume,
    ) -> unix::Result<()> {
        let (tid, processes) = (thread.tid(), thread.system().processes());
        if !processes.with(|table| table.tracing(tid).is_some_and(|t| t.resume().is_step())) {
            return Ok(());
        }
        self.stop_for_tracer(thread, resume, &mut None, TraceStop::Handler, None).await
    }

    /// The stop after a system call, if the tracer has asked for it.
    async fn stop_after_call(
        &self,
        thread: &Arc<Thread<M>>,
        resume: &mut Resume,
        interrupted: &mut Interrupted,
        number: u64,
    ) -> unix::Result<()> {
        let (tid, processes) = (thread.tid(), thread.system().processes());
        match processes.with(|table| table.tracing(tid).map(|tracing| tracing.resume())) {
            Some(TraceResume::Calls) => {
                let stop = TraceStop::Call { is_entry: false };
                self.stop_for_tracer(thread, resume, interrupted, stop, Some(number)).await
            }
            // The system call was the one instruction.
            Some(how) if how.is_step() => {
                let at = all(resume, thread)?.rip;
                processes.with(|table| table.force(tid, Fault::StepOfCall.at(at)));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Serves a call of a thread that is traced or has filters: the filters decide about the call,
    /// and a tracer sees the beginning and the end.
    pub(crate) async fn serve_observed(
        &self,
        thread: &Arc<Thread<M>>,
        kept: &Kept<M>,
        request: SystemCall,
    ) -> Next<M> {
        match self.try_serve_observed(thread, kept, request).await {
            Ok(next) => next,
            Err(_) => self.lost(thread).await,
        }
    }

    async fn try_serve_observed(
        &self,
        thread: &Arc<Thread<M>>,
        kept: &Kept<M>,
        request: SystemCall,
    ) -> unix::Result<Next<M>> {
        let (tid, processes) = (thread.tid(), thread.system().processes());
        let mut request = request;
        let mut outcome = None;
        if let Some(how) = processes.with(|table| table.stops_at_calls(tid)) {
            let stop = TraceStop::Call { is_entry: true };
            let refused = errno::result(Err(Error::ENOSYS));
            let mut resume = Resume::Return(refused);
            self.stop_for_tracer(thread, &mut resume, &mut None, stop, Some(request.number)).await?;
            let state = thread.registers()?;
            let call = processes.with(|table| table.tracing(tid).map_or(Some(request.number), |t| t.call()));
            match call.filter(|_| !how.emulates()) {
                Some(number) => request = request_of(&state, number),
                // The tracer does not want the call to be made.
                None => outcome = Some(Outcome::Return(state.rax)),
            }
            kept.decoded.clear();
        }
        if outcome.is_none()
            && let Some(filters) = processes.with(|table| filters_of(table, tid))
        {
            outcome = self.filter(thread, &filters, &mut request).await?;
        }
        let outcome = match outcome {
            Some(outcome) => outcome,
            None => self.perform(thread, kept, request).await,
        };
        let (mut resume, mut interrupted) = match self.result_of(thread, request.number, outcome).await {
            Ok(result) => result,
            Err(next) => return Ok(next),
        };
        // After the return from a handler the registers are those of an instruction, not of a call.
        let number = if request.number == rt_sigreturn { u64::MAX } else { request.number };
        self.stop_after_call(thread, &mut resume, &mut interrupted, number).await?;
        Ok(self.return_from_call(thread, resume, interrupted).await)
    }

    /// Lets the filters of a thread decide about a call. `None`: the call is made.
    async fn filter(
        &self,
        thread: &Arc<Thread<M>>,
        filters: &Filters,
        request: &mut SystemCall,
    ) -> unix::Result<Option<Outcome>> {
        let (tid, processes) = (thread.tid(), thread.system().processes());
        let address = thread.registers()?.rip;
        let cause = |data: u16| {
            let cause = Cause::Filter { address, call: request.number as u32, architecture: ARCHITECTURE };
            SignalInformation { signal: Signal::SYS, error: data.into(), cause }
        };
        let end = |signal| {
            let status = ExitStatus::Killed(signal);
            processes.with(|table| table.begin_exit(thread.pid(), status));
            Ok(Some(Outcome::Exit(status)))
        };
        let refused = errno::result(Err(Error::ENOSYS));
        match filters.decide(request, address) {
            Action::Allow => Ok(None),
            Action::Fail(number) => Ok(Some(Outcome::Return((-i64::from(number)) as u64))),
            Action::Trap(data) => {
                processes.with(|table| table.force(tid, cause(data)));
                // The registers are as they were at the call.
                Ok(Some(Outcome::Return(request.number)))
            }
            Action::KillThread => Ok(Some(Outcome::Exit(ExitStatus::Killed(Signal::SYS)))),
            Action::KillProcess => end(Signal::SYS),
            Action::Forbidden => end(Signal::KILL),
            Action::Trace(data) => {
                let stop = processes.with(|table| table.event_stop(tid, TraceEvent::Filter, data.into()));
                let Some(stop) = stop else { return Ok(Some(Outcome::Return(refused))) };
                self.stop_in_call(thread, request.number, stop).await;
                let call =
                    processes.with(|table| table.tracing(tid).map_or(Some(request.number), |t| t.call()));
                let state = thread.registers()?;
                let Some(number) = call else { return Ok(Some(Outcome::Return(state.rax))) };
                *request = request_of(&state, number);
                // The filters look at what the tracer has made of the call, too, but do not ask
                // again.
                match filters.decide(request, address) {
                    Action::Allow | Action::Trace(_) => Ok(None),
                    Action::Fail(number) => Ok(Some(Outcome::Return((-i64::from(number)) as u64))),
                    _ => end(Signal::SYS),
                }
            }
        }
    }

    /// Stops a thread in the middle of a call, because of an event that its tracer has asked for.
    pub(crate) async fn stop_in_call(&self, thread: &Arc<Thread<M>>, number: u64, stop: TraceStop) {
        // If the thread has ended, the call finds that out.
        let mut resume = Resume::Return(errno::result(Err(Error::ENOSYS)));
        let _ = self.stop_for_tracer(thread, &mut resume, &mut None, stop, Some(number)).await;
    }
}

/// The filters of thread `tid`.
pub(crate) fn filters_of(table: &Table, tid: Pid) -> Option<Arc<Filters>> {
    table.filter(tid)?.downcast().ok()
}

/// The call with this number that a thread makes with these registers.
fn request_of(state: &ThreadState, number: u64) -> SystemCall {
    let arguments = [state.rdi, state.rsi, state.rdx, state.r10, state.r8, state.r9];
    SystemCall { number, arguments }
}
