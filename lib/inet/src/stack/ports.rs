//! Sockets as entries of the stack's tables: their places, ports and flows.

use alloc::boxed::Box;
use core::net::IpAddr;

use super::{Owner, Stack, find};
use crate::error::{Error, Result};
use crate::filter::Program;
use crate::flow::{Endpoint, FlowKey, Port, PortKey};
use crate::socket::{Datagrams, PortUse, Role, Socket};
use crate::types::*;

/// The first port that the stack chooses, and how many there are, as Linux has it.
const FIRST: u16 = 32768;
const CHOICE: u16 = 28232;

impl Stack {
    pub(super) fn open_with(&mut self, kind: Kind, options: Options, owner: u32) -> Result<SocketId> {
        if self.sockets.len() >= self.net.limits.sockets {
            return Err(Error::NoBufferSpace);
        }
        if !self.net.add_socket(owner) {
            return Err(Error::NoBufferSpace);
        }
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let role = match kind {
            Kind::Tcp(_) => Role::Idle,
            _ => Role::Datagrams(Box::default()),
        };
        let index = self.sockets.insert(|index| Socket {
            id: SocketId { index, generation },
            kind,
            options,
            owner,
            local: Endpoint::any(kind.family()),
            fixed: false,
            peer: None,
            port: PortUse::None,
            role,
            filter: None,
            error: None,
            announced: false,
        });
        let id = SocketId { index, generation };
        match kind {
            Kind::Raw(..) => self.raws.push(id),
            Kind::Packet { .. } => {
                self.taps.push(id);
                self.net.tapping = true;
            }
            _ => {}
        }
        Ok(id)
    }

    /// Forgets a socket, with its memory and its place in all tables.
    pub(super) fn free(&mut self, id: SocketId) {
        if self.socket(id).is_err() {
            return;
        }
        self.leave_flow(id);
        self.leave_port(id);
        self.raws.retain(|other| *other != id);
        self.taps.retain(|other| *other != id);
        self.net.tapping = !self.taps.is_empty();
        let Some(socket) = self.sockets.remove(id.index) else { return };
        self.net.remove_socket(socket.owner);
        self.net.shrink(socket.filter.as_ref().map_or(0, Program::size), socket.owner);
        match socket.role {
            Role::Stream(mut connection) => {
                if let Some(at) = connection.scheduled {
                    self.timers.remove(&(at, super::Timed::Socket(id.index)));
                }
                connection.release(&mut self.net);
            }
            Role::Datagrams(datagrams) => {
                let Datagrams { bytes, groups, memberships, .. } = *datagrams;
                self.net.shrink(bytes, socket.owner);
                for (interface, membership) in memberships {
                    self.net.watch(interface, membership, false);
                }
                for (group, interface) in groups {
                    self.net.leave(interface, group);
                }
            }
            Role::Idle | Role::Listener(_) => {}
        }
    }

    pub(super) fn ports_entry(&mut self, protocol: u8, port: u16) -> &mut Port {
        let key = PortKey { protocol, port };
        if self.ports.get(&key).is_none() {
            self.ports.insert(key, Port::default());
        }
        // The entry was just made; the table has no operation for both in one.
        self.ports.get_mut(&key).expect("the entry of the port")
    }

    fn tidy_port(&mut self, key: PortKey) {
        if self.ports.get(&key).is_some_and(|port| port.bound.is_empty() && port.connections == 0) {
            self.ports.remove(&key);
        }
    }

    /// Takes the socket out of the list of its port.
    pub(super) fn leave_port(&mut self, id: SocketId) {
        let Ok(socket) = find(&mut self.sockets, id) else { return };
        let key = PortKey { protocol: socket.kind.protocol(), port: socket.local.port };
        match core::mem::replace(&mut socket.port, PortUse::None) {
            PortUse::None => {}
            PortUse::Bound => {
                if let Some(port) = self.ports.get_mut(&key) {
                    port.bound.retain(|other| *other != id);
                }
            }
            PortUse::Counted => self.uncount(key),
        }
        self.tidy_port(key);
    }

    /// One connection less has this port.
    pub(super) fn uncount(&mut self, key: PortKey) {
        if let Some(port) = self.ports.get_mut(&key) {
            port.connections = port.connections.saturating_sub(1);
        }
        self.tidy_port(key);
    }

    /// Takes the socket's flow out of the table.
    pub(super) fn leave_flow(&mut self, id: SocketId) {
        let Ok(socket) = self.socket(id) else { return };
        let Some(peer) = socket.peer else { return };
        let key = FlowKey::new(socket.kind.protocol(), &socket.local, &peer);
        if matches!(self.flows.get(&key), Some(Owner::Socket(owner)) if *owner == id) {
            self.flows.remove(&key);
        }
    }

    /// Whether a socket cannot be bound to an address because of others at its port.
    pub(super) fn conflicts(&self, id: SocketId, local: &Endpoint) -> bool {
        let Ok(socket) = self.socket(id) else { return true };
        let stream = matches!(socket.kind, Kind::Tcp(_));
        let key = PortKey { protocol: socket.kind.protocol(), port: local.port };
        let Some(port) = self.ports.get(&key) else { return false };
        if port.connections > 0 && !socket.options.reuse_address && stream {
            return true;
        }
        port.bound.iter().any(|other| {
            let Ok(other) = self.socket(*other) else { return false };
            let listens = matches!(other.role, Role::Listener(_));
            let both = |option: fn(&Options) -> bool| option(&socket.options) && option(&other.options);
            let shared = share(socket, other);
            let reused = both(|options| options.reuse_address) && !listens;
            overlap(socket, local, other) && !shared && !reused
        })
    }

    /// Whether another listener has this address already.
    pub(super) fn listens(&self, id: SocketId, local: &Endpoint) -> bool {
        let Ok(socket) = self.socket(id) else { return true };
        let Some(port) = self.ports.get(&PortKey { protocol: 6, port: local.port }) else { return false };
        port.bound.iter().filter(|other| **other != id).any(|other| {
            self.socket(*other).is_ok_and(|other| {
                matches!(other.role, Role::Listener(_))
                    && overlap(socket, local, other)
                    && !share(socket, other)
            })
        })
    }

    /// A free port; for a connection one that makes its flow a new one.
    pub(super) fn choose_port(
        &mut self,
        id: SocketId,
        local: &Endpoint,
        peer: Option<&Endpoint>,
    ) -> Result<u16> {
        let protocol = self.socket(id)?.kind.protocol();
        let start = self.net.random.next() as u16;
        for step in 0..CHOICE {
            let port = FIRST + (start % CHOICE + step) % CHOICE;
            let entry = self.ports.get(&PortKey { protocol, port });
            let free = match (entry, peer) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(entry), Some(peer)) => {
                    let local = Endpoint { port, ..*local };
                    entry.bound.is_empty() && self.flows.get(&FlowKey::new(protocol, &local, peer)).is_none()
                }
            };
            if free {
                return Ok(port);
            }
        }
        Err(if peer.is_some() { Error::AddressNotAvailable } else { Error::AddressInUse })
    }

    /// The socket at a port that a packet is for, of those that `fits` admits: the one that says
    /// most about its own address. Sockets that share a port share its flows.
    pub(super) fn lookup(
        &self,
        key: PortKey,
        address: IpAddr,
        interface: InterfaceIndex,
        hash: u64,
        fits: impl Fn(&Socket) -> bool,
    ) -> Option<SocketId> {
        let port = self.ports.get(&key)?;
        let admitted = || {
            let sockets = port.bound.iter().filter_map(|id| self.socket(*id).ok());
            sockets.filter(|socket| socket.takes(address, interface) && fits(socket))
        };
        let rank = |socket: &Socket| {
            u8::from(!socket.local.address.is_unspecified()) * 4
                + u8::from(socket.options.interface.is_some()) * 2
                + u8::from((socket.family() == Family::V4) == address.is_ipv4())
        };
        let best = admitted().map(rank).max()?;
        let count = admitted().filter(|socket| rank(socket) == best).count() as u64;
        admitted().filter(|socket| rank(socket) == best).nth((hash % count) as usize).map(|socket| socket.id)
    }

    /// How a socket appears in the tables of `/proc/net`.
    pub(super) fn describe(&self, socket: &Socket) -> SocketInfo {
        let family = socket.family();
        let mut info = SocketInfo {
            id: Some(socket.id),
            kind: socket.kind,
            local: socket.local.shown(family),
            remote: socket.peer.unwrap_or(Endpoint::any(family)).shown(family),
            state: State::Closed,
            receive_queue: 0,
            send_queue: 0,
            timer: None,
            drops: 0,
        };
        match &socket.role {
            Role::Idle => {}
            Role::Listener(listener) => {
                info.state = State::Listen;
                info.receive_queue = listener.queue.len();
                info.send_queue = listener.backlog;
            }
            Role::Stream(connection) => {
                info.state = connection.state;
                info.receive_queue = connection.received();
                info.send_queue = connection.unacknowledged();
                info.timer = connection.timer().map(|(timer, at)| (timer, at.since(self.net.now)));
            }
            Role::Datagrams(datagrams) => {
                if socket.peer.is_some() {
                    info.state = State::Established;
                }
                info.receive_queue = datagrams.bytes;
                info.drops = datagrams.drops;
            }
        }
        info
    }
}

/// Whether two sockets may have one port and address. Only those of one user do: another one could
/// take connections away.
fn share(socket: &Socket, other: &Socket) -> bool {
    socket.options.reuse_port && other.options.reuse_port && socket.owner == other.owner
}

/// Whether two sockets of a port could be meant by one packet.
fn overlap(socket: &Socket, local: &Endpoint, other: &Socket) -> bool {
    let interfaces = match (socket.options.interface, other.options.interface) {
        (Some(one), Some(two)) => one == two,
        _ => true,
    };
    let covers_v4 = |socket: &Socket, local: &Endpoint| {
        local.address.is_ipv4() || local.address.is_unspecified() && !socket.options.only_v6
    };
    let addresses = match (local.address.is_unspecified(), other.local.address.is_unspecified()) {
        (true, true) => {
            local.address.is_ipv4() == other.local.address.is_ipv4()
                || covers_v4(socket, local) && covers_v4(other, &other.local)
        }
        (true, false) => {
            local.address.is_ipv4() == other.local.address.is_ipv4()
                || other.local.address.is_ipv4() && covers_v4(socket, local)
        }
        (false, true) => {
            local.address.is_ipv4() == other.local.address.is_ipv4()
                || local.address.is_ipv4() && covers_v4(other, &other.local)
        }
        (false, false) => local.address == other.local.address && local.scope == other.local.scope,
    };
    interfaces && addresses
}
