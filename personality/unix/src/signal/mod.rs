//! Signals: numbers and sets, actions, pending queues, alternate stacks, restart rules.
//!
//! This module holds the parts that concern no particular process; `process::signals` generates
//! signals (permissions, targets, stop and continue) and `process::delivery` takes them (what a
//! thread has to do before it returns to its program). How a handler's frame lies on the stack is
//! the front end's matter: delivery produces a [`Frame`].
//!
//! Behaviour: signal(7), sigaction(2), sigqueue(3) and the pages they refer to.

mod action;
mod information;
mod pending;
mod restart;
mod set;
mod stack;

pub use action::{Action, ActionFlags, Actions, Disposition};
pub use information::{Cause, ChildEvent, Fault, SignalInformation};
pub use pending::PendingSignals;
pub use restart::{RestartKind, Resumption};
pub use set::SignalSet;
pub use stack::AlternateStack;

/// A signal: 1..=31 standard, 32..=64 real-time.
///
/// The standard numbers are the core's own and follow the System V order; a front end whose numbers
/// differ translates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(u8);

/// What a signal does to a process that has set no action for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultAction {
    /// The signal ends the process.
    Terminate,
    /// The process ends and may leave a memory image.
    Core,
    /// The signal is ignored.
    Ignore,
    /// The process stops until it is continued.
    Stop,
    /// The signal continues a stopped process.
    Continue,
}

macro_rules! signals {
    ($($name:ident = $number:literal, $action:ident, $text:literal;)*) => {
        #[allow(missing_docs, reason = "the names are POSIX's; `description` says what each means")]
        impl Signal { $(pub const $name: Signal = Signal($number);)* }

        impl Signal {
            /// Every standard signal.
            #[cfg(test)]
            const STANDARD: &[Signal] = &[$(Signal::$name,)*];

            /// What the signal does by default; real-time signals terminate the process.
            pub fn default_action(self) -> DefaultAction {
                match self { $(Signal::$name => DefaultAction::$action,)* _ => DefaultAction::Terminate }
            }

            /// The signal's POSIX name, `SIGRT` for real-time signals.
            pub fn name(self) -> &'static str {
                match self { $(Signal::$name => concat!("SIG", stringify!($name)),)* _ => "SIGRT" }
            }

            /// What the signal means, in words that are shown to users.
            pub fn description(self) -> &'static str {
                match self { $(Signal::$name => $text,)* _ => "Real-time signal" }
            }
        }
    };
}

signals! {
    HUP = 1, Terminate, "Hangup";
    INT = 2, Terminate, "Interrupt";
    QUIT = 3, Core, "Quit";
    ILL = 4, Core, "Illegal instruction";
    TRAP = 5, Core, "Trace or breakpoint trap";
    ABRT = 6, Core, "Aborted";
    BUS = 7, Core, "Bus error";
    FPE = 8, Core, "Arithmetic exception";
    KILL = 9, Terminate, "Killed";
    USR1 = 10, Terminate, "User defined signal 1";
    SEGV = 11, Core, "Segmentation fault";
    USR2 = 12, Terminate, "User defined signal 2";
    PIPE = 13, Terminate, "Broken pipe";
    ALRM = 14, Terminate, "Alarm clock";
    TERM = 15, Terminate, "Terminated";
    STKFLT = 16, Terminate, "Stack fault";
    CHLD = 17, Ignore, "Child exited";
    CONT = 18, Continue, "Continued";
    STOP = 19, Stop, "Stopped (signal)";
    TSTP = 20, Stop, "Stopped";
    TTIN = 21, Stop, "Stopped (terminal input)";
    TTOU = 22, Stop, "Stopped (terminal output)";
    URG = 23, Ignore, "Urgent socket condition";
    XCPU = 24, Core, "Processor time limit exceeded";
    XFSZ = 25, Core, "File size limit exceeded";
    VTALRM = 26, Terminate, "Virtual timer expired";
    PROF = 27, Terminate, "Profiling timer expired";
    WINCH = 28, Ignore, "Window changed";
    IO = 29, Terminate, "Input or output possible";
    PWR = 30, Terminate, "Power failure";
    SYS = 31, Core, "Bad system call";
}

impl Signal {
    /// The highest signal number.
    pub const MAX: u8 = 64;
    /// The first real-time signal.
    pub const REAL_TIME: Signal = Signal(32);

    /// The signal with this number; `None` if there is none.
    pub fn new(number: u32) -> Option<Signal> {
        (1..=u32::from(Signal::MAX)).contains(&number).then_some(Signal(number as u8))
    }

    /// The number of the signal, 1..=64.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Whether this is a real-time signal: several instances queue, in order, instead of merging
    /// into one.
    pub fn is_real_time(self) -> bool {
        self >= Signal::REAL_TIME
    }
}

impl core::fmt::Debug for Signal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.is_real_time() {
            true => write!(f, "SIGRT{}", self.0 - Signal::REAL_TIME.0),
            false => f.write_str(self.name()),
        }
    }
}

/// A signal handler that is to be called: all that a front end needs to build the frame on the
/// thread's stack.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The signal that is delivered.
    pub signal: Signal,
    /// Why the signal was sent.
    pub information: SignalInformation,
    /// What the program asked for with sigaction(2).
    pub action: Action,
    /// The entry address of the signal handler.
    pub handler: u64,
    /// The signal mask that is restored when the handler returns.
    pub saved_mask: SignalSet,
    /// The thread's alternate stack as it was set, to be recorded in the frame.
    pub stack: AlternateStack,
    /// Whether the frame may be placed on [`Frame::stack`] (SA_ONSTACK and an alternate stack is
    /// set). The thread may run on that stack already, which its stack pointer shows
    /// ([`AlternateStack::top_for`]).
    pub on_stack: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_numbers_have_their_names_and_default_actions() {
        assert_eq!(Signal::STANDARD.len(), 31);
        for (index, signal) in Signal::STANDARD.iter().enumerate() {
            assert_eq!(signal.number() as usize, index + 1);
            assert!(!signal.is_real_time());
        }
        assert_eq!(Signal::new(0), None);
        assert_eq!(Signal::new(65), None);
        assert!(Signal::new(32).unwrap().is_real_time());
        assert_eq!(Signal::new(64).unwrap().default_action(), DefaultAction::Terminate);
        assert_eq!(Signal::TSTP.default_action(), DefaultAction::Stop);
        assert_eq!(alloc::format!("{:?} {:?}", Signal::KILL, Signal::new(34).unwrap()), "SIGKILL SIGRT2");
    }
}
