//! Sockets.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::error::Error;
use crate::flow::Endpoint;
use crate::net::{LO, Net};
use crate::tcp::connection::Connection;
use crate::time::Instant;
use crate::types::*;

/// Memory that is counted for a datagram in addition to its bytes.
pub(crate) const OVERHEAD: usize = 256;
/// Entries of a queue of errors.
const REPORTS: usize = 16;

/// A socket.
pub(crate) struct Socket {
    pub(crate) id: SocketId,
    pub(crate) kind: Kind,
    pub(crate) options: Options,
    /// The own address, unspecified if any will do.
    pub(crate) local: Endpoint,
    /// The own address was given by the program, not chosen by connecting.
    pub(crate) fixed: bool,
    pub(crate) peer: Option<Endpoint>,
    pub(crate) port: PortUse,
    pub(crate) role: Role,
    /// An error of a socket without connection.
    pub(crate) error: Option<Error>,
    /// It is in the queue of sockets whose readiness may have changed.
    pub(crate) announced: bool,
}

/// What a socket has to do with its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortUse {
    None,
    /// It is in the port's list.
    Bound,
    /// It is counted among the port's connections.
    Counted,
}

/// What a socket does.
pub(crate) enum Role {
    /// A stream without connection.
    Idle,
    Listener(Listener),
    Stream(Box<Connection>),
    Datagrams(Box<Datagrams>),
}

/// A listener.
pub(crate) struct Listener {
    pub(crate) backlog: usize,
    /// Connections to be accepted.
    pub(crate) queue: VecDeque<SocketId>,
    /// Half-open connections.
    pub(crate) half: usize,
    /// Cookies were sent lately, and may return until then.
    pub(crate) cookies_until: Instant,
}

/// The queues of a socket for datagrams, packets or frames.
#[derive(Default)]
pub(crate) struct Datagrams {
    pub(crate) queue: VecDeque<Datagram>,
    /// Bytes in the queue.
    pub(crate) bytes: usize,
    pub(crate) drops: u64,
    pub(crate) reports: VecDeque<ErrorReport>,
    pub(crate) groups: Vec<(IpAddr, InterfaceIndex)>,
    pub(crate) read_closed: bool,
    pub(crate) write_closed: bool,
}

/// A datagram that has been received.
pub(crate) struct Datagram {
    pub(crate) bytes: Vec<u8>,
    pub(crate) received: Received,
}

impl Socket {
    /// Tells the caller of the stack that the readiness may have changed.
    pub(crate) fn announce(&mut self, net: &mut Net) {
        if !self.announced {
            self.announced = true;
            net.ready.push_back(self.id);
        }
    }

    pub(crate) fn family(&self) -> Family {
        self.kind.family()
    }

    /// Whether a packet to this address at this interface may be for the socket. What the system
    /// sends to its own addresses, also those of a link, arrives at `lo`.
    pub(crate) fn takes(&self, address: IpAddr, interface: InterfaceIndex) -> bool {
        let family = match self.family() {
            Family::V4 => address.is_ipv4(),
            // An IPv6 socket that is bound to an IPv4 address takes that only.
            Family::V6 => {
                address.is_ipv6() && self.local.address.is_ipv6()
                    || address.is_ipv4()
                        && !self.options.only_v6
                        && (self.local.address.is_ipv4() || self.local.address.is_unspecified())
            }
        };
        family
            && (self.local.address.is_unspecified() || self.local.address == address)
            && self.options.interface.is_none_or(|bound| bound == interface)
            && (self.local.scope == 0 || self.local.scope == interface.0 || interface == LO)
    }

    /// Takes a datagram, or drops it if there is no room.
    pub(crate) fn put(&mut self, net: &mut Net, parts: (&[u8], &[u8]), received: Received) {
        let limit = self.options.receive_buffer;
        let Role::Datagrams(datagrams) = &mut self.role else { return };
        let size = parts.0.len() + parts.1.len() + OVERHEAD;
        if datagrams.read_closed {
            return;
        }
        // One datagram fits in any buffer.
        if datagrams.bytes > 0 && datagrams.bytes + size > limit || !net.grow(size) {
            datagrams.drops += 1;
            if received.link.is_none() {
                net.count(received.interface, |counters| counters.received_drops += 1);
            }
            return;
        }
        let mut bytes = Vec::with_capacity(parts.0.len() + parts.1.len());
        bytes.extend_from_slice(parts.0);
        bytes.extend_from_slice(parts.1);
        datagrams.bytes += size;
        datagrams.queue.push_back(Datagram { bytes, received });
        self.announce(net);
    }

    /// Notes an error of a packet that this socket sent.
    pub(crate) fn report(&mut self, net: &mut Net, report: ErrorReport, hard: bool) {
        let queued = self.options.receive_errors;
        let connected = self.peer.is_some();
        let error = report.error;
        if let Role::Datagrams(datagrams) = &mut self.role
            && queued
            && datagrams.reports.len() < REPORTS
        {
            datagrams.reports.push_back(report);
        }
        if (hard && connected) || queued {
            self.error = Some(error);
            self.announce(net);
        }
    }
}

impl Kind {
    /// The family of the socket's addresses; frames have none.
    pub(crate) fn family(self) -> Family {
        match self {
            Kind::Tcp(family) | Kind::Udp(family) | Kind::IcmpEcho(family) | Kind::Raw(family, _) => family,
            Kind::Packet { .. } => Family::V4,
        }
    }

    /// The number of the socket's protocol.
    pub(crate) fn protocol(self) -> u8 {
        match self {
            Kind::Tcp(_) => 6,
            Kind::Udp(_) => 17,
            Kind::IcmpEcho(Family::V4) => 1,
            Kind::IcmpEcho(Family::V6) => 58,
            Kind::Raw(_, protocol) => protocol,
            Kind::Packet { .. } => 0,
        }
    }
}
