//! Why a signal was sent: what siginfo_t says, by meaning instead of by layout.

use super::{Signal, SignalSet};
use core::time::Duration;

/// A signal instance: its number, why it came, and which process sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalInformation {
    /// The signal.
    pub signal: Signal,
    /// An error number that belongs to it, as the front end counts them; nearly always 0.
    pub error: i32,
    /// Why the signal was sent.
    pub cause: Cause,
}

/// Why a signal was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The system sent it, for no more specific reason (SI_KERNEL).
    System,
    /// kill(2).
    Kill {
        /// Sender's process id.
        process: u32,
        /// Sender's real user id.
        user: u32,
    },
    /// tgkill(2).
    ThreadKill {
        /// Sender's process id.
        process: u32,
        /// Sender's real user id.
        user: u32,
    },
    /// sigqueue(3); programs may state any negative code.
    Queue {
        /// The code that the sender stated, as the front end counts them.
        code: i32,
        /// The process id that the sender stated.
        process: u32,
        /// The user id that the sender stated.
        user: u32,
        /// The value sent along.
        value: u64,
    },
    /// A POSIX timer expired.
    Timer {
        /// The timer's id.
        timer: u32,
        /// Expirations not signalled since the last one delivered; filled in at delivery.
        overrun: u32,
        /// The value given at timer_create.
        value: u64,
    },
    /// A child changed its state.
    Child {
        /// The child.
        process: u32,
        /// The child's real user id.
        user: u32,
        /// The change of the child.
        event: ChildEvent,
        /// The child's user time.
        user_time: Duration,
        /// The child's system time.
        system_time: Duration,
    },
    /// An instruction of the thread itself failed.
    Fault {
        /// How.
        fault: Fault,
        /// The address that the fault concerns.
        address: u64,
    },
}

/// How a child changed.
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
}

/// How an instruction failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No memory is mapped there (SEGV_MAPERR).
    NotMapped,
    /// The mapping forbids this access (SEGV_ACCERR).
    NotPermitted,
    /// The address is not one (general protection); reported without an address.
    NotCanonical,
    /// Alignment (BUS_ADRALN).
    Alignment,
    /// Past the end of the mapped object, or its data could not be had (BUS_ADRERR).
    NoObject,
    /// Illegal opcode (ILL_ILLOPN).
    IllegalInstruction,
    /// Integer division by zero (FPE_INTDIV).
    IntegerDivide,
    /// Integer overflow (FPE_INTOVF).
    IntegerOverflow,
    /// Invalid floating-point operation (FPE_FLTINV).
    FloatInvalid,
    /// Breakpoint (TRAP_BRKPT).
    Breakpoint,
    /// Single step (TRAP_TRACE).
    Step,
}

impl Fault {
    /// The signal that the fault raises.
    pub fn signal(self) -> Signal {
        match self {
            Fault::NotMapped | Fault::NotPermitted | Fault::NotCanonical => Signal::SEGV,
            Fault::Alignment | Fault::NoObject => Signal::BUS,
            Fault::IllegalInstruction => Signal::ILL,
            Fault::IntegerDivide | Fault::IntegerOverflow | Fault::FloatInvalid => Signal::FPE,
            Fault::Breakpoint | Fault::Step => Signal::TRAP,
        }
    }

    /// The signal instance for this fault at `address`.
    pub fn at(self, address: u64) -> SignalInformation {
        SignalInformation { signal: self.signal(), error: 0, cause: Cause::Fault { fault: self, address } }
    }
}

impl SignalInformation {
    /// An instance sent by the system.
    pub fn system(signal: Signal) -> SignalInformation {
        SignalInformation { signal, error: 0, cause: Cause::System }
    }

    /// An instance of which nothing is remembered, because memory for the record was short.
    pub fn forgotten(signal: Signal) -> SignalInformation {
        SignalInformation { signal, error: 0, cause: Cause::Kill { process: 0, user: 0 } }
    }

    /// Whether the thread's own failing instruction caused it, rather than a program or an event.
    pub fn is_forced(&self) -> bool {
        match self.cause {
            Cause::Fault { .. } => true,
            Cause::System => SignalSet::SYNCHRONOUS.contains(self.signal),
            _ => false,
        }
    }

    /// Whether a program sent it, rather than the system: then the sender needs permission.
    pub fn is_from_program(&self) -> bool {
        matches!(self.cause, Cause::Kill { .. } | Cause::ThreadKill { .. } | Cause::Queue { .. })
    }
}
