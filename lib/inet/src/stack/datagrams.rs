//! Sockets for datagrams of UDP, echo requests, and raw packets.

use core::net::IpAddr;

use super::ip::Packet;
use super::{Owner, Stack, find};
use crate::checksum;
use crate::error::{Error, Result};
use crate::flow::{Endpoint, FlowKey, PortKey};
use crate::output::{ETHERNET, Header, Sum};
use crate::path::{Cast, Path, Wish};
use crate::socket::{OVERHEAD, PortUse, Role, Socket};
use crate::table::Hashed;
use crate::types::*;

/// The protocol's number.
pub(super) const UDP: u8 = 17;
/// Bytes of its header.
const UDP_HEADER: usize = 8;

impl Stack {
    /// Takes a datagram of UDP.
    pub(super) fn take_udp(&mut self, packet: &Packet, bytes: &[u8]) -> Result<()> {
        let datagram = smoltcp::wire::UdpPacket::new_checked(bytes).map_err(|_| Error::ProtocolError)?;
        let length = usize::from(datagram.len());
        let summed = datagram.checksum() != 0;
        if !packet.verified && (summed || packet.source.is_ipv6()) {
            let pseudo = checksum::pseudo(packet.source, packet.destination, UDP, length);
            if !summed || checksum::fold(checksum::sum(&bytes[..length], pseudo)) != 0xffff {
                return Err(Error::ProtocolError);
            }
        }
        let local = Endpoint::new(packet.destination, datagram.dst_port(), packet.interface);
        let remote = Endpoint::new(packet.source, datagram.src_port(), packet.interface);
        let datagram = &bytes[..length];
        if packet.cast != Cast::Local {
            self.spread(packet, PortKey { protocol: UDP, port: local.port }, &remote, datagram);
            return Ok(());
        }
        let flow = FlowKey::new(UDP, &local, &remote);
        let id = match self.flows.get(&flow) {
            Some(Owner::Socket(id)) => Some(*id),
            _ => {
                let key = PortKey { protocol: UDP, port: local.port };
                let hash = flow.hash(self.net.key);
                self.lookup(key, packet.destination, packet.interface, hash, |socket| {
                    socket.peer.is_none_or(|peer| peer == remote)
                })
            }
        };
        match id {
            Some(id) => self.deliver(id, packet, &remote, datagram, UDP_HEADER),
            None => self.answer_unreachable(packet, bytes, Unreachable::Port),
        }
        Ok(())
    }

    /// Gives a datagram of UDP to every socket of a port that takes it.
    fn spread(&mut self, packet: &Packet, key: PortKey, remote: &Endpoint, datagram: &[u8]) {
        let Some(port) = self.ports.get(&key) else { return };
        for id in port.bound.clone() {
            let fits = self.socket(id).is_ok_and(|socket| {
                socket.takes(packet.destination, packet.interface)
                    && socket.peer.is_none_or(|peer| peer == *remote)
                    && (packet.cast == Cast::Broadcast || member(socket, packet))
            });
            if fits {
                self.deliver(id, packet, remote, datagram, UDP_HEADER);
            }
        }
    }

    /// Puts a datagram into a socket's queue, without its header of `header` bytes.
    fn deliver(&mut self, id: SocketId, packet: &Packet, remote: &Endpoint, datagram: &[u8], header: usize) {
        let Stack { sockets, net, .. } = self;
        let Ok(socket) = find(sockets, id) else { return };
        let received = Received {
            copied: 0,
            length: datagram.len() - header,
            from: Some(remote.shown(socket.family())),
            to: Some(packet.destination),
            interface: packet.interface,
            hops: packet.hops,
            traffic_class: packet.traffic_class,
            time: net.now,
            link: None,
            options: HeaderOptions::of(packet.header),
        };
        socket.put(net, (datagram, &[]), header, received);
    }

    /// Gives an answer to an echo request to the socket that asked.
    pub(super) fn take_echo_reply(&mut self, packet: &Packet, message: &[u8]) {
        let identifier = u16::from_be_bytes([message[4], message[5]]);
        let protocol = if packet.source.is_ipv4() { 1 } else { 58 };
        let key = PortKey { protocol, port: identifier };
        let remote = Endpoint::new(packet.source, 0, packet.interface);
        let found = self.lookup(key, packet.destination, packet.interface, 0, |socket| {
            socket.peer.is_none_or(|peer| peer.address == remote.address)
        });
        if let Some(id) = found {
            self.deliver(id, packet, &remote, message, 0);
        }
    }

    /// Gives a packet to the raw sockets of its protocol. Answers whether there is one. Those of
    /// IPv4 get the IP header as well.
    pub(super) fn take_raw(&mut self, packet: &Packet, payload: &[u8]) -> bool {
        if self.raws.is_empty() {
            return false;
        }
        let v4 = packet.source.is_ipv4();
        let remote = Endpoint::new(packet.source, 0, packet.interface);
        let mut found = false;
        for at in 0..self.raws.len() {
            let Stack { sockets, net, raws, .. } = self;
            let Ok(socket) = find(sockets, raws[at]) else { continue };
            let Kind::Raw(family, protocol) = socket.kind else { continue };
            let icmp = matches!(protocol, 1 | 58);
            let message = payload.first().copied().unwrap_or(0);
            let filtered =
                icmp && socket.options.icmp_filter[usize::from(message) / 64] >> (message % 64) & 1 == 1;
            let fits = (family == Family::V4) == v4
                && protocol == packet.protocol
                && !filtered
                && socket.peer.is_none_or(|peer| peer.address == packet.source)
                && socket.takes(packet.destination, packet.interface)
                && (packet.cast != Cast::Multicast || member(socket, packet));
            if !fits {
                continue;
            }
            found = true;
            let header = if v4 { packet.header } else { &[] };
            let received = Received {
                copied: 0,
                length: header.len() + payload.len(),
                from: Some(remote.shown(family)),
                to: Some(packet.destination),
                interface: packet.interface,
                hops: packet.hops,
                traffic_class: packet.traffic_class,
                time: net.now,
                link: None,
                options: HeaderOptions::of(packet.header),
            };
            socket.put(net, (header, payload), 0, received);
        }
        found
    }

    pub(super) fn connect_datagrams(&mut self, id: SocketId, peer: SocketAddress) -> Result<()> {
        let socket = self.socket(id)?;
        let (kind, options) = (socket.kind, socket.options);
        let mut remote = Endpoint::given(peer, kind.family(), options.only_v6)?;
        let (path, source) = self.way(socket, remote, &SendFlags::default())?;
        if remote.address.is_unspecified() {
            remote.address = path.source;
        }
        // An address of a link is that of the interface that the peer's datagrams arrive at.
        remote = Endpoint::new(remote.address, remote.port, path.interface);
        if path.cast == Cast::Broadcast && !options.broadcast {
            return Err(Error::AccessDenied);
        }
        self.leave_flow(id);
        if !matches!(kind, Kind::Raw(..)) {
            self.autobind(id)?;
        }
        let socket = self.socket_mut(id)?;
        if !socket.fixed || socket.local.address.is_unspecified() {
            let port = socket.local.port;
            socket.local = Endpoint::new(source, port, path.interface);
        }
        socket.peer = Some(remote);
        if let Kind::Udp(_) = kind {
            let flow = FlowKey::new(UDP, &socket.local, &remote);
            if self.flows.get(&flow).is_none() {
                self.flows.insert(flow, Owner::Socket(id));
            }
        }
        Ok(())
    }

    /// Gives the socket a port, if it has none.
    pub(super) fn autobind(&mut self, id: SocketId) -> Result<()> {
        let socket = self.socket(id)?;
        if socket.port != PortUse::None {
            return Ok(());
        }
        let (local, protocol) = (socket.local, socket.kind.protocol());
        let port = self.choose_port(id, &local, None)?;
        self.ports_entry(protocol, port).bound.push(id);
        let socket = self.socket_mut(id)?;
        socket.local.port = port;
        socket.port = PortUse::Bound;
        Ok(())
    }

    /// The way of a datagram, and its source's address.
    fn way(&self, socket: &Socket, remote: Endpoint, flags: &SendFlags) -> Result<(Path, IpAddr)> {
        let options = &socket.options;
        let mut interface = flags.interface.or(options.interface).or(remote.interface());
        if remote.address.is_multicast() {
            interface = interface.or(options.multicast_interface).or(socket.local.interface());
        }
        let dont_route = options.dont_route || flags.dont_route;
        let path = self.net.path(remote.address, Wish { interface, dont_route })?;
        let bound = Some(socket.local.address).filter(|address| {
            !address.is_unspecified() && !address.is_multicast() && !self.net.is_broadcast(*address)
        });
        let source = flags.source.filter(|source| !source.is_unspecified()).or(bound).unwrap_or(path.source);
        if source.is_ipv4() != path.next_hop.is_ipv4() {
            return Err(Error::NetworkUnreachable);
        }
        // No packet comes from an address of another system, even if it was bound. Raw packets with
        // a header of the program's say themselves where they come from.
        let own = source == path.source || self.net.is_local(source);
        if !own && !own_header(socket) {
            return Err(Error::InvalidArgument);
        }
        Ok((path, source))
    }

    pub(super) fn send_datagram(
        &mut self,
        id: SocketId,
        data: &[u8],
        to: Option<SocketAddress>,
        flags: SendFlags,
    ) -> Result<usize> {
        let socket = self.socket_mut(id)?;
        if let Some(error) = socket.error.take() {
            return Err(error);
        }
        if matches!(&socket.role, Role::Datagrams(datagrams) if datagrams.write_closed) {
            return Err(Error::BrokenPipe);
        }
        let (kind, options) = (socket.kind, socket.options);
        let mut remote = match (to, socket.peer) {
            (Some(to), _) => Endpoint::given(to, kind.family(), options.only_v6)?,
            (None, Some(peer)) => peer,
            (None, None) => return Err(Error::DestinationRequired),
        };
        if matches!(kind, Kind::Udp(_)) && remote.port == 0 {
            return Err(Error::InvalidArgument);
        }
        if !matches!(kind, Kind::Raw(..)) {
            self.autobind(id)?;
        }
        let socket = self.socket(id)?;
        let port = socket.local.port;
        let (path, source) = self.way(socket, remote, &flags)?;
        if remote.address.is_unspecified() {
            remote.address = path.source;
        }
        if path.cast == Cast::Broadcast && !options.broadcast {
            return Err(Error::AccessDenied);
        }
        let group = path.cast == Cast::Multicast;
        let hops = flags.hops.unwrap_or(if group { options.multicast_hops } else { options.hops });
        let header = Header {
            source,
            destination: remote.address,
            protocol: kind.protocol(),
            hops,
            traffic_class: flags.traffic_class.unwrap_or(options.traffic_class),
            dont_fragment: options.dont_fragment,
        };
        let most = if source.is_ipv4() { 65535 - 20 } else { 65535 };
        let udp = if matches!(kind, Kind::Udp(_)) { 8 } else { 0 };
        if data.len() + udp > most {
            return Err(Error::MessageTooLong);
        }
        if own_header(self.socket(id)?) {
            return self.send_own_header(&path, &header, data);
        }
        let mut packet = self.net.begin(&header);
        let sum = match kind {
            Kind::Udp(_) => {
                packet.extend_from_slice(&port.to_be_bytes());
                packet.extend_from_slice(&remote.port.to_be_bytes());
                packet.extend_from_slice(&((data.len() + 8) as u16).to_be_bytes());
                packet.extend_from_slice(&[0, 0]);
                Sum::At(6)
            }
            Kind::IcmpEcho(family) => return self.send_echo(&path, &header, family, port, data, packet),
            Kind::Raw(Family::V6, 58) if data.len() >= 8 => Sum::At(2),
            _ => Sum::Done,
        };
        packet.extend_from_slice(data);
        if let (Kind::Raw(..), Sum::At(at)) = (kind, sum) {
            let at = ETHERNET + header.length() + at;
            packet[at..at + 2].fill(0);
        }
        self.loop_group(&path, &header, &packet, sum, options.multicast_loop)?;
        self.net.send(&path, &header, packet, sum)?;
        Ok(data.len())
    }

    /// Gives this system's sockets what goes to a group, too.
    fn loop_group(
        &mut self,
        path: &Path,
        header: &Header,
        packet: &[u8],
        sum: Sum,
        wanted: bool,
    ) -> Result<()> {
        if path.cast != Cast::Multicast || !wanted || path.interface == crate::net::LO {
            return Ok(());
        }
        let mut copy = self.net.buffer();
        copy.extend_from_slice(packet);
        let own = Path { cast: Cast::Local, mtu: crate::net::LO_MTU, ..*path };
        self.net.send(&own, header, copy, sum)
    }

    /// Sends an echo request: what the program gives is the message, of which the identifier and
    /// the checksum are made here.
    fn send_echo(
        &mut self,
        path: &Path,
        header: &Header,
        family: Family,
        identifier: u16,
        data: &[u8],
        mut packet: alloc::vec::Vec<u8>,
    ) -> Result<usize> {
        let request = if family == Family::V4 { 8 } else { 128 };
        if data.len() < 8 || data[0] != request || data[1] != 0 {
            self.net.recycle(packet);
            return Err(Error::InvalidArgument);
        }
        if header.source.is_ipv4() != (family == Family::V4) {
            self.net.recycle(packet);
            return Err(Error::NetworkUnreachable);
        }
        let start = packet.len();
        packet.extend_from_slice(data);
        packet[start + 2..start + 4].fill(0);
        packet[start + 4..start + 6].copy_from_slice(&identifier.to_be_bytes());
        let sum = if family == Family::V4 {
            let value = !checksum::fold(checksum::sum(&packet[start..], 0));
            packet[start + 2..start + 4].copy_from_slice(&value.to_be_bytes());
            Sum::Done
        } else {
            Sum::At(2)
        };
        self.net.send(path, header, packet, sum)?;
        Ok(data.len())
    }

    /// Sends a packet whose IPv4 header the program made. Its length, its checksum and, if they are
    /// zero, its source and identification are made here, as on Linux.
    fn send_own_header(&mut self, path: &Path, header: &Header, data: &[u8]) -> Result<usize> {
        let length = usize::from(data.first().copied().unwrap_or(0) & 15) * 4;
        if data.len() < 20 || data[0] >> 4 != 4 || length < 20 || length > data.len() {
            return Err(Error::InvalidArgument);
        }
        if data.len() > path.mtu {
            return Err(Error::MessageTooLong);
        }
        let mut packet = self.net.buffer();
        packet.resize(ETHERNET, 0);
        packet.extend_from_slice(data);
        let bytes = &mut packet[ETHERNET..];
        bytes[2..4].copy_from_slice(&(data.len() as u16).to_be_bytes());
        if let IpAddr::V4(source) = header.source
            && bytes[12..16] == [0; 4]
        {
            bytes[12..16].copy_from_slice(&source.octets());
        }
        bytes[10..12].fill(0);
        let sum = !checksum::fold(checksum::sum(&bytes[..length], 0));
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        self.net.emit(path, Frame { bytes: packet, checksum: None, segment: None })?;
        Ok(data.len())
    }

    pub(super) fn receive_datagram(
        &mut self,
        id: SocketId,
        buffer: &mut [u8],
        flags: ReceiveFlags,
    ) -> Result<Received> {
        let Stack { sockets, net, .. } = self;
        let socket = find(sockets, id)?;
        if let Some(error) = socket.error.take() {
            return Err(error);
        }
        let Role::Datagrams(datagrams) = &mut socket.role else { return Err(Error::NotConnected) };
        if flags.urgent {
            return Err(Error::NotSupported);
        }
        let Some(datagram) = datagrams.queue.front() else {
            if datagrams.read_closed {
                return Ok(Received {
                    copied: 0,
                    length: 0,
                    from: None,
                    to: None,
                    interface: crate::net::LO,
                    hops: 0,
                    traffic_class: 0,
                    time: net.now,
                    link: None,
                    options: HeaderOptions::default(),
                });
            }
            return Err(Error::WouldBlock);
        };
        let copied = datagram.bytes.len().min(buffer.len());
        buffer[..copied].copy_from_slice(&datagram.bytes[..copied]);
        let received = Received { copied, ..datagram.received };
        if !flags.peek
            && let Some(datagram) = datagrams.queue.pop_front()
        {
            let size = datagram.bytes.len() + OVERHEAD;
            datagrams.bytes -= size;
            net.shrink(size);
        }
        Ok(received)
    }
}

/// Why a packet cannot be delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreachable {
    Port,
    Protocol,
}

/// Whether what the program sends begins with an IP header.
fn own_header(socket: &Socket) -> bool {
    matches!(socket.kind, Kind::Raw(Family::V4, protocol) if socket.options.header_included || protocol == 255)
}

/// Whether the socket has joined the group that a packet went to. One that is bound to a group has
/// to join it as well.
fn member(socket: &Socket, packet: &Packet) -> bool {
    let Role::Datagrams(datagrams) = &socket.role else { return false };
    datagrams.groups.contains(&(packet.destination, packet.interface))
}
