//! Requests of ioctl(2) to sockets, about interfaces, their addresses and routes (netdevice(7)).

use crate::call::{Call, Done};
use crate::layout::inet::FAMILY_V4;
use crate::layout::interface::{device_type, flags, set_flags};
use crate::layout::{Fields, Writer};
use crate::socket::Socket;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use inet::{Interface, InterfaceIndex, Internet, Prefix, Route, RouteOrigin};
use mach::Machine;
use unix::{Error, Privilege, Result};

const SIOCATMARK: u32 = 0x8905;
const SIOCADDRT: u32 = 0x890b;
const SIOCDELRT: u32 = 0x890c;
const SIOCGIFNAME: u32 = 0x8910;
const SIOCGIFCONF: u32 = 0x8912;
const SIOCGIFFLAGS: u32 = 0x8913;
const SIOCSIFFLAGS: u32 = 0x8914;
const SIOCGIFADDR: u32 = 0x8915;
const SIOCSIFADDR: u32 = 0x8916;
const SIOCGIFBRDADDR: u32 = 0x8919;
const SIOCGIFNETMASK: u32 = 0x891b;
const SIOCSIFNETMASK: u32 = 0x891c;
const SIOCGIFMETRIC: u32 = 0x891d;
const SIOCGIFMTU: u32 = 0x8921;
const SIOCSIFMTU: u32 = 0x8922;
const SIOCGIFHWADDR: u32 = 0x8927;
const SIOCGIFINDEX: u32 = 0x8933;
const SIOCGIFTXQLEN: u32 = 0x8942;
const SIOCETHTOOL: u32 = 0x8946;
const SIOCOUTQ: u32 = 0x5411;

/// Bytes of struct ifreq, and of the name that it begins with.
const REQUEST: usize = 40;
const NAME: usize = 16;

/// Serves a request to a socket. `ENOTTY` if there is no such request, `ENODEV` if there is no such
/// interface.
pub(super) async fn request<M: Machine>(call: &Call<'_, M>, socket: &Socket, request: u32) -> Done {
    let network = &call.system().vfs().network;
    match (request, socket) {
        (SIOCETHTOOL, _) => {
            let entry = call.read::<REQUEST>(call.arg(2)).await?;
            let interface = network.with(|stack| named(stack, &entry))?;
            let at = entry.u64_at(NAME)?;
            let answer = device(&interface, call.read::<4>(at).await?.u32_at(0)?)?;
            call.write(at + 4, &answer).await?;
        }
        (SIOCATMARK, Socket::Internet(socket)) => {
            let at_mark = network.with(|stack| stack.queued(socket.id())).map_err(Error::from)?.at_mark;
            call.write(call.arg(2), &u32::from(at_mark).to_le_bytes()).await?;
        }
        (SIOCOUTQ, Socket::Internet(socket)) => {
            let queued = network.with(|stack| stack.queued(socket.id())).map_err(Error::from)?.send;
            call.write(call.arg(2), &(queued as u32).to_le_bytes()).await?;
        }
        (SIOCGIFCONF, _) => return list(call).await,
        (SIOCADDRT | SIOCDELRT, _) => {
            check_privilege(call)?;
            let entry = call.read::<120>(call.arg(2)).await?;
            network.with(|stack| change_route(stack, &entry, request == SIOCADDRT))?;
        }
        (SIOCSIFFLAGS | SIOCSIFADDR | SIOCSIFNETMASK | SIOCSIFMTU, _) => {
            check_privilege(call)?;
            let entry = call.read::<REQUEST>(call.arg(2)).await?;
            network.with(|stack| change(stack, &entry, request))?;
        }
        (
            SIOCGIFNAME | SIOCGIFFLAGS | SIOCGIFADDR | SIOCGIFBRDADDR | SIOCGIFNETMASK | SIOCGIFMETRIC
            | SIOCGIFMTU | SIOCGIFHWADDR | SIOCGIFINDEX | SIOCGIFTXQLEN,
            _,
        ) => {
            let entry = call.read::<REQUEST>(call.arg(2)).await?;
            let answer = network.with(|stack| ask(stack, &entry, request))?;
            call.write(call.arg(2), &answer).await?;
        }
        _ => return Err(Error::ENOTTY.into()),
    }
    Ok(0)
}

fn check_privilege<M: Machine>(call: &Call<'_, M>) -> Result<()> {
    if call.has(Privilege::Network) { Ok(()) } else { Err(Error::EPERM) }
}

/// The interface whose name is at the beginning of a struct ifreq. `ENODEV`.
fn named(stack: &mut Internet, entry: &[u8]) -> Result<Interface> {
    let name = &entry[..NAME];
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME - 1);
    // A name with a colon means the interface with a label of one of its addresses.
    let name = name[..end].split(|byte| *byte == b':').next().unwrap_or_default();
    stack.interfaces().into_iter().find(|i| i.name.as_bytes() == name).ok_or(Error::ENODEV)
}

/// What a program asks about the device of an interface (ethtool(8)), without the number of the
/// request that comes before it. `EOPNOTSUPP`: the other settings cannot be asked for.
fn device(interface: &Interface, request: u32) -> Result<Vec<u8>> {
    const DRIVER: u32 = 3;
    const LINK: u32 = 10;
    /// Bytes of struct ethtool_drvinfo after the number of the request.
    const DRIVER_SIZE: usize = 192;
    match request {
        LINK => Ok(u32::from(interface.up && interface.link).to_le_bytes().to_vec()),
        DRIVER if !interface.loopback => {
            let answer = Writer::<DRIVER_SIZE>::new().bytes(0, b"virtio_net").bytes(32, b"1.0.0");
            Ok(answer.done().to_vec())
        }
        _ => Err(Error::EOPNOTSUPP),
    }
}

/// The first address of IPv4 of an interface. `EADDRNOTAVAIL`.
fn address_of(stack: &mut Internet, interface: InterfaceIndex) -> Result<(Ipv4Addr, u8)> {
    let own = stack.addresses().into_iter().filter(|address| address.interface == interface);
    let mut own = own.filter_map(|address| match address.prefix.address {
        IpAddr::V4(ip) => Some((ip, address.prefix.length)),
        IpAddr::V6(_) => None,
    });
    own.next().ok_or(Error::EADDRNOTAVAIL)
}

/// The mask of a network with so many bits.
fn mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

/// A struct sockaddr_in with this address.
fn socket_address(ip: Ipv4Addr) -> [u8; 16] {
    Writer::new().u16(0, FAMILY_V4).bytes(4, &ip.octets()).done()
}

/// The answer to a request that asks about an interface: a struct ifreq.
fn ask(stack: &mut Internet, entry: &[u8; REQUEST], request: u32) -> Result<[u8; REQUEST]> {
    let mut answer = *entry;
    if request == SIOCGIFNAME {
        let index = entry.u32_at(NAME)?;
        let found = stack.interface(InterfaceIndex(index)).ok_or(Error::ENODEV)?;
        answer[..NAME].fill(0);
        answer[..found.name.len()].copy_from_slice(found.name.as_bytes());
        return Ok(answer);
    }
    let interface = &named(stack, entry)?;
    let ip = |ip: Ipv4Addr| socket_address(ip).to_vec();
    let value: Vec<u8> = match request {
        SIOCGIFFLAGS => (flags(interface) as u16).to_le_bytes().to_vec(),
        SIOCGIFADDR => ip(address_of(stack, interface.index)?.0),
        SIOCGIFNETMASK => ip(Ipv4Addr::from(mask(address_of(stack, interface.index)?.1))),
        SIOCGIFBRDADDR => {
            let (own, length) = address_of(stack, interface.index)?;
            match interface.loopback {
                true => ip(Ipv4Addr::UNSPECIFIED),
                false => ip(Ipv4Addr::from(u32::from(own) | !mask(length))),
            }
        }
        SIOCGIFMTU => (interface.mtu as u32).to_le_bytes().to_vec(),
        SIOCGIFHWADDR => [&device_type(interface).to_le_bytes()[..], &interface.mac].concat(),
        SIOCGIFINDEX => interface.index.0.to_le_bytes().to_vec(),
        SIOCGIFTXQLEN => 1000u32.to_le_bytes().to_vec(),
        _ => 0u32.to_le_bytes().to_vec(),
    };
    answer[NAME..NAME + value.len()].copy_from_slice(&value);
    Ok(answer)
}

/// Does a request that changes an interface.
fn change(stack: &mut Internet, entry: &[u8; REQUEST], request: u32) -> Result<()> {
    let interface = named(stack, entry)?.index;
    let ip = || entry.field::<4>(NAME + 4).map(Ipv4Addr::from);
    match request {
        SIOCSIFFLAGS => set_flags(stack, interface, entry.u16_at(NAME)?.into(), u16::MAX.into()),
        SIOCSIFMTU => Ok(stack.set_mtu(interface, entry.u32_at(NAME)? as usize)?),
        SIOCSIFADDR => {
            let address = ip()?;
            let length = match address.octets()[0] {
                0..=127 => 8,
                128..=191 => 16,
                _ => 24,
            };
            replace(stack, interface, address, length)
        }
        _ => {
            let length = u32::from(ip()?).leading_ones() as u8;
            let (address, _) = address_of(stack, interface)?;
            replace(stack, interface, address, length)
        }
    }
}

/// Gives an interface one address instead of the first that it has.
fn replace(stack: &mut Internet, interface: InterfaceIndex, address: Ipv4Addr, length: u8) -> Result<()> {
    let old = address_of(stack, interface).ok();
    if let Some((old, _)) = old {
        stack.remove_address(interface, old.into())?;
    }
    if address.is_unspecified() {
        return Ok(());
    }
    if let Err(error) = stack.add_address(interface, Prefix { address: address.into(), length }) {
        if let Some((old, length)) = old {
            // It was there before, so there is room for it.
            let _ = stack.add_address(interface, Prefix { address: old.into(), length });
        }
        return Err(error.into());
    }
    stack.set_up(interface, true)?;
    Ok(())
}

/// Adds or removes the route in a struct rtentry.
fn change_route(stack: &mut Internet, entry: &[u8; 120], adds: bool) -> Result<()> {
    const HAS_GATEWAY: u16 = 2;
    const IS_HOST: u16 = 4;
    let ip = |at: usize| entry.field::<4>(at + 4).map(Ipv4Addr::from);
    let flags = entry.u16_at(56)?;
    let length = if flags & IS_HOST != 0 { 32 } else { u32::from(ip(40)?).leading_ones() as u8 };
    let destination = Prefix { address: ip(8)?.into(), length };
    let gateway = if flags & HAS_GATEWAY != 0 { Some(IpAddr::V4(ip(24)?)) } else { None };
    if !adds {
        return stack.remove_route(destination, gateway, None, None).map_err(|_| Error::ESRCH);
    }
    let through = gateway.ok_or(Error::ENODEV)?;
    let interface = stack.route_to(through, None).map_err(Error::from)?.0.interface;
    let (metric, origin) = (0, RouteOrigin::Static);
    Ok(stack.add_route(Route {
        destination,
        gateway,
        interface,
        metric,
        source: None,
        origin,
        expires: None,
    })?)
}

/// SIOCGIFCONF: the names and addresses of all interfaces that have one of IPv4.
async fn list<M: Machine>(call: &Call<'_, M>) -> Done {
    let header = call.read::<16>(call.arg(2)).await?;
    let (room, at) = (header.i32_at(0)?, header.u64_at(8)?);
    let entries: Vec<u8> = call.system().vfs().network.with(|stack| {
        let mut entries = Vec::new();
        for interface in stack.interfaces() {
            let Ok((ip, _)) = address_of(stack, interface.index) else { continue };
            let entry = Writer::<REQUEST>::new().bytes(0, interface.name.as_bytes());
            entries.extend(entry.bytes(NAME, &socket_address(ip)).done());
        }
        entries
    });
    let room = usize::try_from(room).map_err(|_| Error::EINVAL)?;
    let shown = if at == 0 { entries.len() } else { entries.len().min(room / REQUEST * REQUEST) };
    call.write_optional(at, &entries[..shown]).await?;
    call.write(call.arg(2), &(shown as u32).to_le_bytes()).await?;
    Ok(0)
}
