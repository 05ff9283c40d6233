//! Why a server has ended.

use core::fmt;
use x2::{Fpage, PortRange};

/// What ended a server.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// The server asked root to end it, with this status.
    Exit(u64),
    /// The instruction at `ip` accessed an address where the server has no memory.
    Fault { address: u64, ip: u64 },
    /// The instruction at `ip` raised an exception of this number.
    Exception { number: u64, ip: u64 },
    /// The instruction at `ip` used ports, an fpage, that the server does not have.
    Ports { fpage: u64, ip: u64 },
    /// The server's program could not be loaded or started.
    NotStarted,
}

impl End {
    /// The words by which an answer reports an end (`rt::root::servers::End`): zeros for `None`.
    pub(crate) fn words(end: Option<End>) -> [u64; 3] {
        match end {
            None => [0; 3],
            Some(End::Exit(status)) => [1, status, 0],
            Some(End::Fault { address, ip }) => [2, address, ip],
            Some(End::Exception { number, ip }) => [3, number, ip],
            Some(End::Ports { fpage, ip }) => {
                [4, Fpage::from_raw(fpage).ports().map_or(0, |ports| ports.first.into()), ip]
            }
            Some(End::NotStarted) => [5, 0, 0],
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            End::Exit(status) => write!(formatter, "exit with status {status}"),
            End::Fault { address, ip } => write!(formatter, "fault at {address:#x}, instruction {ip:#x}"),
            End::Exception { number, ip } => write!(formatter, "exception {number}, instruction {ip:#x}"),
            End::Ports { fpage, ip } => {
                match Fpage::from_raw(fpage).ports() {
                    Some(ports) if ports.size_log2 == 0 => {
                        write!(formatter, "use of port {:#x}", ports.first)
                    }
                    Some(ports @ PortRange { first, .. }) => {
                        write!(formatter, "use of ports {first:#x}..{:#x}", ports.last())
                    }
                    None => write!(formatter, "use of no ports"),
                }?;
                write!(formatter, ", instruction {ip:#x}")
            }
            End::NotStarted => write!(formatter, "it could not be started"),
        }
    }
}
