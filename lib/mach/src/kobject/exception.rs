//! Exceptions by port: a thread's exception is a message to the exception port of the thread, then
//! to that of its task.

use alloc::boxed::Box;
use alloc::sync::Arc;

use mach_interfaces::exc;

use super::PortPersonality;
use super::client::Caller;
use super::ports::Which;
use crate::ipc::{Right, SendRight};
use crate::machine::{ExceptionCause, Machine};
use crate::thread::{Exception, ExceptionKind, Handled, Thread};

/// Tells the owner of the thread's exception port of an exception, and if there is none or it does
/// not handle the exception, the owner of the task's. Waits for the reply. The thread goes on if
/// the reply says success, or if `thread_abort` ends the wait. A personality calls it from
/// [`raise`](crate::Personality::raise).
pub async fn raise<M: Machine, P: PortPersonality<M>>(
    thread: &Arc<Thread<M, P>>,
    exception: &Exception,
) -> Handled {
    let own = P::thread_ports(thread).special(Which::Exception);
    let of_task = P::task_ports(thread.task()).special(Which::Exception);
    for port in [own, of_task] {
        // Boxed, because the message takes room and exceptions are rare.
        if let Right::Send(port) = port
            && Box::pin(send(thread, port, exception)).await == Handled::Resume
        {
            return Handled::Resume;
        }
    }
    Handled::Pass
}

async fn send<M: Machine, P: PortPersonality<M>>(
    thread: &Arc<Thread<M, P>>,
    port: SendRight<M>,
    exception: &Exception,
) -> Handled {
    let (kind, code, subcode) = numbers(exception);
    let (ports, task) = (P::thread_ports(thread), P::task_ports(thread.task()));
    let mut caller = Caller::new(task.space(), port, Some(&ports.interruption));
    let (thread, task) = (caller.give(ports.port()), caller.give(task.port()));
    let mut client = exc::Client { transport: &mut caller, to: 0 };
    let result = client.exception_raise(thread, task, kind, code, subcode).await;
    match result {
        Ok(()) => Handled::Resume,
        Err(_) if caller.was_interrupted() => Handled::Resume,
        Err(_) => Handled::Pass,
    }
}

/// The numbers of an exception in Mach 3's interface for PCs: its kind, code and subcode.
fn numbers(exception: &Exception) -> (u32, u32, u64) {
    const INVALID_OPERATION: u32 = 1;
    const DIVISION: u32 = 1;
    const OVERFLOW: u32 = 2;
    const NO_UNIT: u32 = 3;
    const UNIT_ERROR: u32 = 5;
    const BOUND: u32 = 7;
    const STEP: u32 = 1;
    const BREAKPOINT: u32 = 2;
    let state = &exception.state;
    let own = (exception.kind as u32, exception.code as u32, exception.subcode);
    // Software can raise an exception without a cause in the processor.
    if exception.kind == ExceptionKind::BadAccess && state.cause() == ExceptionCause::PageFault {
        return own;
    }
    let (kind, code) = match state.cause() {
        ExceptionCause::Divide if exception.kind != ExceptionKind::Arithmetic => return own,
        ExceptionCause::Divide => (ExceptionKind::Arithmetic, DIVISION),
        ExceptionCause::Overflow => (ExceptionKind::Arithmetic, OVERFLOW),
        ExceptionCause::FloatingPoint => (ExceptionKind::Arithmetic, UNIT_ERROR),
        ExceptionCause::NoExtendedState => (ExceptionKind::Arithmetic, NO_UNIT),
        ExceptionCause::Bound => (ExceptionKind::Software, BOUND),
        ExceptionCause::Step => (ExceptionKind::Breakpoint, STEP),
        ExceptionCause::Breakpoint => (ExceptionKind::Breakpoint, BREAKPOINT),
        ExceptionCause::UndefinedInstruction => (ExceptionKind::BadInstruction, INVALID_OPERATION),
        ExceptionCause::Segment
        | ExceptionCause::Stack
        | ExceptionCause::Protection
        | ExceptionCause::Alignment
        | ExceptionCause::PageFault
        | ExceptionCause::Other => (ExceptionKind::BadInstruction, state.number as u32),
    };
    (kind as u32, code, state.error)
}
