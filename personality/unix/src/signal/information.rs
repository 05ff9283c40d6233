//! Why a signal was sent: what siginfo_t says, by meaning instead of by layout.

use super::{Signal, SignalSet};
use core::time::Duration;

/// A signal instance: its number, why it came, and which process sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalInformation {
    /// The number of the signal.
    pub signal: Signal,
    /// An error number that belongs to the signal, in the numbering of the front end; nearly always
    /// 0.
    pub error: i32,
    /// Why the signal was sent.
    pub cause: Cause,
}

/// Why a signal was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The system sent the signal, for no more specific reason (SI_KERNEL).
    System,
    /// A program sent the signal with kill(2).
    Kill {
        /// The process id of the sender.
        process: u32,
        /// The real user id of the sender.
        user: u32,
    },
    /// A program sent the signal with tgkill(2).
    ThreadKill {
        /// The process id of the sender.
        process: u32,
        /// The real user id of the sender.
        user: u32,
    },
    /// A program sent the signal with sigqueue(3), which may state any negative code.
    Queue {
        /// The code that the sender stated, in the numbering of the front end.
        code: i32,
        /// The process id that the sender stated.
        process: u32,
        /// The user id that the sender stated.
        user: u32,
        /// The value that the sender stated.
        value: u64,
    },
    /// A POSIX timer expired (SI_TIMER).
    Timer {
        /// The timer's id.
        timer: u32,
        /// Expirations since the last delivered signal that had none; filled in at delivery.
        overrun: u32,
        /// The value given at timer_create(2).
        value: u64,
    },
    /// A child changed its state.
    Child {
        /// The child's process id.
        process: u32,
        /// The child's real user id.
        user: u32,
        /// How the state of the child changed.
        event: ChildEvent,
        /// The user time of the child.
        user_time: Duration,
        /// The system time of the child.
        system_time: Duration,
    },
    /// A file has become ready, for which a signal of this number was asked (F_SETSIG).
    File {
        /// What has happened, in the numbering of the front end.
        code: i32,
        /// The events of poll(2) that this means, in the numbering of the front end.
        events: u32,
        /// The descriptor of the file.
        descriptor: i32,
    },
    /// A filter of system calls did not allow a call (SYS_SECCOMP); `error` is the filter's value.
    Filter {
        /// The address after the instruction that made the call.
        address: u64,
        /// The number of the call.
        call: u32,
        /// The architecture of the call, in the numbering of the front end.
        architecture: u32,
    },
    /// An instruction of the thread itself failed.
    Fault {
        /// How the instruction failed.
        fault: Fault,
        /// The address that the fault concerns.
        address: u64,
    },
}

/// How the state of a child process changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildEvent {
    /// The child ended with this status, 0..=255.
    Exited(u8),
    /// A signal ended the child.
    Killed(Signal),
    /// A signal ended the child and left a memory image.
    Dumped(Signal),
    /// A signal stopped the child.
    Stopped(Signal),
    /// The child was continued.
    Continued,
    /// A traced thread has stopped for its tracer.
    Traced {
        /// The signal that is reported.
        signal: Signal,
        /// The number of the event; 0 for none.
        event: u8,
        /// Whether the stop is one at a system call, and the tracer wants that marked.
        is_call: bool,
    },
}

/// How an instruction failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No memory is mapped there (SEGV_MAPERR).
    NotMapped,
    /// The mapping forbids this access (SEGV_ACCERR).
    NotPermitted,
    /// The address is not canonical (general protection); reported without an address.
    NotCanonical,
    /// The address is not aligned (BUS_ADRALN).
    Alignment,
    /// The address is past the end of the mapped object, or its data could not be had (BUS_ADRERR).
    NoObject,
    /// Illegal opcode (ILL_ILLOPN).
    IllegalInstruction,
    /// Integer division by zero (FPE_INTDIV).
    IntegerDivide,
    /// Integer overflow (FPE_INTOVF).
    IntegerOverflow,
    /// Invalid floating-point operation (FPE_FLTINV).
    FloatInvalid,
    /// A breakpoint instruction was executed; reported without an address.
    Breakpoint,
    /// A system call was made in single-step mode (TRAP_BRKPT).
    StepOfCall,
    /// One instruction was executed in single-step mode (TRAP_TRACE).
    Step,
    /// A breakpoint of the debug registers was reached (TRAP_HWBKPT).
    Watchpoint,
}

impl Fault {
    /// The signal that the fault raises.
    pub fn signal(self) -> Signal {
        match self {
            Fault::NotMapped | Fault::NotPermitted | Fault::NotCanonical => Signal::SEGV,
            Fault::Alignment | Fault::NoObject => Signal::BUS,
            Fault::IllegalInstruction => Signal::ILL,
            Fault::IntegerDivide | Fault::IntegerOverflow | Fault::FloatInvalid => Signal::FPE,
            Fault::Breakpoint | Fault::Step | Fault::StepOfCall | Fault::Watchpoint => Signal::TRAP,
        }
    }

    /// The signal that this fault at `address` raises.
    pub fn at(self, address: u64) -> SignalInformation {
        SignalInformation { signal: self.signal(), error: 0, cause: Cause::Fault { fault: self, address } }
    }
}

impl SignalInformation {
    /// A signal sent by the system.
    pub fn system(signal: Signal) -> SignalInformation {
        SignalInformation { signal, error: 0, cause: Cause::System }
    }

    /// A signal without information, because memory for its record was short.
    pub fn forgotten(signal: Signal) -> SignalInformation {
        SignalInformation { signal, error: 0, cause: Cause::Kill { process: 0, user: 0 } }
    }

    /// Whether the thread's own failing instruction caused the signal, rather than a program or an
    /// event.
    pub fn is_forced(&self) -> bool {
        match self.cause {
            Cause::Fault { .. } | Cause::Filter { .. } => true,
            Cause::System => SignalSet::SYNCHRONOUS.contains(self.signal),
            _ => false,
        }
    }

    /// Whether a program sent the signal, rather than the system: the sender then needs permission.
    pub fn is_from_program(&self) -> bool {
        matches!(self.cause, Cause::Kill { .. } | Cause::ThreadKill { .. } | Cause::Queue { .. })
    }
}
