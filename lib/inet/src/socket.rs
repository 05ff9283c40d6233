//! Sockets.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::error::Error;
use crate::filter::{Program, Seen};
use crate::flow::Endpoint;
use crate::net::{LO, Net};
use crate::output::ETHERNET;
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
    /// The user to whose share the socket and its memory count.
    pub(crate) owner: u32,
    /// The own address, unspecified if any will do.
    pub(crate) local: Endpoint,
    /// The own address was given by the program, not chosen by connecting.
    pub(crate) fixed: bool,
    pub(crate) peer: Option<Endpoint>,
    pub(crate) port: PortUse,
    pub(crate) role: Role,
    /// Decides which packets the socket receives, and how many bytes of each.
    pub(crate) filter: Option<Program>,
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
    /// What a packet socket has asked interfaces for.
    pub(crate) memberships: Vec<(InterfaceIndex, Membership)>,
    pub(crate) statistics: PacketStatistics,
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

    /// Takes a datagram, or drops it if there is no room or the filter says so. The datagram is in
    /// two pieces; the first `hidden` bytes, in the first piece, are headers, which the receiver
    /// does not get.
    pub(crate) fn put(
        &mut self,
        net: &mut Net,
        pieces: (&[u8], &[u8]),
        hidden: usize,
        mut received: Received,
    ) {
        let limit = self.options.receive_buffer;
        let kept = self.filtered(pieces, hidden, &received);
        let Role::Datagrams(datagrams) = &mut self.role else { return };
        let Some(kept) = kept.filter(|_| !datagrams.read_closed) else { return };
        let size = kept + OVERHEAD;
        datagrams.statistics.received += 1;
        // One datagram fits in any buffer.
        if datagrams.bytes > 0 && datagrams.bytes + size > limit || !net.grow(size, self.owner) {
            datagrams.drops += 1;
            datagrams.statistics.dropped += 1;
            if received.link.is_none() {
                net.count(received.interface, |counters| counters.received_drops += 1);
            }
            return;
        }
        let mut bytes = Vec::with_capacity(kept);
        let head = &pieces.0[hidden..];
        bytes.extend_from_slice(&head[..kept.min(head.len())]);
        bytes.extend_from_slice(&pieces.1[..kept - bytes.len()]);
        received.length = kept;
        datagrams.bytes += size;
        datagrams.queue.push_back(Datagram { bytes, received });
        self.announce(net);
    }

    /// How many bytes of a datagram without its `hidden` bytes the receiver gets; `None` for none
    /// of the datagram at all.
    fn filtered(&self, pieces: (&[u8], &[u8]), hidden: usize, received: &Received) -> Option<usize> {
        let whole = pieces.0.len() + pieces.1.len() - hidden;
        let Some(filter) = &self.filter else { return Some(whole) };
        // The filter of a socket of UDP sees the header of UDP as well.
        let start = if matches!(self.kind, Kind::Udp(_)) { 0 } else { hidden };
        let link = received.link.as_ref();
        let network = match self.kind {
            Kind::Packet { .. } => Some(ETHERNET),
            Kind::Raw(Family::V4, _) => Some(0),
            _ => None,
        };
        let of_network = if received.to.is_some_and(|to| to.is_ipv6()) { 0x86dd } else { 0x0800 };
        let wanted = filter.run(&Seen {
            pieces,
            start,
            network,
            protocol: link.map_or(of_network, |link| link.protocol),
            class: link.map_or(0, |link| link.class as u8),
            interface: received.interface.0,
            hardware: if received.interface == LO { 772 } else { 1 },
        });
        let wanted = wanted as usize;
        (wanted > 0).then(|| (start + wanted).saturating_sub(hidden).min(whole))
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
