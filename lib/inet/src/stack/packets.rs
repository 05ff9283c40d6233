//! Packet sockets: frames as they are on the cable.

use super::{Stack, find};
use crate::error::{Error, Result};
use crate::output::ETHERNET;
use crate::types::*;

/// Frames of every type.
const ALL: u16 = 3;

impl Stack {
    /// Gives a frame to the packet sockets that want it.
    pub(super) fn tap(&mut self, interface: InterfaceIndex, frame: &[u8], class: LinkClass) {
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
                && socket.options.interface.is_none_or(|bound| bound == interface);
            if !fits {
                continue;
            }
            let header = if cooked { &[][..] } else { &shown[..] };
            let received = Received {
                copied: 0,
                length: header.len() + payload.len(),
                from: None,
                to: None,
                interface,
                hops: 0,
                traffic_class: 0,
                time: net.now,
                link: Some(LinkHeader { source, protocol, class }),
                options: HeaderOptions::default(),
            };
            socket.put(net, (header, payload), received);
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
        if link.public.loopback {
            return Err(Error::NotSupported);
        }
        let (mtu, mac) = (link.public.mtu, link.public.mac);
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
        self.net.queue(interface, Frame { bytes, checksum: None, segment: None })?;
        Ok(data.len())
    }
}
