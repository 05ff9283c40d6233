//! Frames and IP packets that arrive.

use core::net::IpAddr;

use smoltcp::wire::{Ipv4Packet, Ipv6Packet};

use super::Stack;
use super::datagrams::{UDP, Unreachable};
use crate::checksum;
use crate::error::{Error, Result};
use crate::fragment::Whole;
use crate::net::LO;
use crate::output::{ETHERNET, IPV4, IPV6};
use crate::path::Cast;
use crate::tcp::output::TCP;
use crate::types::*;

/// What the headers of a packet say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    pub(super) interface: InterfaceIndex,
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: u8,
    pub(super) hops: u8,
    pub(super) traffic_class: u8,
    pub(super) cast: Cast,
    /// The checksums above IP need not be looked at.
    pub(super) verified: bool,
    /// It was sent by this system.
    pub(super) looped: bool,
    /// The IP header.
    pub(super) header: &'a [u8],
}

/// Headers between that of IPv6 and the payload, at most.
const EXTENSIONS: usize = 8;

impl Stack {
    /// Takes a frame that arrived.
    pub(super) fn take_frame(&mut self, interface: InterfaceIndex, frame: &[u8], verified: bool) {
        let Some(link) = self.net.link_mut(interface) else { return };
        if !link.public.up || link.public.loopback {
            return;
        }
        let counters = &mut link.public.counters;
        counters.received_packets += 1;
        counters.received_bytes += frame.len() as u64;
        if frame.len() < ETHERNET {
            counters.received_errors += 1;
            return;
        }
        let class = if frame[..6] == link.public.mac {
            LinkClass::Host
        } else if frame[..6] == [0xff; 6] {
            LinkClass::Broadcast
        } else if frame[0] & 1 != 0 {
            counters.received_multicast += 1;
            LinkClass::Multicast
        } else {
            LinkClass::Other
        };
        let promiscuous = link.public.promiscuous || link.watchers > 0;
        if self.net.tapping && (class != LinkClass::Other || promiscuous) {
            self.tap(interface, frame, class, None);
        }
        if class == LinkClass::Other {
            return;
        }
        let payload = &frame[ETHERNET..];
        let result = match [frame[12], frame[13]] {
            [0x08, 0x00] => self.take_v4(interface, payload, verified, false),
            [0x86, 0xdd] => self.take_v6(interface, payload, verified, false),
            [0x08, 0x06] => self.net.receive_arp(interface, payload),
            _ => Ok(()),
        };
        if result.is_err() {
            self.net.count(interface, |counters| counters.received_errors += 1);
        }
    }

    /// Takes a packet that the system sent to itself.
    pub(super) fn take_looped(&mut self, interface: InterfaceIndex, bytes: &[u8]) {
        if interface == LO {
            self.net.count(LO, |counters| {
                counters.received_packets += 1;
                counters.received_bytes += bytes.len() as u64;
            });
            if self.net.tapping {
                self.tap(LO, bytes, LinkClass::Host, None);
            }
        }
        if !matches!(bytes[12..ETHERNET], [0, 0] | [0x08, 0x00] | [0x86, 0xdd]) {
            // A frame of another type, which a packet socket sent.
            return;
        }
        let packet = &bytes[ETHERNET..];
        let result = match packet.first().map(|byte| byte >> 4) {
            Some(4) => self.take_v4(interface, packet, true, true),
            _ => self.take_v6(interface, packet, true, true),
        };
        if result.is_err() {
            self.net.count(interface, |counters| counters.received_errors += 1);
        }
    }

    fn take_v4(
        &mut self,
        interface: InterfaceIndex,
        bytes: &[u8],
        verified: bool,
        looped: bool,
    ) -> Result<()> {
        let header = Ipv4Packet::new_checked(bytes).map_err(|_| Error::ProtocolError)?;
        let start = usize::from(header.header_len());
        if header.version() != 4 || !looped && checksum::fold(checksum::sum(&bytes[..start], 0)) != 0xffff {
            return Err(Error::ProtocolError);
        }
        if source_routed(&bytes[IPV4..start])? {
            // The sender of such packets chooses the way of the answers, too.
            return Ok(());
        }
        let bytes = &bytes[..usize::from(header.total_len())];
        let (source, destination) = (header.src_addr(), header.dst_addr());
        // Answers to such a source would go to many systems.
        let bad_source = source.is_multicast() || self.net.is_broadcast(source.into());
        let strange = source.is_loopback() || destination.is_loopback();
        if bad_source || !looped && strange {
            // Loopback addresses are never on a cable.
            return Err(Error::ProtocolError);
        }
        let destination = IpAddr::V4(destination);
        let Some(cast) = self.cast(interface, destination, looped) else { return Ok(()) };
        let mut packet = Packet {
            interface,
            source: IpAddr::V4(source),
            destination,
            protocol: header.next_header().into(),
            hops: header.hop_limit(),
            traffic_class: bytes[1],
            cast,
            verified,
            looped,
            header: &bytes[..start],
        };
        if !header.more_frags() && header.frag_offset() == 0 {
            return self.take_payload(&packet, &bytes[start..]);
        }
        let whole = Whole {
            source: packet.source,
            destination,
            identification: header.ident().into(),
            protocol: packet.protocol,
        };
        let (offset, more) = (usize::from(header.frag_offset()), header.more_frags());
        let (now, limit) = (self.net.now, self.net.limits.fragments);
        let data = &bytes[start..];
        let Some((_, payload)) =
            self.net.fragments.add(whole, packet.protocol, offset, more, data, now, limit)
        else {
            return Ok(());
        };
        packet.verified = looped;
        self.take_payload(&packet, &payload)
    }

    fn take_v6(
        &mut self,
        interface: InterfaceIndex,
        bytes: &[u8],
        verified: bool,
        looped: bool,
    ) -> Result<()> {
        let header = Ipv6Packet::new_checked(bytes).map_err(|_| Error::ProtocolError)?;
        if header.version() != 6 {
            return Err(Error::ProtocolError);
        }
        let (source, destination) = (header.src_addr(), header.dst_addr());
        let strange = source.is_loopback() || destination.is_loopback();
        if source.is_multicast() || !looped && strange || destination.is_unspecified() {
            return Err(Error::ProtocolError);
        }
        let destination = IpAddr::V6(destination);
        let Some(cast) = self.cast(interface, destination, looped) else { return Ok(()) };
        let packet = Packet {
            interface,
            source: IpAddr::V6(source),
            destination,
            protocol: header.next_header().into(),
            hops: header.hop_limit(),
            traffic_class: bytes[0] << 4 | bytes[1] >> 4,
            cast,
            verified,
            looped,
            header: &bytes[..IPV6],
        };
        let payload = &bytes[IPV6..header.total_len()];
        self.take_extensions(packet, payload, false)
    }

    /// Goes through the headers between that of IPv6 and the payload.
    fn take_extensions(&mut self, mut packet: Packet, mut payload: &[u8], whole: bool) -> Result<()> {
        for _ in 0..EXTENSIONS {
            match packet.protocol {
                // Options of hops and of the destination, and source routes, whose use is up.
                0 | 60 | 43 => {
                    let [next, length, rest @ ..] = payload else { return Err(Error::ProtocolError) };
                    let length = usize::from(*length) * 8 + 8;
                    if packet.protocol == 43 && rest.get(1).is_some_and(|left| *left != 0) {
                        return Err(Error::ProtocolError);
                    }
                    packet.protocol = *next;
                    payload = payload.get(length..).ok_or(Error::ProtocolError)?;
                }
                44 if !whole => {
                    let [next, _, high, low, id @ ..] = payload else { return Err(Error::ProtocolError) };
                    let Some((id, data)) = id.split_first_chunk::<4>() else {
                        return Err(Error::ProtocolError);
                    };
                    let place = u16::from_be_bytes([*high, *low]);
                    let key = Whole {
                        source: packet.source,
                        destination: packet.destination,
                        identification: u32::from_be_bytes(*id),
                        protocol: 0,
                    };
                    let (now, limit) = (self.net.now, self.net.limits.fragments);
                    let (offset, more) = (usize::from(place & !7), place & 1 == 1);
                    if offset == 0 && !more {
                        // A packet of one fragment is whole (RFC 6946).
                        packet.protocol = *next;
                        payload = data;
                        continue;
                    }
                    let Some((protocol, bytes)) =
                        self.net.fragments.add(key, *next, offset, more, data, now, limit)
                    else {
                        return Ok(());
                    };
                    packet.protocol = protocol;
                    packet.verified = packet.looped;
                    return self.take_extensions(packet, &bytes, true);
                }
                59 => return Ok(()),
                _ => return self.take_payload(&packet, payload),
            }
        }
        Err(Error::ProtocolError)
    }

    /// To which systems a packet went, if this is one of them.
    fn cast(&self, interface: InterfaceIndex, destination: IpAddr, looped: bool) -> Option<Cast> {
        if destination.is_multicast() {
            let member = looped || self.net.in_group(interface, destination);
            return member.then_some(Cast::Multicast);
        }
        if self.net.is_local(destination) {
            return Some(Cast::Local);
        }
        if self.net.is_broadcast(destination) {
            return Some(Cast::Broadcast);
        }
        None
    }

    /// Takes the payload of a packet.
    fn take_payload(&mut self, packet: &Packet, payload: &[u8]) -> Result<()> {
        let raw = self.take_raw(packet, payload);
        match packet.protocol {
            TCP => self.take_segment(packet, payload),
            UDP => self.take_udp(packet, payload),
            1 if packet.source.is_ipv4() => self.take_icmp(packet, payload),
            58 if packet.source.is_ipv6() => self.take_icmp_v6(packet, payload),
            _ => {
                if !raw && packet.cast == Cast::Local {
                    self.answer_unreachable(packet, payload, Unreachable::Protocol);
                }
                Ok(())
            }
        }
    }
}

/// Whether the options of an IPv4 header prescribe the packet's way (RFC 791).
///
/// # Errors
///
/// `ProtocolError` if they are malformed.
fn source_routed(mut options: &[u8]) -> Result<bool> {
    const LOOSE: u8 = 131;
    const STRICT: u8 = 137;
    loop {
        options = match options {
            [] | [0, ..] => return Ok(false),
            [1, rest @ ..] => rest,
            [LOOSE | STRICT, ..] => return Ok(true),
            [_, length, ..] if *length >= 2 => {
                options.get(usize::from(*length)..).ok_or(Error::ProtocolError)?
            }
            _ => return Err(Error::ProtocolError),
        };
    }
}
