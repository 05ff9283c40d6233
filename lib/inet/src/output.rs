//! From a packet's payload to a frame: IP headers, checksums, fragments, the link.

use alloc::vec::Vec;
use core::net::IpAddr;

use crate::checksum;
use crate::error::{Error, Result};
use crate::neighbour::Resolution;
use crate::net::{LO, Looped, Net, Tapped};
use crate::path::{Cast, Path};
use crate::types::*;

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;
/// Bytes of an IPv4 header without options.
pub(crate) const IPV4: usize = 20;
/// Bytes of an IPv6 header.
pub(crate) const IPV6: usize = 40;
const FRAGMENT_HEADER: usize = 8;

/// What an IP header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) hops: u8,
    pub(crate) traffic_class: u8,
    pub(crate) dont_fragment: bool,
}

impl Header {
    pub(crate) fn length(&self) -> usize {
        if self.source.is_ipv4() { IPV4 } else { IPV6 }
    }
}

/// How the checksum of a packet's payload is made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sum {
    /// It is there, or there is none.
    Done,
    /// It belongs to this place of the payload, with the pseudo header.
    At(usize),
}

/// A frame that is complete but for hardware addresses.
pub(crate) struct Unaddressed {
    pub(crate) frame: Frame,
    /// 0x0800 or 0x86dd.
    pub(crate) ethertype: u16,
}

impl Net {
    /// A buffer with room for the headers of Ethernet and IP, to which the payload is appended.
    pub(crate) fn begin(&mut self, header: &Header) -> Vec<u8> {
        let mut packet = self.buffer();
        packet.resize(ETHERNET + header.length(), 0);
        packet
    }

    /// Sends what [`Net::begin`] began.
    ///
    /// # Errors
    ///
    /// `MessageTooLong` if it may not be cut, `NoBufferSpace` if a queue is full.
    pub(crate) fn send(&mut self, path: &Path, header: &Header, packet: Vec<u8>, sum: Sum) -> Result<()> {
        self.send_segments(path, header, packet, sum, None)
    }

    /// The same for TCP, whose large segments the device cuts.
    pub(crate) fn send_segments(
        &mut self,
        path: &Path,
        header: &Header,
        mut packet: Vec<u8>,
        sum: Sum,
        segment: Option<u16>,
    ) -> Result<()> {
        let start = ETHERNET + header.length();
        let length = packet.len() - ETHERNET;
        if length > 65535 + if header.source.is_ipv4() { 0 } else { IPV6 } {
            self.recycle(packet);
            return Err(Error::MessageTooLong);
        }
        let whole = segment.is_some() || length <= path.mtu;
        if !whole && header.dont_fragment {
            self.recycle(packet);
            return Err(Error::MessageTooLong);
        }
        let mut partial = None;
        if let Sum::At(offset) = sum {
            let pseudo =
                checksum::pseudo(header.source, header.destination, header.protocol, packet.len() - start);
            let offloaded = whole
                && (path.cast == Cast::Local
                    || self.link(path.interface).is_some_and(|link| link.public.offload.transmit_checksum));
            let value = if offloaded {
                partial = Some(PartialChecksum { start: start as u16, offset: offset as u16 });
                checksum::fold(pseudo)
            } else {
                match !checksum::fold(checksum::sum(&packet[start..], pseudo)) {
                    // A sum of zero would mean that there is none.
                    0 if header.protocol == 17 => 0xffff,
                    value => value,
                }
            };
            packet[start + offset..start + offset + 2].copy_from_slice(&value.to_be_bytes());
        }
        if !whole {
            return self.send_fragments(path, header, packet);
        }
        let identification = if header.dont_fragment { 0 } else { self.random.next() as u16 };
        fill(&mut packet, header, identification, 0, false);
        self.emit(path, Frame { bytes: packet, checksum: partial, segment })
    }

    /// Cuts a packet into fragments.
    fn send_fragments(&mut self, path: &Path, header: &Header, packet: Vec<u8>) -> Result<()> {
        let v4 = header.source.is_ipv4();
        let extra = if v4 { 0 } else { FRAGMENT_HEADER };
        let start = ETHERNET + header.length();
        let room = (path.mtu.saturating_sub(header.length() + extra)) & !7;
        if room == 0 {
            self.recycle(packet);
            return Err(Error::MessageTooLong);
        }
        let identification = self.random.next() as u32;
        let payload = &packet[start..];
        let mut result = Ok(());
        let mut offset = 0;
        while offset < payload.len() && result.is_ok() {
            let piece = &payload[offset..payload.len().min(offset + room)];
            let more = offset + piece.len() < payload.len();
            let mut fragment = self.begin(header);
            let mut header = *header;
            if !v4 {
                let place = offset as u16 | u16::from(more);
                fragment.extend_from_slice(&[header.protocol, 0]);
                fragment.extend_from_slice(&place.to_be_bytes());
                fragment.extend_from_slice(&identification.to_be_bytes());
                header.protocol = 44;
            }
            fragment.extend_from_slice(piece);
            fill(&mut fragment, &header, identification as u16, offset, more);
            result = self.emit(path, Frame { bytes: fragment, checksum: None, segment: None });
            offset += piece.len();
        }
        self.recycle(packet);
        result
    }

    /// Sends a packet whose IP header is there. It begins with room for an Ethernet header.
    pub(crate) fn emit(&mut self, path: &Path, frame: Frame) -> Result<()> {
        if path.cast == Cast::Local || path.interface == LO {
            return self.loop_back(frame.bytes, path.interface);
        }
        let ethertype = if frame.bytes[ETHERNET] >> 4 == 6 { 0x86dd } else { 0x0800 };
        let unaddressed = Unaddressed { frame, ethertype };
        match path.cast {
            Cast::Broadcast => {
                self.copy_back(path.interface, &unaddressed.frame.bytes);
                self.address(path.interface, unaddressed, [0xff; 6])
            }
            Cast::Multicast => self.address(path.interface, unaddressed, group_mac(path.next_hop)),
            _ => match self.resolve(path.interface, path.next_hop) {
                Resolution::Known(mac) => self.address(path.interface, unaddressed, mac),
                Resolution::Asked => {
                    self.keep(path.interface, path.next_hop, unaddressed);
                    Ok(())
                }
                Resolution::Full => Err(Error::NoBufferSpace),
            },
        }
    }

    /// Gives a copy of a packet to broadcast addresses or groups to this system as well.
    pub(crate) fn copy_back(&mut self, interface: InterfaceIndex, packet: &[u8]) {
        let mut copy = self.buffer();
        copy.extend_from_slice(packet);
        // A full queue drops the copy, as a full queue of the network would.
        let _ = self.loop_back(copy, interface);
    }

    fn loop_back(&mut self, bytes: Vec<u8>, interface: InterfaceIndex) -> Result<()> {
        self.loop_back_of(bytes, interface, None)
    }

    /// Sends a frame to the system itself, for a packet socket or for the stack.
    pub(crate) fn loop_back_of(
        &mut self,
        bytes: Vec<u8>,
        interface: InterfaceIndex,
        sender: Option<SocketId>,
    ) -> Result<()> {
        if self.looped.len() >= self.limits.frames
            || self.looped_bytes + bytes.len() > (self.limits.frames * 2048).max(128 << 10)
        {
            self.count(LO, |counters| counters.sent_drops += 1);
            self.recycle(bytes);
            return Err(Error::NoBufferSpace);
        }
        let length = bytes.len() as u64;
        if interface == LO {
            self.count(LO, |counters| {
                counters.sent_packets += 1;
                counters.sent_bytes += length;
            });
            self.tap(LO, &bytes, sender);
        }
        self.looped_bytes += bytes.len();
        self.looped.push_back(Looped { bytes, interface });
        Ok(())
    }

    /// Completes a frame and queues it for the device.
    pub(crate) fn address(
        &mut self,
        interface: InterfaceIndex,
        unaddressed: Unaddressed,
        mac: [u8; 6],
    ) -> Result<()> {
        let Unaddressed { mut frame, ethertype } = unaddressed;
        let source = self.link(interface).ok_or(Error::NetworkDown)?.public.mac;
        frame.bytes[..6].copy_from_slice(&mac);
        frame.bytes[6..12].copy_from_slice(&source);
        frame.bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
        self.queue(interface, frame)
    }

    /// Queues a frame for the device.
    pub(crate) fn queue(&mut self, interface: InterfaceIndex, frame: Frame) -> Result<()> {
        self.queue_of(interface, frame, None)
    }

    /// The same for a frame that a packet socket sends.
    pub(crate) fn queue_of(
        &mut self,
        interface: InterfaceIndex,
        frame: Frame,
        sender: Option<SocketId>,
    ) -> Result<()> {
        let limit = self.limits.frames;
        let link = self.link_mut(interface).ok_or(Error::NetworkDown)?;
        let usable = link.public.up && link.public.link;
        if !usable || link.queue.len() >= limit {
            let counters = &mut link.public.counters;
            *(if usable { &mut counters.sent_drops } else { &mut counters.sent_errors }) += 1;
            let error = if link.public.up { Error::NoBufferSpace } else { Error::NetworkDown };
            self.recycle(frame.bytes);
            return Err(error);
        }
        link.public.counters.sent_packets += 1;
        link.public.counters.sent_bytes += frame.bytes.len() as u64;
        self.tap(interface, &frame.bytes, sender);
        if let Some(link) = self.link_mut(interface) {
            link.queue.push_back(frame);
        }
        Ok(())
    }

    /// Copies a frame that is sent for packet sockets.
    fn tap(&mut self, interface: InterfaceIndex, bytes: &[u8], sender: Option<SocketId>) {
        if self.tapping && self.tapped.len() < self.limits.frames {
            let mut copy = self.buffer();
            copy.extend_from_slice(bytes);
            self.tapped.push_back(Tapped { bytes: copy, interface, sender });
        }
    }

    pub(crate) fn count(&mut self, interface: InterfaceIndex, change: impl FnOnce(&mut Counters)) {
        if let Some(link) = self.link_mut(interface) {
            change(&mut link.public.counters);
        }
    }
}

/// Writes the IP header. `offset` is that of a fragment of IPv4.
fn fill(packet: &mut [u8], header: &Header, identification: u16, offset: usize, more: bool) {
    let length = packet.len() - ETHERNET;
    match (header.source, header.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut bytes = [0; IPV4];
            bytes[0] = 0x45;
            bytes[1] = header.traffic_class;
            bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            bytes[4..6].copy_from_slice(&identification.to_be_bytes());
            let flags = u16::from(header.dont_fragment) << 14 | u16::from(more) << 13;
            bytes[6..8].copy_from_slice(&(flags | (offset / 8) as u16).to_be_bytes());
            bytes[8] = header.hops;
            bytes[9] = header.protocol;
            bytes[12..16].copy_from_slice(&source.octets());
            bytes[16..20].copy_from_slice(&destination.octets());
            let sum = !checksum::fold(checksum::sum(&bytes, 0));
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
            packet[ETHERNET..ETHERNET + IPV4].copy_from_slice(&bytes);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut bytes = [0; IPV6];
            bytes[0] = 0x60 | header.traffic_class >> 4;
            bytes[1] = header.traffic_class << 4;
            bytes[4..6].copy_from_slice(&((length - IPV6) as u16).to_be_bytes());
            bytes[6] = header.protocol;
            bytes[7] = header.hops;
            bytes[8..24].copy_from_slice(&source.octets());
            bytes[24..40].copy_from_slice(&destination.octets());
            packet[ETHERNET..ETHERNET + IPV6].copy_from_slice(&bytes);
        }
        // Sockets give both addresses of one family.
        _ => debug_assert!(false, "addresses of two families"),
    }
}

/// The hardware address of a group.
pub(crate) fn group_mac(group: IpAddr) -> [u8; 6] {
    match group {
        IpAddr::V4(group) => {
            let [_, b, c, d] = group.octets();
            [0x01, 0x00, 0x5e, b & 0x7f, c, d]
        }
        IpAddr::V6(group) => {
            let [.., a, b, c, d] = group.octets();
            [0x33, 0x33, a, b, c, d]
        }
    }
}
