//! Neighbour discovery (RFC 4861) and addresses that interfaces give themselves (RFC 4862).

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use core::time::Duration;

use smoltcp::wire::{NdiscOption, NdiscOptionType, NdiscPrefixInfoFlags};

use crate::addresses::network;
use crate::error::{Error, Result};
use crate::net::{Net, is_link_local, solicited_node};
use crate::output::{Header, Sum};
use crate::path::{Cast, Path};
use crate::time::Instant;
use crate::types::*;

/// Messages.
const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Flags of an advertisement: it answers a question; it replaces what was known.
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
/// How long an answer from another owner of an address is waited for.
const DUPLICATES: Duration = Duration::from_secs(1);
/// How often routers are asked, and the time between.
const QUESTIONS: u32 = 3;
const QUESTION: Duration = Duration::from_secs(4);
/// The metric of routes that routers advertise.
const METRIC: u32 = 1024;
/// Addresses, and routes, of an interface that routers can bring.
const ADVERTISED: usize = 16;
/// A router cannot shorten the life of an address below this (RFC 4862, 5.5.3).
const TWO_HOURS: Duration = Duration::from_secs(7200);

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// What a router says about a network.
struct Advertised {
    prefix: Prefix,
    on_link: bool,
    autonomous: bool,
    valid: Option<Duration>,
    preferred: Option<Duration>,
}

impl Net {
    /// Gives an interface that has come up an address of its link, and asks for routers.
    pub(crate) fn begin_v6(&mut self, interface: InterfaceIndex) {
        let Some(link) = self.link(interface) else { return };
        let address = own_address(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), link.public.mac);
        self.try_address(interface, Prefix { address: address.into(), length: 64 }, None, None);
        self.ask_routers(interface);
    }

    /// Takes the IPv6 addresses of an interface that has gone down.
    pub(crate) fn end_v6(&mut self, interface: InterfaceIndex) {
        self.retain_addresses(|own| own.interface != interface || own.prefix.address.is_ipv4());
        self.retain_routes(|route| route.interface != interface || route.destination.address.is_ipv4());
        self.duplicates.retain(|entry| entry.0 != interface);
        if let Some(link) = self.link_mut(interface) {
            link.solicit = None;
        }
        self.generation += 1;
    }

    /// Asks routers to advertise themselves, when the interface has its own address.
    pub(crate) fn ask_routers(&mut self, interface: InterfaceIndex) {
        let at = self.now + DUPLICATES + Duration::from_millis(100);
        if let Some(link) = self.link_mut(interface)
            && link.public.up
        {
            link.solicit = Some((at, QUESTIONS));
        }
    }

    /// Adds an address that is used when no other owner of it has answered.
    fn try_address(
        &mut self,
        interface: InterfaceIndex,
        prefix: Prefix,
        expires: Option<Instant>,
        deprecated: Option<Instant>,
    ) {
        let address = Address { interface, prefix, expires, deprecated, tentative: true };
        let IpAddr::V6(target) = prefix.address else { return };
        if self.insert_address(address).is_err() {
            return;
        }
        self.duplicates.push((interface, target, self.now + DUPLICATES));
        self.send_solicitation(interface, Ipv6Addr::UNSPECIFIED, target, solicited_node(target));
    }

    /// Another system has the address: it is not used.
    fn duplicate(&mut self, interface: InterfaceIndex, address: Ipv6Addr) {
        self.duplicates.retain(|entry| (entry.0, entry.1) != (interface, address));
        let own = |own: &Address| own.interface == interface && own.prefix.address == IpAddr::V6(address);
        if let Some(at) = self.addresses.iter().position(own) {
            self.drop_address(at);
        }
    }

    fn is_tentative(&self, interface: InterfaceIndex, address: Ipv6Addr) -> bool {
        self.duplicates.iter().any(|entry| (entry.0, entry.1) == (interface, address))
    }

    /// Does what is due: addresses become usable or end, routes end, routers are asked.
    pub(crate) fn advance_v6(&mut self) {
        let now = self.now;
        if self.deadline_v6().is_none_or(|deadline| deadline > now) {
            return;
        }
        let mut usable = Vec::new();
        for own in self.addresses.iter_mut().filter(|own| own.tentative) {
            let (interface, address) = (own.interface, own.prefix.address);
            let done = |entry: &(InterfaceIndex, Ipv6Addr, Instant)| {
                entry.0 == interface && IpAddr::V6(entry.1) == address && entry.2 <= now
            };
            if self.duplicates.iter().any(done) {
                own.tentative = false;
                usable.push(*own);
            }
        }
        for own in usable {
            self.note_address(own, false);
        }
        self.duplicates.retain(|entry| entry.2 > now);
        while let Some(at) = self
            .addresses
            .iter()
            .position(|own| own.prefix.address.is_ipv6() && own.expires.is_some_and(|expires| expires <= now))
        {
            self.drop_address(at);
        }
        self.retain_routes(|route| route.expires.is_none_or(|expires| expires > now));
        self.generation += 1;
        let asking: Vec<InterfaceIndex> = self
            .links
            .iter()
            .filter(|link| link.solicit.is_some_and(|(at, _)| at <= now))
            .map(|link| link.public.index)
            .collect();
        for interface in asking {
            self.send_router_solicitation(interface);
            if let Some(link) = self.link_mut(interface) {
                link.solicit =
                    link.solicit.filter(|(_, left)| *left > 1).map(|(_, left)| (now + QUESTION, left - 1));
            }
        }
    }

    /// When [`Net::advance_v6`] has something to do.
    pub(crate) fn deadline_v6(&self) -> Option<Instant> {
        // It is asked for at each packet: loops cost a quarter of what chained iterators do.
        let mut first = None;
        let mut add = |at: Instant| first = Some(first.map_or(at, |first: Instant| first.min(at)));
        for link in &self.links {
            if let Some((at, _)) = link.solicit {
                add(at);
            }
        }
        for entry in &self.duplicates {
            add(entry.2);
        }
        for own in &self.addresses {
            if let Some(at) = own.expires.filter(|_| own.prefix.address.is_ipv6()) {
                add(at);
            }
        }
        for route in &self.routes {
            if let Some(at) = route.expires {
                add(at);
            }
        }
        first
    }

    /// Asks for the hardware address of a neighbour.
    pub(crate) fn solicit_v6(&mut self, interface: InterfaceIndex, target: Ipv6Addr, mac: Option<[u8; 6]>) {
        let Some(IpAddr::V6(source)) = self.source(interface, IpAddr::V6(target)) else { return };
        let to = if mac.is_some() { target } else { solicited_node(target) };
        self.send_solicitation(interface, source, target, to);
    }

    fn send_solicitation(
        &mut self,
        interface: InterfaceIndex,
        source: Ipv6Addr,
        target: Ipv6Addr,
        to: Ipv6Addr,
    ) {
        let mut message = [0; 24];
        message[0] = SOLICITATION;
        message[8..].copy_from_slice(&target.octets());
        // A question for duplicates has no source that the hardware address could belong to.
        self.send_discovery(interface, source, to, &message, (!source.is_unspecified()).then_some(1));
    }

    fn send_advertisement(&mut self, interface: InterfaceIndex, target: Ipv6Addr, to: Ipv6Addr, flags: u8) {
        let mut message = [0; 24];
        message[0] = ADVERTISEMENT;
        message[4] = flags;
        message[8..].copy_from_slice(&target.octets());
        self.send_discovery(interface, target, to, &message, Some(2));
    }

    fn send_router_solicitation(&mut self, interface: InterfaceIndex) {
        let source = match self.source(interface, IpAddr::V6(ALL_ROUTERS)) {
            Some(IpAddr::V6(source)) if is_link_local(IpAddr::V6(source)) => source,
            _ => Ipv6Addr::UNSPECIFIED,
        };
        let mut message = [0; 8];
        message[0] = ROUTER_SOLICITATION;
        self.send_discovery(
            interface,
            source,
            ALL_ROUTERS,
            &message,
            (!source.is_unspecified()).then_some(1),
        );
    }

    /// Sends a message, with the own hardware address as an option of the given type.
    fn send_discovery(
        &mut self,
        interface: InterfaceIndex,
        source: Ipv6Addr,
        to: Ipv6Addr,
        message: &[u8],
        option: Option<u8>,
    ) {
        let Some(link) = self.link(interface) else { return };
        let (mac, mtu) = (link.public.mac, link.public.mtu);
        let header = Header {
            source: IpAddr::V6(source),
            destination: IpAddr::V6(to),
            protocol: 58,
            hops: 255,
            traffic_class: 0,
            dont_fragment: true,
        };
        let mut packet = self.begin(&header);
        packet.extend_from_slice(message);
        if let Some(option) = option {
            packet.extend_from_slice(&[option, 1]);
            packet.extend_from_slice(&mac);
        }
        let path = Path {
            interface,
            next_hop: IpAddr::V6(to),
            source: IpAddr::V6(source),
            mtu,
            cast: if to.is_multicast() { Cast::Multicast } else { Cast::Unicast },
            generation: self.generation,
        };
        // A message that finds a full queue is repeated by its timer, or asked for again.
        let _ = self.send(&path, &header, packet, Sum::At(2));
    }

    /// Takes a message whose checksum and hop limit are right.
    pub(crate) fn take_discovery(
        &mut self,
        interface: InterfaceIndex,
        source: IpAddr,
        destination: IpAddr,
        bytes: &[u8],
    ) -> Result<()> {
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (source, destination) else { return Ok(()) };
        match bytes[0] {
            ROUTER_ADVERTISEMENT if is_link_local(IpAddr::V6(source)) => {
                self.take_router(interface, source, bytes)
            }
            kind @ (SOLICITATION | ADVERTISEMENT) => {
                let target = bytes.get(8..24).ok_or(Error::ProtocolError)?;
                let mut octets = [0; 16];
                octets.copy_from_slice(target);
                let target = Ipv6Addr::from(octets);
                if target.is_multicast() {
                    return Err(Error::ProtocolError);
                }
                let mac = hardware_address(&bytes[24..], if kind == SOLICITATION { 1 } else { 2 })?;
                if kind == SOLICITATION {
                    self.take_solicitation(interface, source, target, mac);
                } else {
                    let flags = if destination.is_multicast() { bytes[4] & !SOLICITED } else { bytes[4] };
                    self.take_advertisement(interface, target, mac, flags);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn take_solicitation(
        &mut self,
        interface: InterfaceIndex,
        source: Ipv6Addr,
        target: Ipv6Addr,
        mac: Option<[u8; 6]>,
    ) {
        if self.is_tentative(interface, target) {
            if source.is_unspecified() {
                // Another system wants the same address at the same time.
                self.duplicate(interface, target);
            }
            return;
        }
        let own = self.addresses.iter().any(|own| {
            own.interface == interface && own.prefix.address == IpAddr::V6(target) && !own.tentative
        });
        if !own || self.is_local(IpAddr::V6(source)) {
            return;
        }
        if source.is_unspecified() {
            self.send_advertisement(interface, target, ALL_NODES, OVERRIDE);
            return;
        }
        if let Some(mac) = mac {
            self.heard(interface, IpAddr::V6(source), mac, false, true);
        }
        self.send_advertisement(interface, target, source, SOLICITED | OVERRIDE);
    }

    fn take_advertisement(
        &mut self,
        interface: InterfaceIndex,
        target: Ipv6Addr,
        mac: Option<[u8; 6]>,
        flags: u8,
    ) {
        if self.is_tentative(interface, target) {
            self.duplicate(interface, target);
            return;
        }
        if let Some(mac) = mac
            && flags & (SOLICITED | OVERRIDE) != 0
            && !self.is_local(IpAddr::V6(target))
        {
            self.heard(interface, IpAddr::V6(target), mac, flags & SOLICITED != 0, false);
        }
    }

    /// Takes a router's advertisement.
    fn take_router(&mut self, interface: InterfaceIndex, router: Ipv6Addr, bytes: &[u8]) -> Result<()> {
        let lifetime = u16::from_be_bytes([bytes[6], bytes[7]]);
        let options = bytes.get(16..).ok_or(Error::ProtocolError)?;
        if let Some(mac) = hardware_address(options, 1)? {
            self.heard(interface, IpAddr::V6(router), mac, false, true);
        }
        if let Some(link) = self.link_mut(interface) {
            link.solicit = None;
        }
        let all = Prefix { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), length: 0 };
        let valid = Some(Duration::from_secs(lifetime.into()));
        self.advertised_route(interface, all, Some(IpAddr::V6(router)), valid);
        for option in options_of(options) {
            let option = option?;
            if option.option_type() != NdiscOptionType::PrefixInformation {
                continue;
            }
            let advertised = prefix_of(option).ok_or(Error::ProtocolError)?;
            if advertised.on_link {
                self.advertised_route(interface, advertised.prefix, None, advertised.valid);
            }
            if advertised.autonomous && advertised.prefix.length == 64 {
                self.advertised_address(interface, &advertised);
            }
        }
        Ok(())
    }

    /// Adds, prolongs or removes a route that a router advertises.
    fn advertised_route(
        &mut self,
        interface: InterfaceIndex,
        destination: Prefix,
        gateway: Option<IpAddr>,
        valid: Option<Duration>,
    ) {
        let advertised =
            |route: &Route| route.interface == interface && route.origin == RouteOrigin::RouterAdvertisement;
        let same =
            |route: &Route| advertised(route) && route.destination == destination && route.gateway == gateway;
        let expires = valid.map(|valid| self.now + valid);
        if valid.is_some_and(|valid| valid.is_zero()) {
            self.retain_routes(|route| !same(route));
            self.generation += 1;
        } else if let Some(route) = self.routes.iter_mut().find(|route| same(route)) {
            route.expires = expires;
        } else if self.routes.iter().filter(|route| advertised(route)).count() < ADVERTISED {
            // A route that the administrator gave, or the limit of routes, is stronger.
            let _ = self.insert_route(Route {
                destination,
                gateway,
                interface,
                metric: METRIC,
                source: None,
                origin: RouteOrigin::RouterAdvertisement,
                expires,
            });
        }
    }

    /// Makes or prolongs the address of an advertised network.
    fn advertised_address(&mut self, interface: InterfaceIndex, network: &Advertised) {
        let now = self.now;
        let IpAddr::V6(address) = network.prefix.address else { return };
        let Some(link) = self.link(interface) else { return };
        let address = IpAddr::V6(own_address(address, link.public.mac));
        let deprecated = network.preferred.map(|time| now + time);
        let own = |own: &&mut Address| own.interface == interface && own.prefix.address == address;
        if let Some(own) = self.addresses.iter_mut().find(own) {
            let left = own.expires.map(|expires| expires.since(now));
            own.deprecated = deprecated;
            own.expires = match (network.valid, left) {
                (None, _) => None,
                (Some(valid), Some(left)) if valid > TWO_HOURS || valid > left => Some(now + valid),
                (Some(valid), None) if valid > TWO_HOURS => Some(now + valid),
                (Some(_), Some(left)) if left <= TWO_HOURS => own.expires,
                (Some(_), _) => Some(now + TWO_HOURS),
            };
            let prolonged = *own;
            self.note_address(prolonged, false);
            return;
        }
        let count =
            self.addresses.iter().filter(|own| own.interface == interface && own.prefix.address.is_ipv6());
        let useless = network.valid.is_some_and(|valid| valid.is_zero());
        if useless
            || count.count() >= ADVERTISED
            || network.preferred > network.valid && network.valid.is_some()
        {
            return;
        }
        let expires = network.valid.map(|valid| now + valid);
        self.try_address(interface, Prefix { address, length: 64 }, expires, deprecated);
    }
}

/// The address of an interface in a network of 64 bits: the rest is made of the hardware address
/// (RFC 4291, appendix A).
fn own_address(network: Ipv6Addr, mac: [u8; 6]) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
    let mut octets = network.octets();
    octets[8..].copy_from_slice(&[a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    Ipv6Addr::from(octets)
}

/// The options of a message.
fn options_of(mut bytes: &[u8]) -> impl Iterator<Item = Result<NdiscOption<&[u8]>>> {
    core::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let length = bytes.get(1).map_or(0, |length| usize::from(*length) * 8);
        let option = bytes.get(..length).filter(|option| !option.is_empty());
        bytes = option.map_or(&[], |_| &bytes[length..]);
        let option = option.and_then(|option| NdiscOption::new_checked(option).ok());
        Some(option.ok_or(Error::ProtocolError))
    })
}

/// The hardware address that an option of the given type tells.
fn hardware_address(options: &[u8], kind: u8) -> Result<Option<[u8; 6]>> {
    let mut found = None;
    for option in options_of(options) {
        let bytes = option?.into_inner();
        if bytes[0] == kind {
            found = bytes.get(2..8).and_then(|mac| mac.try_into().ok());
        }
    }
    Ok(found)
}

/// What an option says about a network.
fn prefix_of(option: NdiscOption<&[u8]>) -> Option<Advertised> {
    let (flags, length) = (option.prefix_flags(), option.prefix_len());
    let address = option.prefix();
    let bytes = option.into_inner();
    let time = |at: usize| {
        let seconds = u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        (seconds != u32::MAX).then(|| Duration::from_secs(seconds.into()))
    };
    let local = is_link_local(address.into()) || address.is_multicast();
    (!local && length <= 128).then(|| Advertised {
        prefix: network(&Prefix { address: address.into(), length }),
        on_link: flags.contains(NdiscPrefixInfoFlags::ON_LINK),
        autonomous: flags.contains(NdiscPrefixInfoFlags::ADDRCONF),
        valid: time(4),
        preferred: time(8),
    })
}
