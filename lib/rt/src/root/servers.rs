//! The list of servers, with their states and what they use.

use super::{Status, ask};
use alloc::vec::Vec;

/// A server of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The name of the server.
    pub name: Vec<u8>,
    /// Memory that the server has, in bytes.
    pub used: u64,
    /// Memory that the server may have, in bytes.
    pub limit: u64,
    /// Whether the server runs.
    pub runs: bool,
    /// How often the server was started again.
    pub restarts: u64,
    /// Kernel memory that the server's own space uses, in bytes.
    pub kernel_memory: u64,
    /// How many threads the server and its spaces have.
    pub threads: u64,
    /// How many spaces the server has: its own and those that it owns.
    pub spaces: u64,
    /// Why the server ended the last time, if it has ended.
    pub end: Option<End>,
}

/// Why a server has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The server has [exited](super::exit) with this status.
    Exit(u64),
    /// The server accessed an address at which nothing is mapped.
    Fault {
        /// The address that was accessed.
        address: u64,
        /// The address of the instruction.
        ip: u64,
    },
    /// The server raised an exception.
    Exception {
        /// The number of the exception.
        number: u64,
        /// The address of the instruction.
        ip: u64,
    },
    /// The server accessed I/O ports that it does not have.
    Ports {
        /// The first of the ports.
        first: u64,
        /// The address of the instruction.
        ip: u64,
    },
    /// The server's program could not be loaded or started.
    NotStarted,
}

impl End {
    fn from_words(kind: u64, what: u64, ip: u64) -> Option<End> {
        match kind {
            1 => Some(End::Exit(what)),
            2 => Some(End::Fault { address: what, ip }),
            3 => Some(End::Exception { number: what, ip }),
            4 => Some(End::Ports { first: what, ip }),
            5 => Some(End::NotStarted),
            _ => None,
        }
    }
}

/// Describes the server at index `index` of the configuration.
///
/// # Errors
/// `NotFound`: there is no such server.
pub fn describe(index: u64) -> Result<Server, Status> {
    let (used, limit, runs, restarts, kernel_memory, threads, spaces, kind, what, ip, name) =
        ask(|root| root.root_server(index))?;
    let (name, end) = (name.to_vec(), End::from_words(kind, what, ip));
    Ok(Server { name, used, limit, runs: runs != 0, restarts, kernel_memory, threads, spaces, end })
}
