//! Ends of flows of packets, and the keys that sockets are found by.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV6};

use crate::error::{Error, Result};
use crate::hash::Key;
use crate::net::is_link_local;
use crate::table::Hashed;
use crate::types::*;

/// An address and a port. Addresses of IPv4 are never mapped ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// The interface of an address of a link, else zero.
    pub(crate) scope: u32,
}

impl Endpoint {
    /// The unspecified one.
    pub(crate) fn any(family: Family) -> Endpoint {
        let address = match family {
            Family::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Endpoint { address, port: 0, scope: 0 }
    }

    pub(crate) fn new(address: IpAddr, port: u16, interface: InterfaceIndex) -> Endpoint {
        Endpoint { address, port, scope: if is_link_local(address) { interface.0 } else { 0 } }
    }

    /// An address that a caller gave for a socket of a family.
    ///
    /// # Errors
    ///
    /// `AddressFamilyNotSupported`, `NetworkUnreachable` for a mapped address of a socket that takes
    /// none.
    pub(crate) fn given(address: SocketAddress, family: Family, only_v6: bool) -> Result<Endpoint> {
        match (address, family) {
            (SocketAddress::V4(_), Family::V4) => {
                Ok(Endpoint { address: address.ip(), port: address.port(), scope: 0 })
            }
            (SocketAddress::V6(given), Family::V6) => match given.ip().to_ipv4_mapped() {
                Some(_) if only_v6 => Err(Error::NetworkUnreachable),
                Some(mapped) => Ok(Endpoint { address: mapped.into(), port: given.port(), scope: 0 }),
                None => Ok(Endpoint::new(address.ip(), given.port(), InterfaceIndex(given.scope_id()))),
            },
            _ => Err(Error::AddressFamilyNotSupported),
        }
    }

    /// As a socket of a family shows it.
    pub(crate) fn shown(&self, family: Family) -> SocketAddress {
        match (self.address, family) {
            (IpAddr::V4(address), Family::V6) => {
                let mapped =
                    if address.is_unspecified() { Ipv6Addr::UNSPECIFIED } else { address.to_ipv6_mapped() };
                SocketAddress::V6(SocketAddrV6::new(mapped, self.port, 0, 0))
            }
            (IpAddr::V6(address), _) => {
                SocketAddress::V6(SocketAddrV6::new(address, self.port, 0, self.scope))
            }
            (address, _) => SocketAddress::new(address, self.port),
        }
    }

    pub(crate) fn interface(&self) -> Option<InterfaceIndex> {
        (self.scope != 0).then_some(InterfaceIndex(self.scope))
    }
}

/// Both ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowKey {
    local: u128,
    remote: u128,
    ports: u32,
    protocol: u8,
}

impl FlowKey {
    pub(crate) fn new(protocol: u8, local: &Endpoint, remote: &Endpoint) -> FlowKey {
        FlowKey {
            local: number(local),
            remote: number(remote),
            ports: u32::from(local.port) << 16 | u32::from(remote.port),
            protocol,
        }
    }
}

/// An address as a number, in which the address of a link has its interface.
fn number(end: &Endpoint) -> u128 {
    match end.address {
        IpAddr::V4(address) => 0xffff_0000_0000 | u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address) ^ u128::from(end.scope) << 64,
    }
}

/// A flow in words.
pub(crate) fn words(flow: &FlowKey) -> [u64; 5] {
    [
        (flow.local >> 64) as u64,
        flow.local as u64,
        (flow.remote >> 64) as u64,
        flow.remote as u64,
        u64::from(flow.ports) << 8 | u64::from(flow.protocol),
    ]
}

impl Hashed for FlowKey {
    fn hash(&self, key: Key) -> u64 {
        key.hash(&words(self))
    }
}

/// A port of a protocol. For ICMP it is the identifier of echo requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortKey {
    pub(crate) protocol: u8,
    pub(crate) port: u16,
}

impl Hashed for PortKey {
    fn hash(&self, key: Key) -> u64 {
        key.hash(&[u64::from(self.protocol) << 16 | u64::from(self.port)])
    }
}

/// The sockets of a port.
#[derive(Default)]
pub(crate) struct Port {
    /// Those that were bound to it.
    pub(crate) bound: alloc::vec::Vec<SocketId>,
    /// Connections of other sockets that have it as their own port.
    pub(crate) connections: u32,
}
