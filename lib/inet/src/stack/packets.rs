//! Packet sockets: frames as they are on the cable.

use super::{Stack, find};
use crate::error::{Error, Result};
use crate::filter::Program;
use crate::net::Net;
use crate::output::ETHERNET;
use crate::socket::Role;
use crate::types::*;

/// Frames of every type.
const ALL: u16 = 3;
/// What a packet socket can ask interfaces for, at most.
const MEMBERSHIPS: usize = 64;

impl Net {
    /// Counts the sockets that ask an interface for frames to other systems.
    pub(crate) fn watch(&mut self, interface: InterfaceIndex, membership: Membership, begins: bool) {
        if membership == Membership::Promiscuous
            && let Some(link) = self.link_mut(interface)
        {
            link.watchers = if begins { link.watchers + 1 } else { link.watchers.saturating_sub(1) };
        }
    }
}

impl Stack {
    /// Gives a frame to the packet sockets that want it, but for the one that sent it.
    pub(super) fn tap(
        &mut self,
        interface: InterfaceIndex,
        frame: &[u8],
        class: LinkClass,
        sender: Option<SocketId>,
    ) {
        if frame.len() < ETHERNET {
            return;
        }
        let (header, payload) = frame.split_at(ETHERNET);
        let mut protocol = u16::from_be_bytes([header[12], header[13]]);
        if protocol == 0 {
            // On `lo` frames have no header.
            protocol = if payload.first().is_some_and(|byte| byte >> 4 == 6) { 0x86dd } else { 0x0800 };
        }
        let mut source = [0; 6];
        source.copy_from_slice(&header[6..12]);
        let mut shown = [0; ETHERNET];
        shown.copy_from_slice(header);
        shown[12..].copy_from_slice(&protocol.to_be_bytes());
        for at in 0..self.taps.len() {
            let Stack { sockets, net, taps, .. } = self;
            let Ok(socket) = find(sockets, taps[at]) else { continue };
            let Kind::Packet { protocol: wanted, cooked } = socket.kind else { continue };
            // What is sent is seen only by those that see everything.
            let fits = (wanted == ALL || wanted == protocol && class != LinkClass::Outgoing)
                && socket.options.interface.is_none_or(|bound| bound == interface)
                && sender != Some(socket.id);
            if !fits {
                continue;
            }
            let hidden = if cooked { ETHERNET } else { 0 };
            let whole = ETHERNET + payload.len() - hidden;
            let received = Received {
                copied: 0,
                length: whole,
                from: None,
                to: None,
                interface,
                hops: 0,
                traffic_class: 0,
                time: net.now,
                link: Some(LinkHeader { source, protocol, class, whole }),
                options: HeaderOptions::default(),
            };
            socket.put(net, (&shown, payload), hidden, received);
        }
    }

    pub(super) fn send_packet(
        &mut self,
        id: SocketId,
        data: &[u8],
        interface: InterfaceIndex,
        protocol: u16,
        to: [u8; 6],
    ) -> Result<usize> {
        let Kind::Packet { cooked, .. } = self.socket(id)?.kind else { return Err(Error::NotSupported) };
        let link = self.net.link(interface).ok_or(Error::NotFound)?;
        if !link.public.up {
            return Err(Error::NetworkDown);
        }
        let (mtu, mac, loopback) = (link.public.mtu, link.public.mac, link.public.loopback);
        if data.len() > mtu + if cooked { 0 } else { ETHERNET } {
            return Err(Error::MessageTooLong);
        }
        if !cooked && data.len() < ETHERNET {
            return Err(Error::InvalidArgument);
        }
        let mut bytes = self.net.buffer();
        if cooked {
            bytes.extend_from_slice(&to);
            bytes.extend_from_slice(&mac);
            bytes.extend_from_slice(&protocol.to_be_bytes());
        }
        bytes.extend_from_slice(data);
        if loopback {
            self.net.loop_back_of(bytes, interface, Some(id))?;
        } else {
            self.net.queue_of(interface, Frame { bytes, checksum: None, segment: None }, Some(id))?;
        }
        Ok(data.len())
    }

    /// Adds what a packet socket asks an interface for, or takes it back; it can be asked for
    /// several times.
    ///
    /// # Errors
    ///
    /// `NotFound` for the interface, `AddressNotAvailable` if it was not asked for, `NotSupported`
    /// for other sockets, `NoBufferSpace`.
    pub fn watch(
        &mut self,
        id: SocketId,
        interface: InterfaceIndex,
        membership: Membership,
        begins: bool,
    ) -> Result<()> {
        let Stack { sockets, net, .. } = self;
        let socket = find(sockets, id)?;
        let (Kind::Packet { .. }, Role::Datagrams(datagrams)) = (socket.kind, &mut socket.role) else {
            return Err(Error::NotSupported);
        };
        let entry = (interface, membership);
        if begins {
            net.link(interface).ok_or(Error::NotFound)?;
            if datagrams.memberships.len() >= MEMBERSHIPS {
                return Err(Error::NoBufferSpace);
            }
            datagrams.memberships.push(entry);
        } else {
            let at = datagrams.memberships.iter().position(|known| *known == entry);
            datagrams.memberships.swap_remove(at.ok_or(Error::AddressNotAvailable)?);
        }
        net.watch(interface, membership, begins);
        Ok(())
    }

    /// What happened to the frames for a packet socket since this was last asked for.
    ///
    /// # Errors
    ///
    /// `NotSupported` for other sockets.
    pub fn take_statistics(&mut self, id: SocketId) -> Result<PacketStatistics> {
        let socket = self.socket_mut(id)?;
        match (socket.kind, &mut socket.role) {
            (Kind::Packet { .. }, Role::Datagrams(datagrams)) => {
                Ok(core::mem::take(&mut datagrams.statistics))
            }
            _ => Err(Error::NotSupported),
        }
    }

    /// Sets the filter that decides which packets a socket receives, or removes it. Its memory
    /// counts as that of buffers does. Answers whether there was a filter.
    ///
    /// # Errors
    ///
    /// `NotSupported` for a stream, `NoBufferSpace`.
    pub fn set_filter(&mut self, id: SocketId, filter: Option<Program>) -> Result<bool> {
        let Stack { sockets, net, .. } = self;
        let socket = find(sockets, id)?;
        if matches!(socket.kind, Kind::Tcp(_)) {
            return Err(Error::NotSupported);
        }
        if let Some(filter) = &filter
            && !net.grow(filter.size(), socket.owner)
        {
            return Err(Error::NoBufferSpace);
        }
        let before = core::mem::replace(&mut socket.filter, filter);
        net.shrink(before.as_ref().map_or(0, Program::size), socket.owner);
        Ok(before.is_some())
    }

    /// Tells packet sockets that are bound to an interface that it is down.
    pub(super) fn tell_taps(&mut self, interface: InterfaceIndex) {
        let Stack { sockets, net, taps, .. } = self;
        for id in taps {
            if let Ok(socket) = find(sockets, *id)
                && socket.options.interface == Some(interface)
            {
                socket.error = Some(Error::NetworkDown);
                socket.announce(net);
            }
        }
    }
}
