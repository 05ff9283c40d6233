//! Exceptions: handing a thread's fault to what answers for it.

use alloc::sync::Arc;

use super::Thread;
use crate::KernError;
use crate::machine::{Machine, PageFault, ProcessorException, Protection};
use crate::personality::Personality;
use crate::vm::BoxFuture;

/// What a thread did, by Mach's kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ExceptionKind {
    /// Memory could not be accessed; the codes are the error and the address.
    BadAccess = 1,
    /// An instruction that is undefined or not allowed.
    BadInstruction = 2,
    /// Arithmetic.
    Arithmetic = 3,
    /// An emulated instruction.
    Emulation = 4,
    /// An exception that a language's run-time raises.
    Software = 5,
    /// A breakpoint or step.
    Breakpoint = 6,
    /// A system call of another system.
    SystemCall = 7,
}

/// An exception: its kind, two codes that depend on kind and machine, and the processor's own
/// account of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// What happened.
    pub kind: ExceptionKind,
    /// The machine's number for the exception, or the error of a page fault.
    pub code: u64,
    /// The address concerned, or more details of the code.
    pub subcode: u64,
    /// The exception as the processor reported it.
    pub state: ExceptionState,
}

/// An exception as the processor reported it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExceptionState {
    /// The processor's error code.
    pub error: u64,
    /// The vector.
    pub number: u64,
    /// The faulting address.
    pub address: u64,
}

/// Bits of a page fault's error code: a store, an instruction fetch, at user level.
const STORE: u64 = 2;
const USER: u64 = 4;
const FETCH: u64 = 16;

impl ExceptionState {
    /// How memory was accessed, if it is a page fault.
    pub fn access(&self) -> Protection {
        match () {
            () if self.error & STORE != 0 => Protection::WRITE,
            () if self.error & FETCH != 0 => Protection::EXECUTE,
            () => Protection::READ,
        }
    }
}

/// Vector of a page fault.
const PAGE_FAULT: u64 = 14;

impl Exception {
    /// The exception for a page fault that the memory system cannot resolve.
    pub fn of_fault(fault: &PageFault, error: KernError) -> Self {
        let bit = |right, bit: u64| if fault.access.contains(right) { bit } else { 0 };
        let bits = USER | bit(Protection::WRITE, STORE) | bit(Protection::EXECUTE, FETCH);
        let state = ExceptionState { error: bits, number: PAGE_FAULT, address: fault.address };
        Self { kind: ExceptionKind::BadAccess, code: error as u64, subcode: fault.address, state }
    }

    /// The Mach exception for a processor exception.
    pub fn of_processor(exception: &ProcessorException) -> Self {
        let ProcessorException { vector, error, .. } = *exception;
        let kind = match vector {
            0 | 4 | 16 | 19 => ExceptionKind::Arithmetic,
            1 | 3 => ExceptionKind::Breakpoint,
            6 => ExceptionKind::BadInstruction,
            5 | 11..=13 | 17 => ExceptionKind::BadAccess,
            _ => ExceptionKind::Software,
        };
        let state = ExceptionState { error, number: vector, address: 0 };
        Self { kind, code: vector, subcode: error, state }
    }
}

/// What an exception handler did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// The thread goes on, with the state that the handler has left.
    Resume,
    /// The handler does not handle this exception: the next handler is asked.
    Pass,
}

/// Handles exceptions of a thread or task. The thread is stopped, and its state may be read and
/// written, until the answer.
pub trait ExceptionHandler<M: Machine, P: Personality<M> = ()>: Send + Sync {
    /// Handles one exception. The future may be dropped at any await, when the thread dies.
    fn raise<'a>(&'a self, thread: &'a Arc<Thread<M, P>>, exception: Exception) -> BoxFuture<'a, Handled>;
}
