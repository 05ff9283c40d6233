//! Exceptions of threads, which are handed to exception handlers.

use alloc::sync::Arc;

use super::Thread;
use crate::KernError;
use crate::machine::{ExceptionCause, ExceptionState, Machine, PageFault, ProcessorException};
use crate::personality::Personality;
use crate::vm::BoxFuture;

/// The kinds of exceptions, with Mach's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ExceptionKind {
    /// Memory could not be accessed; the codes are the error and the address.
    BadAccess = 1,
    /// An instruction that is undefined or not allowed.
    BadInstruction = 2,
    /// An arithmetic exception, such as a division by zero.
    Arithmetic = 3,
    /// An emulated instruction was executed.
    Emulation = 4,
    /// An exception that a language's run-time raises.
    Software = 5,
    /// A breakpoint or step.
    Breakpoint = 6,
    /// A system call of another system.
    SystemCall = 7,
}

/// An exception: its kind, two codes that depend on kind and machine, and the exception in the
/// processor's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The kind of the exception.
    pub kind: ExceptionKind,
    /// The machine's number for the exception, or the error of a page fault.
    pub code: u64,
    /// The address concerned, or further details.
    pub subcode: u64,
    /// The exception as the processor reported it.
    pub state: ExceptionState,
}

impl Exception {
    /// The exception for a page fault that the memory system cannot resolve.
    pub fn of_fault(fault: &PageFault, error: KernError) -> Self {
        let state = ExceptionState::of_page_fault(fault.address, fault.access);
        Self { kind: ExceptionKind::BadAccess, code: error as u64, subcode: fault.address, state }
    }

    /// The Mach exception for a processor exception.
    pub fn of_processor(exception: &ProcessorException) -> Self {
        let state = ExceptionState::from(exception);
        let kind = match state.cause() {
            ExceptionCause::Divide | ExceptionCause::Overflow | ExceptionCause::FloatingPoint => {
                ExceptionKind::Arithmetic
            }
            ExceptionCause::Step | ExceptionCause::Breakpoint => ExceptionKind::Breakpoint,
            ExceptionCause::UndefinedInstruction => ExceptionKind::BadInstruction,
            ExceptionCause::Bound
            | ExceptionCause::Segment
            | ExceptionCause::Stack
            | ExceptionCause::Protection
            | ExceptionCause::Alignment => ExceptionKind::BadAccess,
            ExceptionCause::NoExtendedState | ExceptionCause::PageFault | ExceptionCause::Other => {
                ExceptionKind::Software
            }
        };
        Self { kind, code: state.number, subcode: state.error, state }
    }
}

/// The outcome of an exception handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// The thread is resumed, in the state that the handler has left.
    Resume,
    /// The handler does not handle this exception; the next handler gets it.
    Pass,
}

/// A handler of exceptions of threads or tasks. While it runs, the thread is stopped, and its state
/// may be read and written.
pub trait ExceptionHandler<M: Machine, P: Personality<M> = ()>: Send + Sync {
    /// Handles one exception. The future may be dropped at any await, when the thread ends.
    fn raise<'a>(&'a self, thread: &'a Arc<Thread<M, P>>, exception: Exception) -> BoxFuture<'a, Handled>;
}
