//! Readiness of files, which poll(2), select(2), blocking reads and writes, and the calls of front
//! ends share.

mod queue;
mod until;
mod wait;

#[cfg(test)]
mod tests;

pub use queue::{PollQueue, Registration};
pub use until::{until_ready, until_ready_or_deadline};
pub use wait::{Watch, poll};

use bitflags::bitflags;

bitflags! {
    /// What an object is ready for, or what a waiter is interested in (poll(2)).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Readiness: u8 {
        /// A read does not block (POLLIN).
        const READ = 1;
        /// A write does not block (POLLOUT).
        const WRITE = 2;
        /// Something exceptional, such as a packet-mode state change of a pty (POLLPRI).
        const PRIORITY = 4;
        /// An error is pending, or the read end of a pipe is gone (POLLERR). Always reported.
        const ERROR = 8;
        /// The peer is gone (POLLHUP). Always reported.
        const HANGUP = 16;
        /// The peer has stopped writing (POLLRDHUP).
        const READ_HANGUP = 32;
    }
}

impl Readiness {
    /// The events that are reported whether or not they are asked for.
    pub const ALWAYS: Readiness = Readiness::from_bits_retain(8 | 16);
    /// The set of all readiness events.
    pub const ALL: Readiness = Readiness::from_bits_retain(63);
}
