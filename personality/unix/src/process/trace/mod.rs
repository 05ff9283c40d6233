//! Tracing (ptrace(2)): which thread traces which, the stops of traced threads, and their reports.
//!
//! A traced thread stops in its own request: it shows its registers to the machine, calls
//! [`begin_trace_stop`](super::Table::begin_trace_stop), and waits until its tracer resumes it
//! ([`Processes::stop_for_tracer`](super::Processes::stop_for_tracer)). Its tracer learns of stops
//! and of its end by wait ([`wait_change`](super::Table::wait_change)).

mod end;
mod requests;
mod stops;
mod wait;

pub use stops::{TraceEvent, TraceStop};

use super::Pid;
use crate::signal::SignalInformation;

/// What a tracer asks of a tracee for the whole time (PTRACE_SETOPTIONS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// Stops at system calls are marked in the status that wait reports (PTRACE_O_TRACESYSGOOD).
    pub marks_calls: bool,
    /// The tracee is killed when its tracer ends (PTRACE_O_EXITKILL).
    pub kills_at_exit: bool,
    /// A bit for each [`TraceEvent`] at which the tracee stops, at the place of its number.
    pub events: u8,
}

impl TraceOptions {
    /// Whether the tracee stops at `event`.
    pub fn wants(&self, event: TraceEvent) -> bool {
        self.events & event.bit() != 0
    }
}

/// How a tracee goes on until its next stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceResume {
    /// It runs until something happens (PTRACE_CONT).
    #[default]
    Run,
    /// It stops at the beginning and at the end of a system call, too (PTRACE_SYSCALL).
    Calls,
    /// It executes one instruction (PTRACE_SINGLESTEP).
    Step,
    /// It stops at the beginning of a system call, which is not made (PTRACE_SYSEMU).
    Emulate,
    /// The same, or it stops after one instruction (PTRACE_SYSEMU_SINGLESTEP).
    EmulateStep,
}

impl TraceResume {
    /// Whether the tracee executes one instruction only.
    pub fn is_step(self) -> bool {
        matches!(self, TraceResume::Step | TraceResume::EmulateStep)
    }

    /// Whether system calls of the tracee are not made.
    pub fn emulates(self) -> bool {
        matches!(self, TraceResume::Emulate | TraceResume::EmulateStep)
    }
}

/// The tracer of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tracer {
    /// The tracing thread. Only this thread's requests are served.
    pub(super) thread: Pid,
    /// The process of that thread, all of whose threads may wait for the tracee.
    pub(super) process: Pid,
}

/// What is recorded of a traced thread.
#[derive(Clone, Debug)]
pub struct Tracing {
    pub(super) tracer: Tracer,
    /// Whether the tracer attached by PTRACE_SEIZE.
    pub(super) is_seized: bool,
    options: TraceOptions,
    resume: TraceResume,
    /// The stop in which the tracee waits for its tracer.
    stop: Option<TraceStop>,
    /// The stop has not been reported by wait.
    is_unreported: bool,
    /// The tracer lets the tracee stay in a stop of its process, and wants to know when that ends
    /// (PTRACE_LISTEN).
    is_listening: bool,
    /// The tracee has to stop as soon as possible (PTRACE_INTERRUPT).
    pub(super) is_interrupted: bool,
    /// The tracee has reported the present stop of its process, and need not stay stopped for it.
    pub(super) has_joined_stop: bool,
    /// The tracee has just executed a program: its id before that.
    pub(super) executed: Option<Pid>,
    /// The value that belongs to the last event (PTRACE_GETEVENTMSG).
    message: u64,
    /// The information of the signal of the present stop, as far as the tracer may change it.
    information: Option<SignalInformation>,
    /// The number of the system call in which the tracee is, if it is in one.
    call: Option<u64>,
}

impl Tracing {
    pub(super) fn new(tracer: Tracer, is_seized: bool, options: TraceOptions) -> Tracing {
        Tracing {
            tracer,
            is_seized,
            options,
            resume: TraceResume::Run,
            stop: None,
            is_unreported: false,
            is_listening: false,
            is_interrupted: false,
            has_joined_stop: false,
            executed: None,
            message: 0,
            information: None,
            call: None,
        }
    }

    /// The options that the tracer has set.
    pub fn options(&self) -> TraceOptions {
        self.options
    }

    /// Whether the tracer attached by PTRACE_SEIZE.
    pub fn is_seized(&self) -> bool {
        self.is_seized
    }

    /// How the tracer has resumed the tracee.
    pub fn resume(&self) -> TraceResume {
        self.resume
    }

    /// The id of the process that traces.
    pub fn tracer_process(&self) -> Pid {
        self.tracer.process
    }

    /// The id of the thread that traces.
    pub fn tracer_thread(&self) -> Pid {
        self.tracer.thread
    }

    /// The stop in which the tracee waits for its tracer.
    pub fn stop(&self) -> Option<TraceStop> {
        self.stop
    }

    /// The value that belongs to the last event (PTRACE_GETEVENTMSG).
    pub fn message(&self) -> u64 {
        self.message
    }

    /// The number of the system call in which the tracee stopped; `None` if it is in none.
    pub fn call(&self) -> Option<u64> {
        self.call
    }

    /// Sets the number of the system call that the tracee makes or restarts.
    pub fn set_call(&mut self, call: Option<u64>) {
        self.call = call;
    }

    /// The information of the signal because of which the tracee stopped; `None` if it stopped for
    /// another reason.
    pub fn information(&self) -> Option<SignalInformation> {
        self.information
    }

    /// Changes the information of that signal.
    pub fn set_information(&mut self, information: SignalInformation) {
        self.information = Some(information);
    }
}
