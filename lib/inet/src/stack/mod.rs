//! The stack as its callers see it.

mod admin;
mod datagrams;
mod dhcp;
mod icmp;
mod ip;
mod packets;
mod ports;
mod sockets;
mod streams;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::error::{Error, Result};
use crate::flow::{FlowKey, Port, PortKey};
use crate::hash::Key;
use crate::net::Net;
use crate::slab::Slab;
use crate::socket::{Role, Socket};
use crate::table::Table;
use crate::tcp::half::Half;
use crate::tcp::waiting::Waiting;
use crate::time::Instant;
use crate::types::*;

/// All interfaces, routes and sockets of a system. The caller holds a lock around it.
pub struct Stack {
    net: Net,
    sockets: Slab<Socket>,
    /// Makes identifiers of sockets differ that use one place.
    generation: u32,
    /// Connections, and connected sockets for datagrams.
    flows: Table<FlowKey, Owner>,
    ports: Table<PortKey, Port>,
    /// Half-open connections.
    halves: BTreeMap<u64, Half>,
    /// Connections in TIME_WAIT, the oldest first.
    waits: BTreeMap<u64, Waiting>,
    /// The number of the next entry of these two.
    serial: u64,
    timers: BTreeSet<(Instant, Timed)>,
    /// Raw sockets.
    raws: Vec<SocketId>,
    /// Packet sockets.
    taps: Vec<SocketId>,
    dhcp: Vec<dhcp::Entry>,
}

/// Whose flow it is.
#[derive(Clone, Copy)]
enum Owner {
    Socket(SocketId),
    Half(u64),
    Waiting(u64),
}

/// What a timer is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timed {
    Socket(u32),
    Half(u64),
    Waiting(u64),
}

/// Packets that one call takes from `lo`; a socket that answers itself without end is not let run
/// for longer.
const LOOPED: usize = 512;

impl Stack {
    /// A stack with the interface `lo`. `seed` is secret and random: sequence numbers, ports and
    /// the places in hash tables depend on it.
    pub fn new(seed: [u8; 32], limits: Limits) -> Stack {
        let net = Net::new(seed, limits);
        let table = |net: &mut Net| {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&net.random.next().to_le_bytes());
            key[8..].copy_from_slice(&net.random.next().to_le_bytes());
            Key::new(key)
        };
        let mut net = net;
        let (flows, ports) = (table(&mut net), table(&mut net));
        Stack {
            net,
            sockets: Slab::new(),
            generation: 0,
            flows: Table::new(flows),
            ports: Table::new(ports),
            halves: BTreeMap::new(),
            waits: BTreeMap::new(),
            serial: 0,
            timers: BTreeSet::new(),
            raws: Vec::new(),
            taps: Vec::new(),
            dhcp: Vec::new(),
        }
    }

    /// Counts the identifiers of sockets from this number on, so that they differ from those of an
    /// earlier stack. For a stack without sockets.
    pub fn identify_from(&mut self, generation: u32) {
        self.generation = generation.wrapping_sub(1);
    }

    /// Tells the time, which must not go back. Every other call uses the last time that was told:
    /// `stack.at(now).send(..)`.
    pub fn at(&mut self, now: Instant) -> &mut Stack {
        self.net.now = now.max(self.net.now);
        self
    }

    /// How much the stack may hold.
    pub fn limits(&self) -> &Limits {
        &self.net.limits
    }

    /// Takes a frame that arrived at an interface. Malformed ones are counted and dropped.
    pub fn receive(&mut self, interface: InterfaceIndex, frame: &[u8], now: Instant) {
        self.at(now);
        self.take_frame(interface, frame, false);
        self.after_frame();
    }

    /// The same for a frame whose checksums above IP the device has verified.
    pub fn receive_verified(&mut self, interface: InterfaceIndex, frame: &[u8], now: Instant) {
        self.at(now);
        self.take_frame(interface, frame, true);
        self.after_frame();
    }

    /// The next frame to be sent by the interface's device.
    pub fn transmit(&mut self, interface: InterfaceIndex) -> Option<Frame> {
        self.net.link_mut(interface)?.queue.pop_front()
    }

    /// Whether [`Stack::transmit`] has a frame for some interface, in the order of their numbers.
    pub fn transmittable(&self) -> impl Iterator<Item = InterfaceIndex> {
        self.net.links.iter().filter(|link| !link.queue.is_empty()).map(|link| link.public.index)
    }

    /// Takes back a frame's buffer, so that the next frame need not allocate one.
    pub fn recycle(&mut self, frame: Frame) {
        self.net.recycle(frame.bytes);
    }

    /// Does what is due: timers, and packets on `lo` that earlier calls left over.
    pub fn advance(&mut self, now: Instant) {
        self.at(now);
        self.pump();
        self.net.advance_neighbours();
        self.net.advance_v6();
        self.advance_dhcp();
        // A timer that is set again for this moment has to wait for the next call.
        for _ in 0..self.timers.len() {
            let Some(&(at, timed)) = self.timers.first().filter(|(at, _)| *at <= now) else { break };
            self.timers.remove(&(at, timed));
            match timed {
                Timed::Socket(index) => self.expire(index),
                Timed::Half(serial) => self.expire_half(serial),
                Timed::Waiting(serial) => self.end_waiting(serial),
            }
        }
        self.pump();
    }

    /// When [`Stack::advance`] wants to be called; possibly in the past.
    pub fn next_deadline(&self) -> Option<Instant> {
        if !self.net.looped.is_empty() || !self.net.undelivered.is_empty() {
            return Some(self.net.now);
        }
        let timer = self.timers.first().map(|(at, _)| *at);
        let earlier = |one: Option<Instant>, other: Option<Instant>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let of_neighbours = earlier(self.net.neighbours.next, self.net.deadline_v6());
        earlier(earlier(timer, of_neighbours), self.deadline_dhcp())
    }

    /// Whether [`Stack::ready`] may have a socket to name.
    pub fn has_ready(&self) -> bool {
        !self.net.ready.is_empty()
    }

    /// The next socket whose readiness may have changed. A socket is named once for each change
    /// since it was last named.
    pub fn ready(&mut self) -> Option<SocketId> {
        while let Some(id) = self.net.ready.pop_front() {
            if let Some(socket) = self.sockets.get_mut(id.index).filter(|socket| socket.id == id) {
                socket.announced = false;
                return Some(id);
            }
        }
        None
    }
}

impl Stack {
    /// Delivers what the system sent to itself, and tells of packets that could not be delivered.
    fn pump(&mut self) {
        for _ in 0..LOOPED {
            self.tap_sent();
            let Some(looped) = self.net.looped.pop_front() else { break };
            self.net.looped_bytes -= looped.bytes.len();
            self.take_looped(looped.interface, &looped.bytes);
            self.net.recycle(looped.bytes);
        }
        if core::mem::take(&mut self.net.starved) {
            for socket in self.sockets.iter_mut() {
                if let Role::Stream(connection) = &mut socket.role {
                    connection.release_empty(&mut self.net);
                }
            }
        }
        while let Some((interface, packet)) = self.net.undelivered.pop_front() {
            self.unreachable(interface, &packet);
            self.net.recycle(packet);
        }
    }

    /// Gives packet sockets the frames that have been sent.
    fn tap_sent(&mut self) {
        while let Some(tapped) = self.net.tapped.pop_front() {
            self.tap(tapped.interface, &tapped.bytes, LinkClass::Outgoing, tapped.sender);
            self.net.recycle(tapped.bytes);
        }
    }

    /// Bytes of all sockets' buffers and filters, of which [`Limits::memory`] is the most.
    pub fn memory(&self) -> usize {
        self.net.memory
    }

    /// Bytes of fragments, of which [`Limits::fragments`] is the most.
    #[cfg(test)]
    pub(crate) fn fragments_held(&self) -> usize {
        self.net.fragments.held()
    }

    /// Does what a frame asks for.
    fn after_frame(&mut self) {
        self.pump();
        if !self.dhcp.is_empty() {
            self.advance_dhcp();
            self.pump();
        }
    }

    fn socket(&self, id: SocketId) -> Result<&Socket> {
        self.sockets.get(id.index).filter(|socket| socket.id == id).ok_or(Error::NotFound)
    }

    fn socket_mut(&mut self, id: SocketId) -> Result<&mut Socket> {
        find(&mut self.sockets, id)
    }

    fn announce(&mut self, id: SocketId) {
        let Stack { sockets, net, .. } = self;
        if let Ok(socket) = find(sockets, id) {
            socket.announce(net);
        }
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }
}

/// The socket of an identifier, without the rest of the stack.
fn find(sockets: &mut Slab<Socket>, id: SocketId) -> Result<&mut Socket> {
    sockets.get_mut(id.index).filter(|socket| socket.id == id).ok_or(Error::NotFound)
}
