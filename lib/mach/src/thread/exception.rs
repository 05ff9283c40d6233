//! Exceptions: handing a thread's fault to its exception handler.

use alloc::sync::Arc;

use super::Thread;
use crate::machine::Machine;
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
    /// Something a language's run-time makes.
    Software = 5,
    /// A breakpoint or step.
    Breakpoint = 6,
    /// A system call of another system.
    SystemCall = 7,
}

/// An exception: its kind, and two codes that depend on kind and machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// What happened.
    pub kind: ExceptionKind,
    /// The machine's number for it, or an error.
    pub code: u64,
    /// An address, or more of it.
    pub subcode: u64,
}

/// What a handler made of an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// The thread goes on, with the state that the handler has left.
    Resume,
    /// Not this one's: the next handler's.
    Pass,
}

/// Handles exceptions of a thread or task. The thread is stopped, and its state may be read and
/// written, until the answer.
pub trait ExceptionHandler<M: Machine>: Send + Sync {
    /// Handles one exception. The future may be dropped at any await, when the thread dies.
    fn raise<'a>(&'a self, thread: &'a Arc<Thread<M>>, exception: Exception) -> BoxFuture<'a, Handled>;
}
