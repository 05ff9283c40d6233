//! Processes: their families, groups and sessions, their states, and their signals.
//!
//! [`Table`] is the whole state of processes and threads as far as they concern each other: ids,
//! families, groups and sessions, stops and exits, signals. It is a plain state machine without
//! futures; a thread's resources (memory, descriptors, directories) are not in it. [`Processes`]
//! protects it by a lock and turns its states into futures.
//!
//! A thread is either in its program or in the server. [`Table::return_to_user`] is the only way
//! from the server to the program. An event for a thread in its program calls [`Control::recall`];
//! an event for a thread in the server wakes the thread's request, which then looks for the event
//! ([`Processes::interrupted`]).

mod accounting;
mod children;
mod delivery;
mod dump;
mod exit;
mod family;
mod futures;
mod groups;
mod ids;
mod inspect;
mod limits;
mod pid_namespace;
mod records;
mod sharing;
mod signals;
mod state;
mod table;
mod trace;
mod wait;

#[cfg(test)]
mod tests;

pub use accounting::Usage;
pub use delivery::Delivery;
pub use dump::{Dump, ThreadDump};
pub use exit::{ADJUSTMENT_UNIT, ThreadExit};
pub use family::{NewProgram, NewThread};
pub use futures::Processes;
pub(crate) use futures::race;
pub use ids::{ExactPid, Pid};
pub use inspect::InspectAs;
pub use limits::{Limit, Limits, Resource};
pub use pid_namespace::{OwnNumbers, PidNamespace};
pub use records::{Control, ExitStatus, Listener, Phase, Process, RunState, Stop, Thread};
pub use sharing::BOTTOM;
pub use signals::Target;
pub use table::{FatalReport, Table};
pub use trace::{TraceEvent, TraceOptions, TraceResume, TraceStop, Tracing};
pub use wait::{ChildReport, WaitFor, WaitOptions};
