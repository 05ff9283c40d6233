//! Where packets go: addresses of the system, routes, the next hop.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::{Error, Result};
use crate::net::{LO, LO_MTU, Net, contains, is_link_local};
use crate::types::*;

/// The way of packets to one destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) interface: InterfaceIndex,
    pub(crate) next_hop: IpAddr,
    /// The address that packets come from if their socket has none.
    pub(crate) source: IpAddr,
    /// The largest packet of IP.
    pub(crate) mtu: usize,
    pub(crate) cast: Cast,
    /// The generation of [`Net`] that this holds in.
    pub(crate) generation: u64,
}

/// To which systems a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    /// This one.
    Local,
    /// Another one.
    Unicast,
    Broadcast,
    Multicast,
}

/// What a socket says about the way.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wish {
    pub(crate) interface: Option<InterfaceIndex>,
    pub(crate) dont_route: bool,
}

impl Net {
    /// The way to a destination.
    pub(crate) fn path(&self, destination: IpAddr, wish: Wish) -> Result<Path> {
        let destination = match destination {
            // "This host" means the loopback address.
            IpAddr::V4(address) if address.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(address) if address.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            other => other,
        };
        if self.is_local(destination) {
            return Ok(Path {
                interface: LO,
                next_hop: destination,
                source: destination,
                mtu: self.local_mtu(destination),
                cast: Cast::Local,
                generation: self.generation,
            });
        }
        if destination.is_multicast() {
            let interface = match wish.interface {
                Some(interface) => interface,
                None => self.default_interface(destination).ok_or(Error::NetworkUnreachable)?,
            };
            return self.direct(interface, destination, Cast::Multicast);
        }
        if self.is_broadcast(destination) {
            let interface = wish.interface.or_else(|| {
                let route = self.route(destination, None).map(|route| route.interface);
                route.or_else(|| self.default_interface(destination))
            });
            return self.direct(interface.ok_or(Error::NetworkUnreachable)?, destination, Cast::Broadcast);
        }
        if is_link_local(destination) {
            let interface = wish.interface.or_else(|| self.default_interface(destination));
            return self.direct(interface.ok_or(Error::InvalidArgument)?, destination, Cast::Unicast);
        }
        let Some(route) = self.route(destination, wish.interface) else {
            // An interface without routes reaches what is on its cable.
            return match wish.interface {
                Some(interface) if self.up(interface) && interface != LO => {
                    self.direct(interface, destination, Cast::Unicast)
                }
                _ => Err(Error::NetworkUnreachable),
            };
        };
        if wish.dont_route && route.gateway.is_some() {
            return Err(Error::NetworkUnreachable);
        }
        let mut path = self.direct(route.interface, route.gateway.unwrap_or(destination), Cast::Unicast)?;
        path.source = match route.source {
            Some(source) => source,
            None => self.source(route.interface, destination).unwrap_or(path.source),
        };
        if let Some(&(mtu, until)) = self.path_mtus.get(&destination)
            && until > self.now
        {
            path.mtu = path.mtu.min(mtu);
        }
        Ok(path)
    }

    /// The largest packet to an own address: that of `lo`, and of the protocol.
    fn local_mtu(&self, destination: IpAddr) -> usize {
        let most = if destination.is_ipv4() { 65535 } else { LO_MTU };
        self.link(LO).map_or(most, |link| link.public.mtu.min(most))
    }

    fn direct(&self, interface: InterfaceIndex, next_hop: IpAddr, cast: Cast) -> Result<Path> {
        let link = self.link(interface).ok_or(Error::NotFound)?;
        if !link.public.up {
            return Err(Error::NetworkDown);
        }
        let unspecified = match next_hop {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Ok(Path {
            interface,
            next_hop,
            source: self.source(interface, next_hop).unwrap_or(unspecified),
            mtu: link.public.mtu,
            cast,
            generation: self.generation,
        })
    }

    /// The interface of destinations that no route is for: that of the default route, or the first
    /// one with a cable, or `lo`.
    fn default_interface(&self, destination: IpAddr) -> Option<InterfaceIndex> {
        if let Some(route) = self.route(destination, None) {
            return Some(route.interface);
        }
        let default = self.routes.iter().find(|route| {
            route.destination.length == 0 && route.destination.address.is_ipv4() && self.up(route.interface)
        });
        let first = || self.links.iter().find(|link| link.public.up && !link.public.loopback);
        let found = default.map(|route| route.interface).or_else(|| first().map(|link| link.public.index));
        found.or_else(|| self.up(LO).then_some(LO))
    }

    /// The route with the longest prefix, then the smallest metric.
    pub(crate) fn route(&self, destination: IpAddr, interface: Option<InterfaceIndex>) -> Option<&Route> {
        let usable = |route: &&Route| {
            contains(&route.destination, destination)
                && interface.is_none_or(|interface| interface == route.interface)
                && self.link(route.interface).is_some_and(|link| link.public.up && link.public.link)
        };
        let routes = self.routes.iter().filter(usable);
        routes.min_by_key(|route| (core::cmp::Reverse(route.destination.length), route.metric))
    }

    /// The address that packets from an interface to a destination come from: of the same scope,
    /// then of the same network, then not deprecated.
    pub(crate) fn source(&self, interface: InterfaceIndex, destination: IpAddr) -> Option<IpAddr> {
        let of_family =
            |own: &&Address| own.prefix.address.is_ipv4() == destination.is_ipv4() && !own.tentative;
        let rank = |own: &Address| {
            let scope = is_link_local(own.prefix.address) == is_link_local_scope(destination);
            let fresh = own.deprecated.is_none_or(|at| at > self.now);
            (scope, contains(&own.prefix, destination), fresh)
        };
        let at_interface = self.addresses.iter().filter(of_family).filter(|own| own.interface == interface);
        // The first of equal ones: `max_by_key` answers the last.
        let best = at_interface.rev().max_by_key(|own| rank(own));
        let elsewhere = || {
            let others = self.addresses.iter().filter(of_family);
            others
                .filter(|own| own.interface != LO && self.up(own.interface))
                .find(|own| !is_link_local(own.prefix.address))
        };
        best.or_else(elsewhere).map(|own| own.prefix.address)
    }

    /// Remembers that a path takes only packets of `mtu` bytes.
    pub(crate) fn learn_mtu(&mut self, destination: IpAddr, mtu: usize) {
        /// Destinations that are remembered.
        const PATHS: usize = 256;
        /// For how long.
        const AGE: core::time::Duration = core::time::Duration::from_secs(600);
        if self.path_mtus.len() >= PATHS && !self.path_mtus.contains_key(&destination) {
            let oldest = self.path_mtus.iter().min_by_key(|(_, entry)| entry.1).map(|(key, _)| *key);
            if let Some(oldest) = oldest {
                self.path_mtus.remove(&oldest);
            }
        }
        self.path_mtus.insert(destination, (believed_mtu(destination, mtu), self.now + AGE));
        self.generation += 1;
    }
}

/// What is believed of an MTU that a router told: less would make packets needlessly small.
pub(crate) fn believed_mtu(destination: IpAddr, mtu: usize) -> usize {
    mtu.max(if destination.is_ipv4() { 552 } else { 1280 })
}

fn is_link_local_scope(address: IpAddr) -> bool {
    is_link_local(address)
        || matches!(address, IpAddr::V6(address) if address.segments()[0] & 0xff0f == 0xff02)
}
