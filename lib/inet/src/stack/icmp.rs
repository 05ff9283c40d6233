//! ICMP: echo requests, and errors to and from sockets.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::datagrams::{UDP, Unreachable};
use super::ip::Packet;
use super::{Owner, Stack, find};
use crate::checksum;
use crate::error::{Error, Result};
use crate::flow::{Endpoint, FlowKey, PortKey};
use crate::output::{ETHERNET, Header, IPV4, IPV6, Sum};
use crate::path::{Cast, Wish, believed_mtu};
use crate::socket::Role;
use crate::tcp::output::TCP;
use crate::tcp::sequence::Seq;
use crate::types::*;

/// The protocol's numbers.
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
/// Bytes of the packet in a message about an error.
const QUOTED: usize = 548;

/// A packet of this system that is quoted in a message about an error.
struct Quoted<'a> {
    destination: IpAddr,
    source: IpAddr,
    protocol: u8,
    payload: &'a [u8],
}

/// What a message says about a packet.
struct Complaint {
    error: Error,
    /// Connections that are being made fail by it, and connected sockets hear of it.
    hard: bool,
    message: (u8, u8),
    reporter: Option<IpAddr>,
    mtu: usize,
}

impl Stack {
    pub(super) fn take_icmp(&mut self, packet: &Packet, bytes: &[u8]) -> Result<()> {
        if bytes.len() < 8 || !packet.looped && checksum::fold(checksum::sum(bytes, 0)) != 0xffff {
            return Err(Error::ProtocolError);
        }
        let mtu = usize::from(u16::from_be_bytes([bytes[6], bytes[7]]));
        match (bytes[0], bytes[1]) {
            (8, 0) => self.echo(packet, bytes, 0),
            (0, 0) => self.take_echo_reply(packet, bytes),
            (3, code) => {
                let (error, hard) = match code {
                    2 | 3 => (Error::ConnectionRefused, true),
                    4 => (Error::MessageTooLong, false),
                    0 | 5 | 6 | 8 | 9 | 11 => (Error::NetworkUnreachable, false),
                    _ => (Error::HostUnreachable, false),
                };
                self.complain(packet, &bytes[8..], (3, code), error, hard, mtu);
            }
            (11, code) => self.complain(packet, &bytes[8..], (11, code), Error::HostUnreachable, false, 0),
            (12, code) => self.complain(packet, &bytes[8..], (12, code), Error::ProtocolError, true, 0),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn take_icmp_v6(&mut self, packet: &Packet, bytes: &[u8]) -> Result<()> {
        let pseudo = checksum::pseudo(packet.source, packet.destination, ICMP_V6, bytes.len());
        if bytes.len() < 8 || !packet.looped && checksum::fold(checksum::sum(bytes, pseudo)) != 0xffff {
            return Err(Error::ProtocolError);
        }
        let (message, body) = ((bytes[0], bytes[1]), &bytes[8..]);
        let mtu = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
        match message {
            (128, 0) => self.echo(packet, bytes, 129),
            (129, 0) => self.take_echo_reply(packet, bytes),
            (1, code) => {
                let (error, hard) = match code {
                    4 => (Error::ConnectionRefused, true),
                    1 | 5 | 6 => (Error::AccessDenied, true),
                    0 => (Error::NetworkUnreachable, false),
                    _ => (Error::HostUnreachable, false),
                };
                self.complain(packet, body, message, error, hard, 0);
            }
            (2, _) => self.complain(packet, body, message, Error::MessageTooLong, false, mtu),
            (3, _) => self.complain(packet, body, message, Error::HostUnreachable, false, 0),
            (4, _) => self.complain(packet, body, message, Error::ProtocolError, true, 0),
            (133..=137, 0) if packet.hops == 255 => {
                self.net.take_discovery(packet.interface, packet.source, packet.destination, bytes)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Answers an echo request.
    fn echo(&mut self, packet: &Packet, bytes: &[u8], reply: u8) {
        if matches!(packet.cast, Cast::Broadcast) || packet.source.is_unspecified() {
            return;
        }
        let Some((path, header)) = self.answer_header(packet) else { return };
        let mut answer = self.net.begin(&header);
        let start = answer.len();
        answer.push(reply);
        answer.push(0);
        answer.extend_from_slice(&[0, 0]);
        answer.extend_from_slice(&bytes[4..]);
        self.finish_icmp(&path, &header, answer, start);
    }

    /// The header of an answer to a packet.
    fn answer_header(&mut self, packet: &Packet) -> Option<(crate::path::Path, Header)> {
        let scope = Endpoint::new(packet.source, 0, packet.interface).interface();
        let path = self.net.path(packet.source, Wish { interface: scope, dont_route: false }).ok()?;
        let source = if packet.cast == Cast::Local { packet.destination } else { path.source };
        let header = Header {
            source,
            destination: packet.source,
            protocol: if source.is_ipv4() { ICMP } else { ICMP_V6 },
            hops: 64,
            traffic_class: packet.traffic_class,
            dont_fragment: false,
        };
        (!source.is_unspecified()).then_some((path, header))
    }

    fn finish_icmp(&mut self, path: &crate::path::Path, header: &Header, mut answer: Vec<u8>, start: usize) {
        let sum = if header.protocol == ICMP {
            let value = !checksum::fold(checksum::sum(&answer[start..], 0));
            answer[start + 2..start + 4].copy_from_slice(&value.to_be_bytes());
            Sum::Done
        } else {
            Sum::At(2)
        };
        // An answer that finds a full queue is lost, as it may be on the way.
        let _ = self.net.send(path, header, answer, sum);
    }

    /// Tells the sender of a packet that it could not be delivered.
    pub(super) fn answer_unreachable(&mut self, packet: &Packet, payload: &[u8], why: Unreachable) {
        if packet.cast != Cast::Local || packet.source.is_unspecified() || !self.net.may_answer() {
            return;
        }
        let Some((path, header)) = self.answer_header(packet) else { return };
        let v4 = header.source.is_ipv4();
        let (kind, code) = match (why, v4) {
            (Unreachable::Port, true) => (3, 3),
            (Unreachable::Protocol, true) => (3, 2),
            (Unreachable::Port, false) => (1, 4),
            (Unreachable::Protocol, false) => (4, 1),
        };
        let mut answer = self.net.begin(&header);
        let start = answer.len();
        answer.extend_from_slice(&[kind, code, 0, 0, 0, 0, 0, 0]);
        if kind == 4 {
            // The place of the header that was not understood.
            answer[start + 7] = 6;
        }
        answer.extend_from_slice(packet.header);
        answer.extend_from_slice(&payload[..payload.len().min(QUOTED - packet.header.len().min(QUOTED))]);
        self.finish_icmp(&path, &header, answer, start);
    }

    /// The next hop of a packet of this system did not answer.
    pub(super) fn unreachable(&mut self, interface: InterfaceIndex, packet: &[u8]) {
        let complaint =
            Complaint { error: Error::HostUnreachable, hard: true, message: (3, 1), reporter: None, mtu: 0 };
        if let Some(quoted) = packet.get(ETHERNET..).and_then(quoted) {
            self.charge(&quoted, interface, &complaint);
        }
    }

    /// A router or a host complains about a packet of this system.
    fn complain(
        &mut self,
        packet: &Packet,
        quote: &[u8],
        message: (u8, u8),
        error: Error,
        hard: bool,
        mtu: usize,
    ) {
        let Some(quoted) = quoted(quote) else { return };
        if !self.net.is_local(quoted.source) || quoted.source.is_ipv4() != packet.source.is_ipv4() {
            return;
        }
        let complaint = Complaint { error, hard, message, reporter: Some(packet.source), mtu };
        self.charge(&quoted, packet.interface, &complaint);
    }

    /// Tells the socket that sent the packet.
    fn charge(&mut self, quoted: &Quoted<'_>, interface: InterfaceIndex, complaint: &Complaint) {
        let Some((ports, _)) = quoted.payload.split_first_chunk::<4>() else { return };
        let [source_port, destination_port] =
            [u16::from_be_bytes([ports[0], ports[1]]), u16::from_be_bytes([ports[2], ports[3]])];
        let local = Endpoint::new(quoted.source, source_port, interface);
        let remote = Endpoint::new(quoted.destination, destination_port, interface);
        match quoted.protocol {
            TCP => self.charge_stream(&local, &remote, quoted, complaint),
            UDP => {
                let flow = FlowKey::new(UDP, &local, &remote);
                let id = match self.flows.get(&flow) {
                    Some(Owner::Socket(id)) => Some(*id),
                    _ => {
                        let key = PortKey { protocol: UDP, port: source_port };
                        self.lookup(key, quoted.source, interface, 0, |socket| {
                            socket.peer.is_none_or(|peer| peer == remote)
                        })
                    }
                };
                let payload = quoted.payload.get(8..).unwrap_or(&[]);
                self.charge_datagrams(id, remote, payload, complaint);
            }
            protocol @ (ICMP | ICMP_V6) => {
                let Some(identifier) = quoted.payload.get(4..6) else { return };
                let port = u16::from_be_bytes([identifier[0], identifier[1]]);
                let remote = Endpoint { port: 0, ..remote };
                let key = PortKey { protocol, port };
                let id = self.lookup(key, quoted.source, interface, 0, |_| true);
                self.charge_datagrams(id, remote, quoted.payload, complaint);
            }
            _ => {}
        }
    }

    fn charge_stream(
        &mut self,
        local: &Endpoint,
        remote: &Endpoint,
        quoted: &Quoted<'_>,
        complaint: &Complaint,
    ) {
        let Some(seq) = quoted.payload.get(4..8) else { return };
        let seq = Seq(u32::from_be_bytes([seq[0], seq[1], seq[2], seq[3]]));
        let Some(Owner::Socket(id)) = self.flows.get(&FlowKey::new(TCP, local, remote)).copied() else {
            return;
        };
        let Stack { sockets, net, .. } = self;
        let Ok(socket) = find(sockets, id) else { return };
        let Role::Stream(connection) = &mut socket.role else { return };
        if complaint.error == Error::MessageTooLong {
            if seq.before(connection.una) || seq.after(connection.nxt) || complaint.mtu == 0 {
                return;
            }
            // What is not smaller than what is known already is no reason to send again.
            if believed_mtu(quoted.destination, complaint.mtu) < connection.path.mtu {
                net.learn_mtu(quoted.destination, complaint.mtu);
                connection.too_long(net);
            }
        } else {
            connection.refused(complaint.error, seq, net);
        }
        self.settle(id.index);
    }

    fn charge_datagrams(
        &mut self,
        id: Option<SocketId>,
        remote: Endpoint,
        payload: &[u8],
        complaint: &Complaint,
    ) {
        let Some(id) = id else { return };
        if complaint.error == Error::MessageTooLong && complaint.mtu > 0 {
            self.net.learn_mtu(remote.address, complaint.mtu);
        }
        let Stack { sockets, net, .. } = self;
        let Ok(socket) = find(sockets, id) else { return };
        let report = ErrorReport {
            error: complaint.error,
            destination: remote.shown(socket.family()),
            reporter: complaint.reporter,
            message: complaint.message,
            mtu: complaint.mtu as u32,
            payload: payload[..payload.len().min(QUOTED)].to_vec(),
        };
        socket.report(net, report, complaint.hard);
    }
}

/// Reads a packet of this system's that a message quotes.
fn quoted(bytes: &[u8]) -> Option<Quoted<'_>> {
    match bytes.first()? >> 4 {
        4 => {
            let start = usize::from(bytes[0] & 15) * 4;
            let header = bytes.get(..start.max(IPV4))?;
            let address = |at: usize| {
                IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]))
            };
            Some(Quoted {
                source: address(12),
                destination: address(16),
                protocol: header[9],
                payload: &bytes[header.len()..],
            })
        }
        6 => {
            let (header, payload) = bytes.split_first_chunk::<IPV6>()?;
            let address = |at: usize| {
                let mut octets = [0; 16];
                octets.copy_from_slice(&header[at..at + 16]);
                IpAddr::V6(Ipv6Addr::from(octets))
            };
            Some(Quoted { source: address(8), destination: address(24), protocol: header[6], payload })
        }
        _ => None,
    }
}
