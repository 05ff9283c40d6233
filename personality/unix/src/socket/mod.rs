//! Sockets of the Unix domain (unix(7)): streams, datagrams and sequenced packets; names in the
//! file system and abstract ones; descriptors and credentials that are passed with messages. And
//! those of the internet domains ([`InetSocket`]).

mod connect;
mod inet;
mod rights;
mod transfer;
mod unix;

#[cfg(test)]
mod tests;

pub use inet::{InetReceiveHow, InetReceived, InetSocket, Taker, close_and_linger, inet_socket};
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
    /// The socket is a stream of bytes (SOCK_STREAM).
    Stream,
    /// The socket sends messages, each to any destination (SOCK_DGRAM).
    Datagram,
    /// The socket sends messages over a connection (SOCK_SEQPACKET).
    Packets,
    /// The socket sends and receives packets with their headers (SOCK_RAW).
    Raw,
}

/// The address of a socket of the Unix domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UnixAddress {
    /// The socket has no name.
    #[default]
    Unnamed,
    /// The name is a path, as the program gave it.
    Path(Vec<u8>),
    /// The name is abstract: it is in no file system.
    Abstract(Vec<u8>),
}

/// The credentials of the process that sent a message or made a connection (struct ucred).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The process id of the peer.
    pub process: ProcessId,
    /// The user id of the peer.
    pub user: u32,
    /// The group id of the peer.
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

/// The abstract names, which all sockets of a system share.
#[derive(Default)]
pub struct Names {
    names: SpinLock<BTreeMap<Vec<u8>, Weak<UnixSocket>>>,
}
