//! Exceptions of x86-64 processors and their meanings. Code above the machine uses the meanings,
//! not the vectors.

use super::Protection;

/// The meaning of an exception that a program has raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceptionCause {
    /// Division by zero, or a quotient that is too large.
    Divide,
    /// A single step, or a breakpoint of the debug registers.
    Step,
    /// A breakpoint instruction.
    Breakpoint,
    /// The overflow instruction.
    Overflow,
    /// The bound instruction.
    Bound,
    /// An undefined instruction.
    UndefinedInstruction,
    /// The thread has used extended state, and the kernel has no memory for it.
    NoExtendedState,
    /// A segment that is not present.
    Segment,
    /// A stack access outside of its segment, or at an address that is not canonical.
    Stack,
    /// An instruction that is not allowed, or an address that is not canonical.
    Protection,
    /// A page fault. If it is reported as an exception without an address, the kernel's memory did
    /// not suffice to map a page.
    PageFault,
    /// An unaligned access, in a program that has enabled the check.
    Alignment,
    /// An exception of the floating-point units: x87 or SSE.
    FloatingPoint,
    /// Any other exception: no program can cause it.
    Other,
}

/// The vector of a page fault.
const PAGE_FAULT: u64 = 14;

/// Bits of a page fault's error code: it was a store; an instruction fetch; an access at user
/// level.
const STORE: u64 = 2;
const USER: u64 = 4;
const FETCH: u64 = 16;

impl ExceptionCause {
    /// The cause of the exception with this vector.
    fn of_vector(vector: u64) -> ExceptionCause {
        match vector {
            0 => Self::Divide,
            1 => Self::Step,
            3 => Self::Breakpoint,
            4 => Self::Overflow,
            5 => Self::Bound,
            6 => Self::UndefinedInstruction,
            7 => Self::NoExtendedState,
            11 => Self::Segment,
            12 => Self::Stack,
            13 => Self::Protection,
            PAGE_FAULT => Self::PageFault,
            16 | 19 => Self::FloatingPoint,
            17 => Self::Alignment,
            _ => Self::Other,
        }
    }
}

/// An exception that the processor has raised for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorException {
    /// The vector. 14 (page fault) says that the kernel's memory did not suffice to map a page.
    pub vector: u64,
    /// The processor's error code where the kernel delivers it (a boot option), else 0.
    pub error: u64,
    /// The address of the instruction.
    pub ip: u64,
}

/// An exception in the processor's terms, as debuggers and signal handlers see it. Its meaning is
/// [`cause`](Self::cause).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExceptionState {
    /// The processor's error code.
    pub error: u64,
    /// The vector.
    pub number: u64,
    /// The faulting address.
    pub address: u64,
}

impl ExceptionState {
    /// The state that describes a page fault.
    pub fn of_page_fault(address: u64, access: Protection) -> ExceptionState {
        let bit = |right, bit: u64| if access.contains(right) { bit } else { 0 };
        let error = USER | bit(Protection::WRITE, STORE) | bit(Protection::EXECUTE, FETCH);
        ExceptionState { error, number: PAGE_FAULT, address }
    }

    /// What the exception means.
    pub fn cause(&self) -> ExceptionCause {
        ExceptionCause::of_vector(self.number)
    }

    /// The kind of access that faulted, if the exception is a page fault.
    pub fn access(&self) -> Protection {
        match () {
            () if self.error & STORE != 0 => Protection::WRITE,
            () if self.error & FETCH != 0 => Protection::EXECUTE,
            () => Protection::READ,
        }
    }
}

impl From<&ProcessorException> for ExceptionState {
    fn from(exception: &ProcessorException) -> ExceptionState {
        ExceptionState { error: exception.error, number: exception.vector, address: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_fault_says_how_memory_was_accessed() {
        for access in [Protection::READ, Protection::WRITE, Protection::EXECUTE] {
            let state = ExceptionState::of_page_fault(0x5008, access);
            assert_eq!((state.cause(), state.access()), (ExceptionCause::PageFault, access));
        }
        assert_eq!(ExceptionState::of_page_fault(8, Protection::WRITE).error, 6, "as the processor says it");
    }
}
