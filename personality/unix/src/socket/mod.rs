//! Sockets of the Unix domain (unix(7)): stream, datagram and sequenced packets; names in the file
//! system and abstract ones; descriptors and credentials passed along.

mod connect;
mod rights;
mod transfer;
mod unix;

#[cfg(test)]
mod tests;

pub use rights::Rights;
pub use transfer::{ReceiveHow, Received, SendHow};
pub use unix::{SocketOptions, UnixSocket, socket, socket_pair};

use crate::process_context::ProcessId;
use crate::sync::SpinLock;
use crate::vfs::Caller;
use alloc::collections::BTreeMap;
use alloc::sync::Weak;
use alloc::vec::Vec;

/// How a socket transfers data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketType {
    /// A stream of bytes (SOCK_STREAM).
    Stream,
    /// Messages, each to any destination (SOCK_DGRAM).
    Datagram,
    /// Messages over a connection (SOCK_SEQPACKET).
    Packets,
}

/// A name in the Unix domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UnixAddress {
    /// The socket has no name.
    #[default]
    Unnamed,
    /// A path, as it was given.
    Path(Vec<u8>),
    /// A name that is in no file system.
    Abstract(Vec<u8>),
}

/// The process that sent a message or made a connection (struct ucred).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Process id.
    pub process: ProcessId,
    /// User id.
    pub user: u32,
    /// Group id.
    pub group: u32,
}

impl PeerCredentials {
    /// The caller's credentials.
    pub fn of(caller: &Caller<'_>) -> PeerCredentials {
        PeerCredentials {
            process: caller.process.process(),
            user: caller.identity.user,
            group: caller.identity.group,
        }
    }
}

/// Which half of a connection to shut down (shutdown(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// The socket receives nothing any more.
    Read,
    /// The socket sends nothing any more.
    Write,
    /// The socket neither receives nor sends any more.
    Both,
}

/// What all sockets of a system share: the abstract names.
#[derive(Default)]
pub struct Names {
    names: SpinLock<BTreeMap<Vec<u8>, Weak<UnixSocket>>>,
}
