//! Requests for interfaces, addresses, routes and neighbours (rtnetlink(7)).

use super::check_privilege;
use super::message::{DUMP, MULTIPART, Message, Request};
use crate::layout::Fields;
use crate::layout::Writer;
use crate::layout::interface::{device_type, flags, set_flags, state};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use inet::{
    Address, Change, Instant, Interface, InterfaceIndex, Internet, Neighbour, NeighbourState, Prefix, Route,
    RouteOrigin, Subject,
};
use unix::network::Network;
use unix::vfs::Caller;
use unix::{Error, Result};

const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const SET_LINK: u16 = 19;
const NEW_ADDRESS: u16 = 20;
const DELETE_ADDRESS: u16 = 21;
const GET_ADDRESS: u16 = 22;
const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
const GET_ROUTE: u16 = 26;
const NEW_NEIGHBOUR: u16 = 28;
const DELETE_NEIGHBOUR: u16 = 29;
const GET_NEIGHBOUR: u16 = 30;

/// Bytes of the fixed parts: struct ifinfomsg, ifaddrmsg, rtmsg, ndmsg.
const LINK: usize = 16;
const ADDRESS: usize = 8;
const ROUTE: usize = 12;
const NEIGHBOUR: usize = 12;

/// The tables of routes (RT_TABLE_MAIN, RT_TABLE_LOCAL).
const MAIN: u8 = 254;
const LOCAL_TABLE: u8 = 255;

/// Where a route leads (RTN_UNICAST and so on).
const UNICAST: u8 = 1;
const LOCAL: u8 = 2;
const BROADCAST: u8 = 3;
const MULTICAST: u8 = 5;

const V4: u8 = 2;
const V6: u8 = 10;
/// The flag of a request that replaces what is there (NLM_F_REPLACE).
const REPLACE: u16 = 0x100;

/// The answers to a request. `EPERM`, `EOPNOTSUPP`, `ENODEV`, `EINVAL`, and errors of the stack.
pub(super) fn answer(
    network: &Network,
    caller: &Caller<'_>,
    request: &Request<'_>,
    port: u32,
) -> Result<Vec<Vec<u8>>> {
    let is_dump = request.flags & DUMP != 0;
    if request.kind % 4 != 2 {
        check_privilege(caller)?;
        return network.with(|stack| change(stack, request)).map(|()| Vec::new());
    }
    let family = request.body().first().copied().unwrap_or(0);
    let is_wanted = |ip: IpAddr| family == 0 || family == family_of(ip);
    let now = network.now();
    network.with(|stack| match (request.kind, is_dump) {
        (GET_LINK, true) => {
            Ok(stack.interfaces().iter().map(|i| link(i, request, port, MULTIPART)).collect())
        }
        (GET_LINK, false) => {
            let interface = interface(stack, request, LINK, 3)?;
            let known = stack.interface(interface).ok_or(Error::ENODEV)?;
            Ok(alloc::vec![link(&known, request, port, 0)])
        }
        (GET_ADDRESS, true) => {
            let (all, interfaces) = (stack.addresses(), stack.interfaces());
            let wanted = all.iter().filter(|a| is_wanted(a.prefix.address));
            let name = |a: &Address| interfaces.iter().find(|i| i.index == a.interface).map(|i| &*i.name);
            let one = |a: &Address| address(a, name(a).unwrap_or_default(), now, request, port, MULTIPART);
            Ok(wanted.map(one).collect())
        }
        (GET_ROUTE, true) => {
            let all = stack.routes();
            let wanted = all.iter().filter(|r| is_wanted(r.destination.address));
            Ok(wanted.map(|r| route(r, request, port, MULTIPART)).collect())
        }
        (GET_ROUTE, false) => {
            let to = ip(request.attribute(ROUTE, 1).ok_or(Error::EINVAL)?)?;
            let (found, source) = stack.route_to(to, None).map_err(Error::from)?;
            let length = if to.is_ipv4() { 32 } else { 128 };
            let found = Route { destination: Prefix { address: to, length }, source: Some(source), ..found };
            let is_own = stack.addresses().iter().any(|own| own.prefix.address == to);
            let kind = match to {
                IpAddr::V4(to) if to.is_broadcast() => BROADCAST,
                to if to.is_multicast() => MULTICAST,
                IpAddr::V4(to) if is_own || to.is_loopback() => LOCAL,
                IpAddr::V6(_) if is_own => LOCAL,
                _ => UNICAST,
            };
            Ok(alloc::vec![way(&found, kind, request, port)])
        }
        (GET_NEIGHBOUR, true) => {
            let all = stack.neighbours();
            let wanted = all.iter().filter(|n| is_wanted(n.address));
            Ok(wanted.map(|n| neighbour(n, request, port, MULTIPART)).collect())
        }
        // There are no rules, queues and the like to be listed.
        (_, true) => Ok(Vec::new()),
        _ => Err(Error::EOPNOTSUPP),
    })
}

/// The message that tells of a change, and the group that gets it (RTNLGRP_LINK and so on). `None`:
/// changes were missed.
pub(super) fn notification(change: &Change, now: Instant) -> Option<(u32, Vec<u8>)> {
    // It answers no request.
    let none = Request { kind: 0, flags: 0, sequence: 0, bytes: &[] };
    let of = |ip: IpAddr, v4, v6| if ip.is_ipv4() { v4 } else { v6 };
    let (group, mut message) = match &change.subject {
        Subject::Interface(interface) => (1, link(interface, &none, 0, 0)),
        Subject::Neighbour(known) => (3, neighbour(known, &none, 0, 0)),
        Subject::Address(known, name) => {
            (of(known.prefix.address, 5, 9), address(known, name, now, &none, 0, 0))
        }
        Subject::Route(known) => (of(known.destination.address, 7, 11), route(known, &none, 0, 0)),
        Subject::Missed => return None,
    };
    if change.gone {
        // The kind of message for what has gone follows the one for what is new.
        message[4] += 1;
    }
    Some((group, message))
}

fn family_of(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { V4 } else { V6 }
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// The address in an attribute. `EINVAL`.
fn ip(bytes: &[u8]) -> Result<IpAddr> {
    match bytes.len() {
        4 => Ok(Ipv4Addr::from(bytes.field::<4>(0)?).into()),
        16 => Ok(Ipv6Addr::from(bytes.field::<16>(0)?).into()),
        _ => Err(Error::EINVAL),
    }
}

/// The interface that a request about one names: by the number in its fixed part, or else by the
/// attribute `name`. `ENODEV`.
fn interface(stack: &mut Internet, request: &Request<'_>, fixed: usize, name: u16) -> Result<InterfaceIndex> {
    let index = request.body().u32_at(4)?;
    let name = request.attribute(fixed, name).map(|name| name.strip_suffix(b"\0").unwrap_or(name));
    let is_it = |i: &Interface| match (index, name) {
        (0, Some(name)) => i.name.as_bytes() == name,
        _ => i.index.0 == index,
    };
    stack.interfaces().into_iter().find(is_it).map(|i| i.index).ok_or(Error::ENODEV)
}

fn link(interface: &Interface, request: &Request<'_>, port: u32, multipart: u16) -> Vec<u8> {
    let fixed = Writer::<LINK>::new().u16(2, device_type(interface)).u32(4, interface.index.0);
    let fixed = fixed.u32(8, flags(interface)).done();
    let broadcast = if interface.loopback { [0; 6] } else { [0xff; 6] };
    let counters = &interface.counters;
    let counted = [
        counters.received_packets,
        counters.sent_packets,
        counters.received_bytes,
        counters.sent_bytes,
        counters.received_errors,
        counters.sent_errors,
        counters.received_drops,
        counters.sent_drops,
        counters.received_multicast,
    ];
    let mut wide = [0; 200];
    let mut narrow = [0; 96];
    for (index, count) in counted.into_iter().enumerate() {
        wide[8 * index..][..8].copy_from_slice(&count.to_le_bytes());
        narrow[4 * index..][..4].copy_from_slice(&(count as u32).to_le_bytes());
    }
    let queue = if interface.loopback { "noqueue" } else { "pfifo_fast" };
    Message::answer(request, port, NEW_LINK, multipart, &fixed)
        .text(3, &interface.name)
        .u32(13, 1000)
        .u8(16, state(interface))
        .u8(17, 0)
        .u32(4, interface.mtu as u32)
        .u32(50, if interface.loopback { 0 } else { 68 })
        .u32(51, if interface.loopback { 0 } else { 65535 })
        .u32(27, 0)
        .u32(30, interface.promiscuous.into())
        .u32(31, 1)
        .u32(32, 1)
        .u8(33, interface.link.into())
        .text(6, queue)
        .bytes(1, &interface.mac)
        .bytes(2, &broadcast)
        .bytes(23, &wide)
        .bytes(7, &narrow)
        .done()
}

/// The seconds until a moment, as the lifetime of an address: all bits set for no end.
fn lifetime(end: Option<Instant>, now: Instant) -> u32 {
    end.map_or(u32::MAX, |end| u32::try_from(end.since(now).as_secs()).unwrap_or(u32::MAX))
}

/// The scope of an address: its own host, its link, or everywhere.
fn scope(address: IpAddr) -> u8 {
    match address {
        ip if ip.is_loopback() => 254,
        IpAddr::V6(ip) if ip.is_unicast_link_local() => 253,
        IpAddr::V4(ip) if ip.is_link_local() => 253,
        _ => 0,
    }
}

/// The message of an address, with the name of its interface.
fn address(
    known: &Address,
    name: &str,
    now: Instant,
    request: &Request<'_>,
    port: u32,
    multipart: u16,
) -> Vec<u8> {
    const DEPRECATED: u32 = 0x20;
    const TENTATIVE: u32 = 0x40;
    const PERMANENT: u32 = 0x80;
    let Prefix { address: ip, length } = known.prefix;
    let mut flags = if known.expires.is_none() { PERMANENT } else { 0 };
    flags |= if known.tentative { TENTATIVE } else { 0 };
    flags |= if known.deprecated.is_some_and(|end| end <= now) { DEPRECATED } else { 0 };
    let fixed = [family_of(ip), length, flags as u8, scope(ip)];
    let fixed = [&fixed[..], &known.interface.0.to_le_bytes()].concat();
    let end = known.deprecated.into_iter().chain(known.expires).min();
    let lifetimes = [lifetime(end, now), lifetime(known.expires, now), 0, 0];
    let lifetimes: Vec<u8> = lifetimes.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut message = Message::answer(request, port, NEW_ADDRESS, multipart, &fixed).bytes(1, &octets(ip));
    if let IpAddr::V4(own) = ip {
        message = message.bytes(2, &octets(ip));
        if !own.is_loopback() && length < 31 {
            let all = u32::from(own) | u32::MAX.checked_shr(length.into()).unwrap_or(0);
            message = message.bytes(4, &all.to_be_bytes());
        }
        message = message.text(3, name);
    }
    message.u32(8, flags).bytes(6, &lifetimes).done()
}

/// The message of a route in the table.
fn route(known: &Route, request: &Request<'_>, port: u32, multipart: u16) -> Vec<u8> {
    let Prefix { address: to, length } = known.destination;
    let origin = match known.origin {
        RouteOrigin::Kernel => 2,
        RouteOrigin::Static => 3,
        RouteOrigin::RouterAdvertisement => 9,
        RouteOrigin::Dhcp => 16,
    };
    let scope = if to.is_ipv4() && known.gateway.is_none() { 253 } else { 0 };
    let fixed = [family_of(to), length, 0, 0, MAIN, origin, scope, UNICAST, 0, 0, 0, 0];
    with_route(Message::answer(request, port, NEW_ROUTE, multipart, &fixed), known, MAIN)
}

/// The message of the way that a packet to one address takes.
fn way(known: &Route, kind: u8, request: &Request<'_>, port: u32) -> Vec<u8> {
    /// The route is an answer, and in no table (RTM_F_CLONED).
    const CLONED: u32 = 0x200;
    let Prefix { address: to, length } = known.destination;
    let table = if to.is_ipv6() && kind == LOCAL { LOCAL_TABLE } else { MAIN };
    let origin = if to.is_ipv6() { 2 } else { 0 };
    let fixed = [&[family_of(to), length, 0, 0, table, origin, 0, kind][..], &CLONED.to_le_bytes()].concat();
    with_route(Message::answer(request, port, NEW_ROUTE, 0, &fixed), known, table)
}

fn with_route(message: Message, known: &Route, table: u8) -> Vec<u8> {
    let Prefix { address: to, length } = known.destination;
    let mut message = message.u32(15, table.into());
    if length > 0 {
        message = message.bytes(1, &octets(to));
    }
    if let Some(gateway) = known.gateway {
        message = message.bytes(5, &octets(gateway));
    }
    if let Some(source) = known.source {
        message = message.bytes(7, &octets(source));
    }
    if known.metric != 0 {
        message = message.u32(6, known.metric);
    }
    message.u32(4, known.interface.0).done()
}

fn neighbour(known: &Neighbour, request: &Request<'_>, port: u32, multipart: u16) -> Vec<u8> {
    let state: u16 = match known.state {
        NeighbourState::Incomplete => 1,
        NeighbourState::Reachable => 2,
        NeighbourState::Stale => 4,
        NeighbourState::Probe => 16,
        NeighbourState::Failed => 32,
        NeighbourState::Permanent => 128,
    };
    let fixed = Writer::<NEIGHBOUR>::new().u16(0, family_of(known.address).into());
    let fixed = fixed.u32(4, known.interface.0).u16(8, state).bytes(11, &[1]).done();
    let message = Message::answer(request, port, NEW_NEIGHBOUR, multipart, &fixed);
    let message = message.bytes(1, &octets(known.address));
    match known.mac {
        Some(mac) => message.bytes(2, &mac).done(),
        None => message.done(),
    }
}

/// Does a request that changes something.
fn change(stack: &mut Internet, request: &Request<'_>) -> Result<()> {
    let body = request.body();
    match request.kind {
        NEW_LINK | SET_LINK => {
            let interface = interface(stack, request, LINK, 3)?;
            let has_name = body.u32_at(4)? != 0 && request.attribute(LINK, 3).is_some();
            if has_name || request.attribute(LINK, 1).is_some() {
                // An interface keeps its name and its address.
                return Err(Error::EOPNOTSUPP);
            }
            let (wanted, mask) = (body.u32_at(8)?, body.u32_at(12)?);
            if let Some(mtu) = request.attribute(LINK, 4) {
                stack.set_mtu(interface, mtu.u32_at(0)? as usize)?;
            }
            set_flags(stack, interface, wanted, mask)
        }
        NEW_ADDRESS | DELETE_ADDRESS => {
            let interface = interface(stack, request, ADDRESS, 0)?;
            let length = *body.get(1).ok_or(Error::EINVAL)?;
            let own = request.attribute(ADDRESS, 2).or_else(|| request.attribute(ADDRESS, 1));
            let address = ip(own.ok_or(Error::EINVAL)?)?;
            if request.kind == DELETE_ADDRESS {
                return stack.remove_address(interface, address).map_err(|_| Error::EADDRNOTAVAIL);
            }
            match stack.add_address(interface, Prefix { address, length }) {
                Err(inet::Error::Exists) if request.flags & REPLACE != 0 => Ok(()),
                done => Ok(done?),
            }
        }
        NEW_ROUTE | DELETE_ROUTE => change_route(stack, request),
        NEW_NEIGHBOUR | DELETE_NEIGHBOUR => {
            let interface = interface(stack, request, NEIGHBOUR, 0)?;
            let address = ip(request.attribute(NEIGHBOUR, 1).ok_or(Error::EINVAL)?)?;
            let mac = match request.kind {
                NEW_NEIGHBOUR => Some(request.attribute(NEIGHBOUR, 2).ok_or(Error::EINVAL)?.field::<6>(0)?),
                _ => None,
            };
            Ok(stack.set_neighbour(interface, address, mac)?)
        }
        _ => Err(Error::EOPNOTSUPP),
    }
}

fn change_route(stack: &mut Internet, request: &Request<'_>) -> Result<()> {
    let body = request.body();
    let [family, length, ..] = *body else { return Err(Error::EINVAL) };
    let attribute = |kind| request.attribute(ROUTE, kind).map(ip).transpose();
    let unspecified = if family == V6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let destination = Prefix { address: attribute(1)?.unwrap_or(unspecified), length };
    let (gateway, source) = (attribute(5)?, attribute(7)?);
    let word = |kind| request.attribute(ROUTE, kind).map(|data| data.u32_at(0)).transpose();
    let (interface, metric) = (word(4)?.map(InterfaceIndex), word(6)?);
    if request.kind == DELETE_ROUTE {
        return stack.remove_route(destination, gateway, interface, metric).map_err(|_| Error::ESRCH);
    }
    let interface = match (interface, gateway) {
        (Some(interface), _) => interface,
        (None, Some(gateway)) => stack.route_to(gateway, None).map_err(Error::from)?.0.interface,
        (None, None) => return Err(Error::ENODEV),
    };
    let (metric, origin, expires) = (metric.unwrap_or(0), RouteOrigin::Static, None::<Instant>);
    if source.is_some_and(|source| source.is_ipv4() != destination.address.is_ipv4()) {
        return Err(Error::EINVAL);
    }
    let route = Route { destination, gateway, interface, metric, source, origin, expires };
    let replaces = request.flags & REPLACE != 0;
    Ok(if replaces { stack.replace_route(route) } else { stack.add_route(route) }?)
}
