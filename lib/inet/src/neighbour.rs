//! Hardware addresses of neighbours, as ARP and neighbour discovery learn them.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;

use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr, EthernetAddress};

use crate::error::{Error, Result};
use crate::hash::Key;
use crate::net::Net;
use crate::output::{ETHERNET, Unaddressed};
use crate::table::{Hashed, Table};
use crate::time::Instant;
use crate::types::*;

/// How long an answer holds.
const REACHABLE: Duration = Duration::from_secs(30);
/// Time between questions.
const RETRY: Duration = Duration::from_secs(1);
/// Questions without an answer after which a neighbour is given up.
const TRIES: u8 = 3;
/// How long a neighbour that does not answer is remembered as such.
const FAILED: Duration = Duration::from_secs(3);
/// Packets that wait for an answer.
const WAITING: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    interface: InterfaceIndex,
    address: IpAddr,
}

impl Hashed for Place {
    fn hash(&self, key: Key) -> u64 {
        let (high, low) = match self.address {
            IpAddr::V4(address) => (0, u64::from(u32::from(address))),
            IpAddr::V6(address) => ((u128::from(address) >> 64) as u64, u128::from(address) as u64),
        };
        key.hash(&[u64::from(self.interface.0), high, low])
    }
}

struct Entry {
    mac: Option<[u8; 6]>,
    state: NeighbourState,
    /// Packets that wait for the address.
    waiting: Vec<Unaddressed>,
    /// When the state changes.
    deadline: Instant,
    tries: u8,
}

/// The neighbours of all interfaces.
pub(crate) struct Neighbours {
    table: Table<Place, Entry>,
    /// When some entry that is being asked has its deadline; possibly earlier.
    pub(crate) next: Option<Instant>,
}

/// A neighbour as callers see it.
fn described(place: &Place, entry: &Entry, now: Instant) -> Neighbour {
    let state = match entry.state {
        NeighbourState::Reachable if entry.deadline <= now => NeighbourState::Stale,
        state => state,
    };
    Neighbour { interface: place.interface, address: place.address, mac: entry.mac, state }
}

/// What is known about a next hop.
pub(crate) enum Resolution {
    Known([u8; 6]),
    /// It has been asked; the packet is to be waiting.
    Asked,
    /// There are too many neighbours.
    Full,
}

impl Neighbours {
    pub(crate) fn new(key: Key) -> Neighbours {
        Neighbours { table: Table::new(key), next: None }
    }

    fn due(&mut self, at: Instant) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }
}

impl Net {
    /// The hardware address of a next hop, for which the neighbour is asked if need be.
    pub(crate) fn resolve(&mut self, interface: InterfaceIndex, address: IpAddr) -> Resolution {
        let place = Place { interface, address };
        let now = self.now;
        if let Some(entry) = self.neighbours.table.get_mut(&place) {
            let ask = match entry.state {
                NeighbourState::Permanent | NeighbourState::Probe => false,
                NeighbourState::Reachable | NeighbourState::Stale => entry.deadline <= now,
                NeighbourState::Incomplete => return Resolution::Asked,
                NeighbourState::Failed if entry.deadline > now => return Resolution::Asked,
                NeighbourState::Failed => {
                    entry.state = NeighbourState::Incomplete;
                    true
                }
            };
            let mac = entry.mac;
            if ask {
                if mac.is_some() {
                    entry.state = NeighbourState::Probe;
                }
                entry.deadline = now + RETRY;
                entry.tries = 1;
                self.neighbours.due(now + RETRY);
                self.solicit(interface, address, mac);
            }
            return mac.map_or(Resolution::Asked, Resolution::Known);
        }
        if !self.make_room() {
            return Resolution::Full;
        }
        let entry = Entry {
            mac: None,
            state: NeighbourState::Incomplete,
            waiting: Vec::new(),
            deadline: now + RETRY,
            tries: 1,
        };
        self.neighbours.table.insert(place, entry);
        self.neighbours.due(now + RETRY);
        self.solicit(interface, address, None);
        Resolution::Asked
    }

    /// Forgets the neighbour that was heard of least recently, if there are too many.
    fn make_room(&mut self) -> bool {
        if self.neighbours.table.len() < self.limits.neighbours {
            return true;
        }
        let entries = self.neighbours.table.iter();
        let removable = entries.filter(|(_, entry)| entry.state != NeighbourState::Permanent);
        let oldest = removable.min_by_key(|(_, entry)| entry.deadline).map(|(place, _)| *place);
        oldest.is_some_and(|place| self.forget_neighbour(&place))
    }

    /// Forgets a neighbour. Whether there was one.
    fn forget_neighbour(&mut self, place: &Place) -> bool {
        let Some(entry) = self.neighbours.table.remove(place) else { return false };
        self.note_neighbour(described(place, &entry, self.now), true);
        true
    }

    /// Notes a neighbour of which something else is known than `before`.
    fn note_if_changed(&mut self, place: &Place, before: Option<Neighbour>) {
        let Some(entry) = self.neighbours.table.get(place) else { return };
        let after = described(place, entry, self.now);
        if before != Some(after) {
            self.note_neighbour(after, false);
        }
    }

    /// Keeps a packet until the neighbour has answered. The oldest one gives way.
    pub(crate) fn keep(&mut self, interface: InterfaceIndex, address: IpAddr, packet: Unaddressed) {
        let Some(entry) = self.neighbours.table.get_mut(&Place { interface, address }) else { return };
        if entry.state == NeighbourState::Failed {
            self.undelivered.push_back((interface, packet.frame.bytes));
            return;
        }
        if entry.waiting.len() >= WAITING {
            let oldest = entry.waiting.remove(0);
            self.recycle(oldest.frame.bytes);
            self.count(interface, |counters| counters.sent_drops += 1);
        }
        if let Some(entry) = self.neighbours.table.get_mut(&Place { interface, address }) {
            entry.waiting.push(packet);
        }
    }

    /// A neighbour has told its hardware address. `solicited`: it was asked. `create`: an unknown
    /// one is remembered, because it wants something.
    pub(crate) fn heard(
        &mut self,
        interface: InterfaceIndex,
        address: IpAddr,
        mac: [u8; 6],
        solicited: bool,
        create: bool,
    ) {
        let place = Place { interface, address };
        if mac[0] & 1 != 0 || address.is_multicast() || address.is_unspecified() {
            return;
        }
        let known = self.neighbours.table.get(&place).map(|entry| entry.state);
        if known == Some(NeighbourState::Permanent) || known.is_none() && !create {
            return;
        }
        match solicited {
            true => self.learn(place, mac, NeighbourState::Reachable, REACHABLE),
            // A neighbour that speaks first is believed for a while before it is asked.
            false => self.learn(place, mac, NeighbourState::Stale, RETRY * 5),
        }
    }

    /// Notes a neighbour's hardware address, and sends what waits for it.
    fn learn(&mut self, place: Place, mac: [u8; 6], state: NeighbourState, holds: Duration) {
        let now = self.now;
        let before = self.neighbours.table.get(&place).map(|entry| described(&place, entry, now));
        if before.is_none() {
            if !self.make_room() {
                return;
            }
            let entry = Entry { mac: None, state, waiting: Vec::new(), deadline: now, tries: 0 };
            self.neighbours.table.insert(place, entry);
        }
        let Some(entry) = self.neighbours.table.get_mut(&place) else { return };
        entry.mac = Some(mac);
        entry.tries = 0;
        entry.state = state;
        entry.deadline = now + holds;
        let waiting = core::mem::take(&mut entry.waiting);
        self.note_if_changed(&place, before);
        for packet in waiting {
            // What finds the queue full is lost, as on a full network.
            let _ = self.address(place.interface, packet, mac);
        }
    }

    /// Asks again, and gives up.
    pub(crate) fn advance_neighbours(&mut self) {
        let now = self.now;
        if self.neighbours.next.is_none_or(|next| next > now) {
            return;
        }
        let mut next: Option<Instant> = None;
        let mut ask = Vec::new();
        let (mut lost, mut failed) = (Vec::new(), Vec::new());
        for (place, entry) in self.neighbours.table.iter_mut() {
            if !matches!(entry.state, NeighbourState::Incomplete | NeighbourState::Probe) {
                continue;
            }
            if entry.deadline <= now {
                if entry.tries < TRIES {
                    entry.tries += 1;
                    entry.deadline = now + RETRY;
                    ask.push((*place, entry.mac));
                } else {
                    entry.state = NeighbourState::Failed;
                    entry.mac = None;
                    entry.deadline = now + FAILED;
                    let packets = entry.waiting.drain(..);
                    lost.extend(packets.map(|packet| (place.interface, packet.frame.bytes)));
                    failed.push(described(place, entry, now));
                    continue;
                }
            }
            next = Some(next.map_or(entry.deadline, |next| next.min(entry.deadline)));
        }
        self.neighbours.next = next;
        for neighbour in failed {
            self.note_neighbour(neighbour, false);
        }
        for (place, mac) in ask {
            self.solicit(place.interface, place.address, mac);
        }
        self.undelivered.extend(lost);
    }

    /// Forgets the neighbours of an interface that has gone or lost its cable.
    pub(crate) fn forget_neighbours(&mut self, interface: InterfaceIndex) {
        let table = self.neighbours.table.iter();
        let places: Vec<Place> =
            table.map(|(place, _)| *place).filter(|place| place.interface == interface).collect();
        for place in places {
            self.forget_neighbour(&place);
        }
    }

    pub(crate) fn neighbour_list(&self) -> impl Iterator<Item = Neighbour> {
        self.neighbours.table.iter().map(|(place, entry)| described(place, entry, self.now))
    }

    pub(crate) fn set_neighbour(
        &mut self,
        interface: InterfaceIndex,
        address: IpAddr,
        mac: Option<[u8; 6]>,
    ) -> Result<()> {
        self.link(interface).ok_or(Error::NotFound)?;
        let place = Place { interface, address };
        let Some(mac) = mac else {
            return if self.forget_neighbour(&place) { Ok(()) } else { Err(Error::NotFound) };
        };
        if self.neighbours.table.get(&place).is_none() && !self.make_room() {
            return Err(Error::NoBufferSpace);
        }
        if mac[0] & 1 != 0 || address.is_multicast() || address.is_unspecified() {
            return Err(Error::InvalidArgument);
        }
        self.learn(place, mac, NeighbourState::Permanent, Duration::ZERO);
        Ok(())
    }

    /// Asks for a neighbour's hardware address: all, or only the one that had it last.
    fn solicit(&mut self, interface: InterfaceIndex, address: IpAddr, mac: Option<[u8; 6]>) {
        match address {
            IpAddr::V4(target) => {
                let source = match self.source(interface, address) {
                    Some(IpAddr::V4(source)) => source,
                    _ => Ipv4Addr::UNSPECIFIED,
                };
                self.send_arp(interface, ArpOperation::Request, source, target, mac.unwrap_or([0xff; 6]));
            }
            IpAddr::V6(target) => self.solicit_v6(interface, target, mac),
        }
    }

    /// Sends a packet of ARP.
    fn send_arp(
        &mut self,
        interface: InterfaceIndex,
        operation: ArpOperation,
        source: Ipv4Addr,
        target: Ipv4Addr,
        to: [u8; 6],
    ) {
        let Some(link) = self.link(interface) else { return };
        let asked = if operation == ArpOperation::Request { [0; 6] } else { to };
        let packet = ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: EthernetAddress(link.public.mac),
            source_protocol_addr: source,
            target_hardware_addr: EthernetAddress(asked),
            target_protocol_addr: target,
        };
        let mut bytes = self.buffer();
        bytes.resize(ETHERNET + packet.buffer_len(), 0);
        packet.emit(&mut ArpPacket::new_unchecked(&mut bytes[ETHERNET..]));
        let frame = Frame { bytes, checksum: None, segment: None };
        // A question that finds the queue full is asked again.
        let _ = self.address(interface, Unaddressed { frame, ethertype: 0x0806 }, to);
    }

    /// Tells the neighbours an address of this system, so that they learn that it moved here.
    pub(crate) fn announce(&mut self, interface: InterfaceIndex, address: Ipv4Addr) {
        self.send_arp(interface, ArpOperation::Request, address, address, [0xff; 6]);
    }

    /// Asks whether another system has an address, before this one uses it (RFC 5227).
    pub(crate) fn probe(&mut self, interface: InterfaceIndex, address: Ipv4Addr) {
        self.probed.retain(|entry| entry.0 != interface || entry.1 == address);
        if self.probed.iter().all(|entry| entry.0 != interface) {
            self.probed.push((interface, address, None));
        }
        self.send_arp(interface, ArpOperation::Request, Ipv4Addr::UNSPECIFIED, address, [0xff; 6]);
    }

    /// Another system has an address, or is about to use it.
    fn claimed(&mut self, interface: InterfaceIndex, address: Ipv4Addr, mac: [u8; 6]) {
        if self.link(interface).is_some_and(|link| link.public.mac == mac) {
            return;
        }
        for entry in self.probed.iter_mut().filter(|entry| (entry.0, entry.1) == (interface, address)) {
            entry.2 = Some(mac);
        }
    }

    /// Takes a packet of ARP.
    pub(crate) fn receive_arp(&mut self, interface: InterfaceIndex, packet: &[u8]) -> Result<()> {
        let packet = ArpPacket::new_checked(packet).map_err(|_| Error::ProtocolError)?;
        let ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: mac,
            source_protocol_addr: source,
            target_protocol_addr: target,
            ..
        } = ArpRepr::parse(&packet).map_err(|_| Error::ProtocolError)?
        else {
            return Err(Error::ProtocolError);
        };
        let is_probe = operation == ArpOperation::Request && source.is_unspecified();
        self.claimed(interface, if is_probe { target } else { source }, mac.0);
        if source.is_broadcast() || source.is_loopback() || self.is_local(IpAddr::V4(source)) {
            return Ok(());
        }
        let own = !target.is_loopback() && self.is_local(IpAddr::V4(target));
        let asked = operation == ArpOperation::Reply && own;
        self.heard(interface, IpAddr::V4(source), mac.0, asked, own);
        if operation == ArpOperation::Request && own {
            self.send_arp(interface, ArpOperation::Reply, target, source, mac.0);
        }
        Ok(())
    }
}
