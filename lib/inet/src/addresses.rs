//! Addresses and routes of interfaces, and groups.

use core::net::IpAddr;

use crate::error::{Error, Result};
use crate::net::{LO, Net, contains};
use crate::types::*;

impl Net {
    /// Adds an address, with the route to its network.
    pub(crate) fn insert_address(&mut self, address: Address) -> Result<()> {
        let same = |own: &&Address| own.prefix.address == address.prefix.address;
        if self.addresses.iter().any(|own| same(&own) && own.interface == address.interface) {
            return Err(Error::Exists);
        }
        if self.addresses.len() >= self.limits.routes {
            return Err(Error::NoBufferSpace);
        }
        self.addresses.push(address);
        self.generation += 1;
        self.note_address(address, false);
        if self.up(address.interface) {
            self.add_prefix_route(&address);
            if let IpAddr::V4(own) = address.prefix.address
                && address.interface != LO
            {
                self.announce(address.interface, own);
            }
        }
        Ok(())
    }

    /// Removes the address at a place of the list, with the route to its network if no other
    /// address needs that.
    pub(crate) fn drop_address(&mut self, at: usize) {
        let gone = self.addresses.remove(at);
        self.generation += 1;
        self.note_address(gone, true);
        let needs = |own: &&Address| {
            own.interface == gone.interface
                && own.prefix.length == gone.prefix.length
                && contains(&own.prefix, gone.prefix.address)
        };
        let other = self.addresses.iter().find(needs).copied();
        if other.is_none() {
            self.retain_routes(|route| {
                route.interface != gone.interface
                    || route.origin != RouteOrigin::Kernel
                    || route.destination.length != gone.prefix.length
                    || !contains(&route.destination, gone.prefix.address)
            });
        }
        self.retain_routes(|route| route.source != Some(gone.prefix.address));
        if let Some(other) = other
            && self.up(other.interface)
        {
            // The route may have gone with its source.
            self.add_prefix_route(&other);
        }
    }

    /// Adds the route to an address' network.
    pub(crate) fn add_prefix_route(&mut self, address: &Address) {
        let most = if address.prefix.address.is_ipv4() { 32 } else { 128 };
        if address.interface == LO || address.prefix.length >= most {
            return;
        }
        let v4 = address.prefix.address.is_ipv4();
        let route = Route {
            destination: network(&address.prefix),
            gateway: None,
            interface: address.interface,
            metric: if v4 { 0 } else { 256 },
            source: v4.then_some(address.prefix.address),
            origin: RouteOrigin::Kernel,
            // It ends with the address, which may be prolonged.
            expires: None,
        };
        // The route of another address of this network serves as well.
        let _ = self.insert_route(route);
    }

    pub(crate) fn insert_route(&mut self, route: Route) -> Result<()> {
        let most = if route.destination.address.is_ipv4() { 32 } else { 128 };
        if route.destination.length > most {
            return Err(Error::InvalidArgument);
        }
        let route = Route { destination: network(&route.destination), ..route };
        let link = self.link(route.interface).ok_or(Error::NotFound)?;
        if !link.public.up {
            return Err(Error::NetworkDown);
        }
        if let Some(gateway) = route.gateway {
            if gateway.is_ipv4() != route.destination.address.is_ipv4() || self.is_local(gateway) {
                return Err(Error::InvalidArgument);
            }
            let direct = crate::net::is_link_local(gateway)
                || self.route(gateway, Some(route.interface)).is_some_and(|route| route.gateway.is_none());
            if !direct {
                return Err(Error::NetworkUnreachable);
            }
        }
        let same = |other: &Route| {
            other.destination == route.destination
                && other.metric == route.metric
                && (route.destination.address.is_ipv4()
                    || other.gateway == route.gateway && other.interface == route.interface)
        };
        if self.routes.iter().any(same) {
            return Err(Error::Exists);
        }
        if self.routes.len() >= self.limits.routes {
            return Err(Error::NoBufferSpace);
        }
        self.routes.push(route);
        self.generation += 1;
        self.note_route(route, false);
        Ok(())
    }

    /// Adds a route in place of the one to its destination with its metric, if there is one. That
    /// one stays if the route cannot be added.
    pub(crate) fn replace_route(&mut self, route: Route) -> Result<()> {
        let Prefix { address, length } = route.destination;
        let at = self.routes.iter().position(|other| {
            other.metric == route.metric
                && other.destination.length == length
                && contains(&other.destination, address)
        });
        let old = at.map(|at| (at, self.routes.remove(at)));
        let done = self.insert_route(route);
        if let (Err(_), Some((at, old))) = (&done, old) {
            self.routes.insert(at, old);
        }
        done
    }

    /// A socket has joined a group.
    pub(crate) fn join(&mut self, interface: InterfaceIndex, group: IpAddr) {
        let Some(link) = self.link_mut(interface) else { return };
        match link.groups.iter_mut().find(|entry| entry.0 == group) {
            Some(entry) => entry.1 += 1,
            None => link.groups.push((group, 1)),
        }
    }

    /// A socket has left a group.
    pub(crate) fn leave(&mut self, interface: InterfaceIndex, group: IpAddr) {
        let Some(link) = self.link_mut(interface) else { return };
        if let Some(at) = link.groups.iter().position(|entry| entry.0 == group) {
            link.groups[at].1 -= 1;
            if link.groups[at].1 == 0 {
                link.groups.swap_remove(at);
            }
        }
    }
}

/// A prefix whose address has no bits of hosts.
pub(crate) fn network(prefix: &Prefix) -> Prefix {
    let address = match prefix.address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.length)).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.length)).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    };
    Prefix { address, length: prefix.length }
}
