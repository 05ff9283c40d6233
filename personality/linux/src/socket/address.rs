//! Addresses of sockets.

use super::netlink::NetlinkAddress;
use super::packet::PacketAddress;
use crate::layout::Fields;
use crate::layout::inet::to_internet_address;
use crate::layout::socket::{address, to_address};
use alloc::vec::Vec;
use core::net::SocketAddr;
use unix::socket::UnixAddress;
use unix::{Error, Result};

/// The address of a socket, by its family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Unix(UnixAddress),
    Internet(SocketAddr),
    Netlink(NetlinkAddress),
    Packet(PacketAddress),
}

impl Address {
    /// The address as a structure that begins with the number of its family.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Address::Unix(name) => to_address(name),
            Address::Internet(address) => to_internet_address(address),
            Address::Netlink(address) => address.to_bytes(),
            Address::Packet(address) => address.to_bytes(),
        }
    }
}

/// The name of the socket of the Unix domain to which connect(2) is to connect. Datagram sockets
/// lose their connection by an address without a family, which is `Unnamed` here. `EINVAL`.
pub(super) fn of_peer(bytes: &[u8], is_datagram: bool) -> Result<UnixAddress> {
    if is_datagram && bytes.u16_at(0)? == 0 {
        return Ok(UnixAddress::Unnamed);
    }
    match address(bytes)? {
        UnixAddress::Unnamed => Err(Error::EINVAL),
        name => Ok(name),
    }
}
