//! Interfaces, addresses, routes and neighbours, for the administrator.

use core::net::{IpAddr, Ipv4Addr};

use super::Stack;
use crate::error::{Error, Result};
use crate::net::{LO, LO_MTU, contains};
use crate::path::Wish;
use crate::types::*;

impl Stack {
    /// Adds an interface of Ethernet, which is down and whose link is up.
    ///
    /// # Errors
    ///
    /// `Exists` for a name that is taken, `InvalidArgument` for a bad name or an MTU out of
    /// 576..=65535, `NoBufferSpace` if there are too many.
    pub fn add_interface(
        &mut self,
        name: &str,
        mac: [u8; 6],
        mtu: usize,
        offload: Offload,
    ) -> Result<InterfaceIndex> {
        let bad_name =
            name.is_empty() || name.len() > 15 || name.contains(['/', ' ']) || name == "." || name == "..";
        if bad_name || !(576..=65535).contains(&mtu) || mac[0] & 1 != 0 {
            return Err(Error::InvalidArgument);
        }
        if self.net.links.iter().any(|link| link.public.name == name) {
            return Err(Error::Exists);
        }
        if self.net.links.len() >= self.net.limits.interfaces {
            return Err(Error::NoBufferSpace);
        }
        Ok(self.net.add_link(name, mac, mtu, offload, false))
    }

    /// Removes an interface with its addresses, routes and neighbours; `lo` stays.
    ///
    /// # Errors
    ///
    /// `NotFound`, `InvalidArgument` for `lo`.
    pub fn remove_interface(&mut self, interface: InterfaceIndex) -> Result<()> {
        if interface == LO {
            return Err(Error::InvalidArgument);
        }
        self.net.link(interface).ok_or(Error::NotFound)?;
        let _ = self.stop_dhcp(interface);
        self.net.retain_addresses(|own| own.interface != interface);
        self.net.retain_routes(|route| route.interface != interface);
        self.net.forget_neighbours(interface);
        let place = self.net.links.iter().position(|link| link.public.index == interface);
        if let Some(gone) = place.map(|at| self.net.links.remove(at)) {
            self.net.note_link_gone(gone.public);
        }
        self.tell_taps(interface);
        self.net.generation += 1;
        Ok(())
    }

    /// Allows the interface to be used, or forbids it.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn set_up(&mut self, interface: InterfaceIndex, up: bool) -> Result<()> {
        let link = self.net.link_mut(interface).ok_or(Error::NotFound)?;
        if link.public.up == up {
            return Ok(());
        }
        link.public.up = up;
        link.queue.clear();
        self.net.generation += 1;
        self.net.note_link(interface);
        if interface == LO {
            return Ok(());
        }
        if up {
            let addresses = self.net.addresses.clone();
            for own in addresses.iter().filter(|own| own.interface == interface) {
                self.net.add_prefix_route(own);
            }
            self.net.begin_v6(interface);
            self.renew_dhcp(interface);
        } else {
            // Routes that programs gave go with the interface, as on Linux.
            self.net.retain_routes(|route| route.interface != interface);
            self.net.forget_neighbours(interface);
            self.net.end_v6(interface);
            self.tell_taps(interface);
        }
        self.pump();
        Ok(())
    }

    /// Says that the cable was plugged in or out.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn set_link(&mut self, interface: InterfaceIndex, link: bool) -> Result<()> {
        let entry = self.net.link_mut(interface).ok_or(Error::NotFound)?;
        if entry.public.link == link {
            return Ok(());
        }
        entry.public.link = link;
        self.net.generation += 1;
        self.net.note_link(interface);
        if interface == LO {
            return Ok(());
        }
        if link {
            self.net.ask_routers(interface);
            self.renew_dhcp(interface);
        } else {
            if let Some(entry) = self.net.link_mut(interface) {
                entry.queue.clear();
            }
            self.net.forget_neighbours(interface);
        }
        self.pump();
        Ok(())
    }

    /// Changes the MTU.
    ///
    /// # Errors
    ///
    /// `NotFound`, `InvalidArgument`.
    pub fn set_mtu(&mut self, interface: InterfaceIndex, mtu: usize) -> Result<()> {
        let link = self.net.link_mut(interface).ok_or(Error::NotFound)?;
        let most = if link.public.loopback { LO_MTU } else { 65535 };
        if !(576..=most).contains(&mtu) {
            return Err(Error::InvalidArgument);
        }
        link.public.mtu = mtu;
        self.net.generation += 1;
        self.net.note_link(interface);
        Ok(())
    }

    /// Gives packet sockets the frames to other systems, too.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn set_promiscuous(&mut self, interface: InterfaceIndex, promiscuous: bool) -> Result<()> {
        let link = self.net.link_mut(interface).ok_or(Error::NotFound)?;
        if core::mem::replace(&mut link.public.promiscuous, promiscuous) != promiscuous {
            self.net.note_link(interface);
        }
        Ok(())
    }

    /// All interfaces, by number.
    pub fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.net.links.iter().map(|link| &link.public)
    }

    /// Gives an interface an address, with a route to its network.
    ///
    /// # Errors
    ///
    /// `NotFound`, `Exists`, `InvalidArgument` for addresses of groups and the like,
    /// `NoBufferSpace`.
    pub fn add_address(&mut self, interface: InterfaceIndex, prefix: Prefix) -> Result<()> {
        let most = if prefix.address.is_ipv4() { 32 } else { 128 };
        let bad = prefix.length > most
            || prefix.address.is_multicast()
            || prefix.address.is_unspecified()
            || prefix.address == IpAddr::V4(Ipv4Addr::BROADCAST);
        if bad {
            return Err(Error::InvalidArgument);
        }
        self.net.link(interface).ok_or(Error::NotFound)?;
        let address = Address { interface, prefix, expires: None, deprecated: None, tentative: false };
        self.net.insert_address(address)?;
        self.pump();
        Ok(())
    }

    /// Takes an address away, with its route.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn remove_address(&mut self, interface: InterfaceIndex, address: IpAddr) -> Result<()> {
        let at = self
            .net
            .addresses
            .iter()
            .position(|own| own.interface == interface && own.prefix.address == address)
            .ok_or(Error::NotFound)?;
        self.net.drop_address(at);
        Ok(())
    }

    /// All addresses of all interfaces.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.net.addresses.iter()
    }

    /// Adds a route.
    ///
    /// # Errors
    ///
    /// `NotFound` for the interface, `Exists`, `NetworkUnreachable` if the router is no neighbour,
    /// `NoBufferSpace`.
    pub fn add_route(&mut self, route: Route) -> Result<()> {
        self.net.insert_route(route)
    }

    /// Adds a route in place of the one to its destination with its metric, if there is one. That
    /// one stays if there is an error.
    ///
    /// # Errors
    ///
    /// As [`Stack::add_route`].
    pub fn replace_route(&mut self, route: Route) -> Result<()> {
        self.net.replace_route(route)
    }

    /// Removes the first route to `destination` that agrees with what else is given.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn remove_route(
        &mut self,
        destination: Prefix,
        gateway: Option<IpAddr>,
        interface: Option<InterfaceIndex>,
        metric: Option<u32>,
    ) -> Result<()> {
        let fits = |route: &Route| {
            let network = route.destination.length == destination.length
                && contains(&route.destination, destination.address);
            network
                && gateway.is_none_or(|gateway| route.gateway == Some(gateway))
                && interface.is_none_or(|interface| route.interface == interface)
                && metric.is_none_or(|metric| route.metric == metric)
        };
        let at = self.net.routes.iter().position(fits).ok_or(Error::NotFound)?;
        let gone = self.net.routes.remove(at);
        self.net.note_route(gone, true);
        self.net.generation += 1;
        Ok(())
    }

    /// All routes.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.net.routes.iter()
    }

    /// The route that a packet to `destination` would take, and its source's address.
    ///
    /// # Errors
    ///
    /// `NetworkUnreachable`.
    pub fn route_to(
        &self,
        destination: IpAddr,
        interface: Option<InterfaceIndex>,
    ) -> Result<(Route, IpAddr)> {
        let path = self.net.path(destination, Wish { interface, dont_route: false })?;
        let route = self.net.route(destination, interface).filter(|route| route.interface == path.interface);
        let route = route.copied().unwrap_or(Route {
            destination: Prefix {
                address: destination,
                length: if destination.is_ipv4() { 32 } else { 128 },
            },
            gateway: None,
            interface: path.interface,
            metric: 0,
            source: None,
            origin: RouteOrigin::Kernel,
            expires: None,
        });
        Ok((route, path.source))
    }

    /// Begins or ends to note changes for [`Stack::next_change`]. A caller that wants them takes
    /// them all after each call.
    pub fn note_changes(&mut self, noted: bool) {
        self.net.note_changes(noted);
    }

    /// Whether there is a [next change](Stack::next_change).
    pub fn has_changes(&self) -> bool {
        self.net.has_changes()
    }

    /// The next change of interfaces, addresses, routes or neighbours. What is only counted, such
    /// as packets, is no change, and that a lifetime was prolonged is none of a route.
    pub fn next_change(&mut self) -> Option<Change> {
        self.net.next_change()
    }

    /// All neighbours.
    pub fn neighbours(&self) -> impl Iterator<Item = Neighbour> {
        self.net.neighbour_list()
    }

    /// Gives a neighbour's hardware address, or forgets the neighbour.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoBufferSpace`, `InvalidArgument` for an address of a group.
    pub fn set_neighbour(
        &mut self,
        interface: InterfaceIndex,
        address: IpAddr,
        mac: Option<[u8; 6]>,
    ) -> Result<()> {
        self.net.set_neighbour(interface, address, mac)
    }

    /// Asks DHCP servers for an address of the interface, and keeps the lease. Answers are in
    /// [`Stack::lease`]; the stack sets the address and the route by itself.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoBufferSpace`.
    pub fn start_dhcp(&mut self, interface: InterfaceIndex, host_name: &str) -> Result<()> {
        self.begin_dhcp(interface, host_name)
    }

    /// Ends DHCP on the interface, with its address.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub(crate) fn stop_dhcp(&mut self, interface: InterfaceIndex) -> Result<()> {
        self.end_dhcp(interface)
    }

    /// The address that a DHCP server granted to the interface last, if another system has it and
    /// no other address was granted since.
    pub fn declined(&self, interface: InterfaceIndex) -> Option<Declined> {
        self.dhcp.iter().find(|entry| entry.interface == interface)?.declined
    }

    /// What a DHCP server granted to the interface.
    pub fn lease(&self, interface: InterfaceIndex) -> Option<&Lease> {
        self.dhcp.iter().find(|entry| entry.interface == interface)?.lease.as_ref()
    }
}
