//! The options of sockets of the internet domains: ip(7), ipv6(7), tcp(7), and those of socket(7)
//! that the stack knows.

use crate::layout::Fields;
use crate::socket::inet::{Asked, LEVEL_SOCKET, LEVEL_V4, LEVEL_V6};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use inet::{InterfaceIndex, Kind, Options};
use unix::socket::InetSocket;
use unix::{Error, Result};

const LEVEL_TCP: u32 = 6;
const LEVEL_ICMP_V6: u32 = 58;
const LEVEL_RAW: u32 = 255;

/// An option that is a number, of the stack: how it is read and set.
struct Number {
    level: u32,
    option: u32,
    get: fn(&Options) -> i64,
    /// Returns false for a number that is not allowed.
    set: fn(&mut Options, i64) -> bool,
}

/// A row of [`NUMBERS`] for an option that is on or off.
macro_rules! flag {
    ($level:expr, $option:expr, $field:ident) => {
        Number {
            level: $level,
            option: $option,
            get: |options| options.$field.into(),
            set: |options, value| {
                options.$field = value != 0;
                true
            },
        }
    };
}

/// A row of [`NUMBERS`] for a number in a range; -1 stands for the default.
macro_rules! number {
    ($level:expr, $option:expr, $field:ident, $least:expr, $most:expr) => {
        Number {
            level: $level,
            option: $option,
            get: |options| options.$field.into(),
            set: |options, value| {
                let value = if value == -1 { Options::default().$field.into() } else { value };
                let valid = ($least..=$most).contains(&value);
                if valid {
                    options.$field = value as _;
                }
                valid
            },
        }
    };
}

/// A row of [`NUMBERS`] for a time in seconds.
macro_rules! seconds {
    ($option:expr, $field:ident, $most:expr) => {
        Number {
            level: LEVEL_TCP,
            option: $option,
            get: |options| options.$field.as_secs() as i64,
            set: |options, value| {
                let valid = (1..=$most).contains(&value);
                if valid {
                    options.$field = Duration::from_secs(value as u64);
                }
                valid
            },
        }
    };
}

/// The options that are numbers of the stack's.
const NUMBERS: &[Number] = &[
    flag!(LEVEL_SOCKET, 2, reuse_address),
    flag!(LEVEL_SOCKET, 5, dont_route),
    flag!(LEVEL_SOCKET, 6, broadcast),
    flag!(LEVEL_SOCKET, 9, keep_alive),
    flag!(LEVEL_SOCKET, 10, urgent_inline),
    flag!(LEVEL_SOCKET, 15, reuse_port),
    Number {
        level: LEVEL_SOCKET,
        option: 18,
        get: |options| options.receive_low_water as i64,
        set: |options, value| {
            // A negative number is taken for the largest one, and 0 for 1, as in Linux.
            let value = if value < 0 { i32::MAX.into() } else { value };
            options.receive_low_water = value.max(1) as usize;
            true
        },
    },
    number!(LEVEL_V4, 1, traffic_class, 0, 255),
    number!(LEVEL_V4, 2, hops, 1, 255),
    flag!(LEVEL_V4, 3, header_included),
    Number {
        level: LEVEL_V4,
        option: 10,
        get: |options| if options.dont_fragment { 2 } else { 1 },
        set: set_discovery,
    },
    flag!(LEVEL_V4, 11, receive_errors),
    flag!(LEVEL_V4, 15, free_bind),
    number!(LEVEL_V4, 33, multicast_hops, 0, 255),
    flag!(LEVEL_V4, 34, multicast_loop),
    number!(LEVEL_V6, 16, hops, 0, 255),
    number!(LEVEL_V6, 18, multicast_hops, 0, 255),
    flag!(LEVEL_V6, 19, multicast_loop),
    Number {
        level: LEVEL_V6,
        option: 23,
        get: |options| if options.dont_fragment { 2 } else { 1 },
        set: set_discovery,
    },
    flag!(LEVEL_V6, 25, receive_errors),
    flag!(LEVEL_V6, 26, only_v6),
    flag!(LEVEL_V6, 62, dont_fragment),
    number!(LEVEL_V6, 67, traffic_class, 0, 255),
    flag!(LEVEL_V6, 78, free_bind),
    flag!(LEVEL_TCP, 1, no_delay),
    Number {
        level: LEVEL_TCP,
        option: 2,
        get: |options| options.maximum_segment.unwrap_or(536).into(),
        set: |options, value| {
            let valid = value == 0 || (88..=32767).contains(&value);
            if valid {
                options.maximum_segment = (value != 0).then_some(value as u16);
            }
            valid
        },
    },
    flag!(LEVEL_TCP, 3, cork),
    seconds!(4, keep_idle, 32767),
    seconds!(5, keep_interval, 32767),
    number!(LEVEL_TCP, 6, keep_count, 1, 127),
    number!(LEVEL_TCP, 7, syn_retries, 1, 127),
    seconds!(8, linger2, 120),
    Number {
        level: LEVEL_TCP,
        option: 18,
        get: |options| options.user_timeout.map_or(0, |time| time.as_millis() as i64),
        set: |options, value| {
            let valid = value >= 0;
            if valid {
                options.user_timeout = (value > 0).then(|| Duration::from_millis(value as u64));
            }
            valid
        },
    },
];

/// IP_MTU_DISCOVER: 0 and 1 allow fragments here, 2 and 3 forbid them; 4 and 5 are as 0.
fn set_discovery(options: &mut Options, value: i64) -> bool {
    let valid = (0..=5).contains(&value);
    if valid {
        options.dont_fragment = matches!(value, 2 | 3);
    }
    valid
}

/// The options by which a receiver asks for something with each message.
const ASKED: [(u32, u32, Asked); 10] = [
    (LEVEL_SOCKET, 29, Asked::Time),
    (LEVEL_SOCKET, 35, Asked::ExactTime),
    (LEVEL_V4, 6, Asked::Options),
    (LEVEL_V4, 7, Asked::ReturnOptions),
    (LEVEL_V4, 8, Asked::PacketInfo),
    (LEVEL_V4, 12, Asked::Hops),
    (LEVEL_V4, 13, Asked::TrafficClass),
    (LEVEL_V6, 49, Asked::PacketInfo),
    (LEVEL_V6, 51, Asked::Hops),
    (LEVEL_V6, 66, Asked::TrafficClass),
];

/// Options that can be set without an effect here, where Linux has one that programs do not rely
/// on: priorities of packets, hints for their timing, and a queue for SYN packets with data.
const IGNORED: [(u32, u32); 11] = [
    (LEVEL_SOCKET, 12),
    (LEVEL_SOCKET, 46),
    (LEVEL_SOCKET, 47),
    (LEVEL_V4, 24),
    (LEVEL_V4, 49),
    (LEVEL_V6, 29),
    (LEVEL_V6, 70),
    (LEVEL_V6, 72),
    (LEVEL_TCP, 9),
    (LEVEL_TCP, 10),
    (LEVEL_TCP, 25),
];

/// Whether the socket has options of this level.
fn has_level(socket: &InetSocket, level: u32) -> bool {
    match level {
        LEVEL_SOCKET => true,
        LEVEL_V4 => !matches!(socket.protocol(), Kind::Packet { .. }),
        LEVEL_V6 => socket.is_v6(),
        LEVEL_TCP => matches!(socket.protocol(), Kind::Tcp(_)),
        LEVEL_RAW | LEVEL_ICMP_V6 => matches!(socket.protocol(), Kind::Raw(..)),
        _ => false,
    }
}

/// The number in the bytes of an option: an int, or one byte where the program gives no more.
fn number_of(bytes: &[u8]) -> Result<i64> {
    match bytes {
        [byte] | [byte, _] | [byte, _, _] => Ok(i64::from(*byte)),
        _ => bytes.i32_at(0).map(i64::from),
    }
}

/// Sets an option of a socket of an internet domain. `None`: it has no such option of its own.
pub(super) fn set(socket: &InetSocket, level: u32, option: u32, bytes: &[u8]) -> Option<Result<()>> {
    if !has_level(socket, level) {
        return Some(Err(Error::ENOPROTOOPT));
    }
    if let Some(row) = NUMBERS.iter().find(|row| (row.level, row.option) == (level, option)) {
        return Some(number_of(bytes).and_then(|value| {
            let mut valid = true;
            socket.configure(|options| valid = (row.set)(options, value));
            if valid { Ok(()) } else { Err(Error::EINVAL) }
        }));
    }
    if let Some((_, _, asked)) = ASKED.iter().find(|row| (row.0, row.1) == (level, option)) {
        return Some(number_of(bytes).map(|value| {
            let mut options = socket.options();
            options.control = match value {
                0 => options.control & !asked.bit(),
                _ => options.control | asked.bit(),
            };
            socket.set_options(options);
        }));
    }
    if IGNORED.contains(&(level, option)) {
        return Some(number_of(bytes).map(drop));
    }
    Some(match (level, option) {
        (LEVEL_SOCKET, 25) => bind_to_device(socket, bytes),
        (LEVEL_V4, 32) => set_multicast_interface_v4(socket, bytes),
        (LEVEL_V6, 17) => number_of(bytes).map(|index| {
            let interface = u32::try_from(index).ok().filter(|index| *index != 0).map(InterfaceIndex);
            socket.configure(|options| options.multicast_interface = interface);
        }),
        (LEVEL_V4, 35 | 36) => group_v4(bytes, socket)
            .and_then(|(group, interface)| member(socket, option == 35, group, interface)),
        (LEVEL_V6, 20 | 21) => {
            group_v6(bytes).and_then(|(group, interface)| member(socket, option == 20, group, interface))
        }
        (LEVEL_TCP, 12) => number_of(bytes).map(|value| {
            socket.configure(|options| options.quick_ack = Some(value & 1 != 0));
        }),
        (LEVEL_TCP, 13) if bytes.starts_with(b"reno") || bytes.starts_with(b"cubic") => Ok(()),
        (LEVEL_TCP, 13) => Err(Error::ENOENT),
        (LEVEL_RAW, 1) => bytes.u32_at(0).map(|mask| {
            socket.configure(|options| options.icmp_filter = [mask.into(), 0, 0, 0]);
        }),
        (LEVEL_ICMP_V6, 1) => set_icmp_v6_filter(socket, bytes),
        (LEVEL_SOCKET, _) => return None,
        _ => Err(Error::ENOPROTOOPT),
    })
}

/// The value of an option of a socket of an internet domain. `None`: it has no such option of its
/// own.
pub(super) fn get(socket: &InetSocket, level: u32, option: u32) -> Option<Result<Vec<u8>>> {
    let int = |value: i64| Some(Ok((value as i32).to_le_bytes().to_vec()));
    if !has_level(socket, level) {
        return Some(Err(Error::ENOPROTOOPT));
    }
    if let Some(row) = NUMBERS.iter().find(|row| (row.level, row.option) == (level, option)) {
        return int((row.get)(&socket.stack_options()));
    }
    if let Some((_, _, asked)) = ASKED.iter().find(|row| (row.0, row.1) == (level, option)) {
        return int((socket.options().control & asked.bit() != 0).into());
    }
    if IGNORED.contains(&(level, option)) {
        return int(0);
    }
    match (level, option) {
        // IP_OPTIONS: a socket sends none.
        (LEVEL_V4, 4) => Some(Ok(Vec::new())),
        (LEVEL_V4, 14) | (LEVEL_V6, 24) => Some(path_mtu(socket)),
        (LEVEL_V4, 32) => Some(Ok([0; 4].to_vec())),
        (LEVEL_V6, 17) => int(socket.stack_options().multicast_interface.map_or(0, |i| i.0.into())),
        (LEVEL_TCP, 11) => Some(tcp_information(socket)),
        (LEVEL_TCP, 12) => {
            let quick = socket.network().with(|stack| stack.acknowledges_quickly(socket.id()));
            Some(quick.map(|quick| u32::from(quick).to_le_bytes().to_vec()).map_err(Error::from))
        }
        (LEVEL_TCP, 13) => Some(Ok(b"cubic\0\0\0\0\0\0\0\0\0\0\0".to_vec())),
        (LEVEL_RAW, 1) => Some(Ok((socket.stack_options().icmp_filter[0] as u32).to_le_bytes().to_vec())),
        (LEVEL_SOCKET, 25) => Some(device_name(socket)),
        (LEVEL_SOCKET, _) => None,
        _ => Some(Err(Error::ENOPROTOOPT)),
    }
}

/// SO_BINDTODEVICE: the name of an interface, or an empty one for all.
fn bind_to_device(socket: &InetSocket, bytes: &[u8]) -> Result<()> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let name = &bytes[..end.min(15)];
    let interface = match name {
        [] => None,
        name => {
            let known = socket.network().interface_names().into_iter();
            Some(known.into_iter().find(|(_, known)| known.as_bytes() == name).ok_or(Error::ENODEV)?.0)
        }
    };
    socket.configure(|options| options.interface = interface);
    Ok(())
}

/// The name of the interface to which the socket is bound, with a 0 at its end.
fn device_name(socket: &InetSocket) -> Result<Vec<u8>> {
    let Some(interface) = socket.stack_options().interface else { return Ok(Vec::new()) };
    let known = socket.network().interface_names().into_iter();
    let (_, name) = known.into_iter().find(|(index, _)| *index == interface).ok_or(Error::ENODEV)?;
    Ok([name.as_bytes(), b"\0"].concat())
}

/// The interface that has this address of IPv4; `None` for the unspecified address.
fn interface_of(socket: &InetSocket, address: Ipv4Addr) -> Result<Option<InterfaceIndex>> {
    if address.is_unspecified() {
        return Ok(None);
    }
    socket.network().with(|stack| {
        let found = stack.addresses().into_iter().find(|known| known.prefix.address == IpAddr::V4(address));
        found.map(|known| Some(known.interface)).ok_or(Error::EADDRNOTAVAIL)
    })
}

/// IP_MULTICAST_IF: an address of the interface (struct in_addr), or a struct ip_mreqn.
fn set_multicast_interface_v4(socket: &InetSocket, bytes: &[u8]) -> Result<()> {
    let interface = match bytes.len() {
        12.. => match bytes.u32_at(8)? {
            0 => interface_of(socket, Ipv4Addr::from(bytes.field::<4>(4)?))?,
            index => Some(InterfaceIndex(index)),
        },
        8.. => interface_of(socket, Ipv4Addr::from(bytes.field::<4>(4)?))?,
        _ => interface_of(socket, Ipv4Addr::from(bytes.field::<4>(0)?))?,
    };
    socket.configure(|options| options.multicast_interface = interface);
    Ok(())
}

/// Reads a struct ip_mreq or ip_mreqn: a group and an interface.
fn group_v4(bytes: &[u8], socket: &InetSocket) -> Result<(IpAddr, Option<InterfaceIndex>)> {
    let (group, own) = (Ipv4Addr::from(bytes.field::<4>(0)?), Ipv4Addr::from(bytes.field::<4>(4)?));
    let interface = match bytes.u32_at(8) {
        Ok(index) if index != 0 => Some(InterfaceIndex(index)),
        _ => interface_of(socket, own).map_err(|_| Error::ENODEV)?,
    };
    Ok((group.into(), interface))
}

/// Reads a struct ipv6_mreq: a group and an interface.
fn group_v6(bytes: &[u8]) -> Result<(IpAddr, Option<InterfaceIndex>)> {
    let index = bytes.u32_at(16)?;
    let group = Ipv6Addr::from(bytes.field::<16>(0)?);
    Ok((group.into(), (index != 0).then_some(InterfaceIndex(index))))
}

fn member(socket: &InetSocket, joins: bool, group: IpAddr, interface: Option<InterfaceIndex>) -> Result<()> {
    let id = socket.id();
    socket.network().with(|stack| match joins {
        true => stack.join(id, group, interface),
        false => stack.leave(id, group, interface),
    })?;
    Ok(())
}

/// ICMP6_FILTER: a bit for each type of message that is not received.
fn set_icmp_v6_filter(socket: &InetSocket, bytes: &[u8]) -> Result<()> {
    let mut filter = [0; 4];
    for (index, word) in filter.iter_mut().enumerate() {
        *word = bytes.u64_at(8 * index)?;
    }
    socket.configure(|options| options.icmp_filter = filter);
    Ok(())
}

/// IP_MTU: the largest packet that the path to the peer takes. `ENOTCONN`.
fn path_mtu(socket: &InetSocket) -> Result<Vec<u8>> {
    let peer = socket.peer_address()?;
    let mtu = socket.network().with(|stack| {
        let (route, _) = stack.route_to(peer.ip(), None).map_err(Error::from)?;
        stack.interface(route.interface).map(|i| i.mtu).ok_or(Error::ENETUNREACH)
    })?;
    Ok((mtu as u32).to_le_bytes().to_vec())
}

/// TCP_INFO (struct tcp_info).
fn tcp_information(socket: &InetSocket) -> Result<Vec<u8>> {
    let info = socket.network().with(|stack| stack.tcp_info(socket.id()))?;
    let (peer_shift, own_shift) = info.window_scale.unwrap_or((0, 0));
    let segment = info.send_segment.max(1);
    let options = u8::from(info.time_stamps)
        | u8::from(info.selective_acks) << 1
        | u8::from(info.window_scale.is_some()) << 2;
    let mut bytes = alloc::vec![0; 232];
    bytes[0] = crate::socket::state_number(info.state);
    bytes[3] = info.backoff.min(255) as u8;
    bytes[5] = options;
    bytes[6] = peer_shift & 15 | own_shift << 4;
    for (at, word) in [
        (8, info.retransmission_timeout),
        (16, info.send_segment),
        (20, info.send_segment),
        (24, info.in_flight.div_ceil(segment)),
        (68, info.round_trip),
        (72, info.round_trip_variation),
        (76, info.slow_start_threshold / segment),
        (80, info.congestion_window / segment),
        (84, info.send_segment),
        (100, info.retransmissions),
    ] {
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    for (at, word) in [(120, info.bytes_acked), (128, info.bytes_received)] {
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    Ok(bytes)
}
