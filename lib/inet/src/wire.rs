//! The form in which requests to a stack in another task, and its answers, travel: numbers in the
//! order of bytes of x86, a number before each choice, a length before what varies.
//!
//! What comes from the other side is checked: text is UTF-8, a length is not larger than what is
//! there, a network has no more bits than an address.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use core::time::Duration;

use crate::error::Error;
use crate::time::Instant;
use crate::types::*;

/// What is left of a message that is being read.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next bytes.
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Checks that nothing is left.
    pub(crate) fn finish(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// What can be written into a message and read from one.
pub(crate) trait Wire<'a>: Sized {
    /// Appends the value to a message.
    fn put(&self, to: &mut Vec<u8>);
    /// Reads a value; nothing if there is none.
    fn get(from: &mut Reader<'a>) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Wire<'_> for $number {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn get(from: &mut Reader<'_>) -> Option<$number> {
                Some(<$number>::from_le_bytes(from.take(size_of::<$number>())?.try_into().ok()?))
            }
        })*
    };
}
numbers!(u8, u16, u32, u64);

impl Wire<'_> for usize {
    fn put(&self, to: &mut Vec<u8>) {
        (*self as u64).put(to);
    }

    fn get(from: &mut Reader<'_>) -> Option<usize> {
        usize::try_from(u64::get(from)?).ok()
    }
}

impl Wire<'_> for bool {
    fn put(&self, to: &mut Vec<u8>) {
        u8::from(*self).put(to);
    }

    fn get(from: &mut Reader<'_>) -> Option<bool> {
        match u8::get(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Wire<'_> for () {
    fn put(&self, _: &mut Vec<u8>) {}

    fn get(_: &mut Reader<'_>) -> Option<()> {
        Some(())
    }
}

impl<'a> Wire<'a> for &'a [u8] {
    fn put(&self, to: &mut Vec<u8>) {
        self.len().put(to);
        to.extend_from_slice(self);
    }

    fn get(from: &mut Reader<'a>) -> Option<&'a [u8]> {
        let length = usize::get(from)?;
        from.take(length)
    }
}

impl<'a> Wire<'a> for &'a str {
    fn put(&self, to: &mut Vec<u8>) {
        self.as_bytes().put(to);
    }

    fn get(from: &mut Reader<'a>) -> Option<&'a str> {
        core::str::from_utf8(Wire::get(from)?).ok()
    }
}

impl<const N: usize> Wire<'_> for [u8; N] {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self);
    }

    fn get(from: &mut Reader<'_>) -> Option<[u8; N]> {
        from.take(N)?.try_into().ok()
    }
}

impl Wire<'_> for [u64; 4] {
    fn put(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|word| word.put(to));
    }

    fn get(from: &mut Reader<'_>) -> Option<[u64; 4]> {
        Some([u64::get(from)?, u64::get(from)?, u64::get(from)?, u64::get(from)?])
    }
}

impl<'a, T: Wire<'a>> Wire<'a> for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        if let Some(value) = self {
            value.put(to);
        }
    }

    fn get(from: &mut Reader<'a>) -> Option<Option<T>> {
        if bool::get(from)? { T::get(from).map(Some) } else { Some(None) }
    }
}

impl<'a, T: Wire<'a>> Wire<'a> for Result<T, Error> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_ok().put(to);
        match self {
            Ok(value) => value.put(to),
            Err(error) => error.put(to),
        }
    }

    fn get(from: &mut Reader<'a>) -> Option<Result<T, Error>> {
        if bool::get(from)? { T::get(from).map(Ok) } else { Error::get(from).map(Err) }
    }
}

impl<'a, T: Wire<'a>, U: Wire<'a>> Wire<'a> for (T, U) {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
    }

    fn get(from: &mut Reader<'a>) -> Option<(T, U)> {
        Some((T::get(from)?, U::get(from)?))
    }
}

/// Every element has at least a byte, so a message bounds how many there are.
impl<'a, T: Wire<'a>> Wire<'a> for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.len().put(to);
        self.iter().for_each(|element| element.put(to));
    }

    fn get(from: &mut Reader<'a>) -> Option<Vec<T>> {
        let count = usize::get(from)?;
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(T::get(from)?);
        }
        Some(all)
    }
}

impl Wire<'_> for Duration {
    fn put(&self, to: &mut Vec<u8>) {
        self.as_secs().put(to);
        self.subsec_nanos().put(to);
    }

    fn get(from: &mut Reader<'_>) -> Option<Duration> {
        const SECOND: u32 = 1_000_000_000;
        let (seconds, nanoseconds) = (u64::get(from)?, u32::get(from)?);
        (nanoseconds < SECOND).then(|| Duration::new(seconds, nanoseconds))
    }
}

impl Wire<'_> for Instant {
    fn put(&self, to: &mut Vec<u8>) {
        self.micros().put(to);
    }

    fn get(from: &mut Reader<'_>) -> Option<Instant> {
        u64::get(from).map(Instant::from_micros)
    }
}

impl Wire<'_> for IpAddr {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_ipv4().put(to);
        match self {
            IpAddr::V4(ip) => ip.put(to),
            IpAddr::V6(ip) => ip.octets().put(to),
        }
    }

    fn get(from: &mut Reader<'_>) -> Option<IpAddr> {
        Some(match bool::get(from)? {
            true => Ipv4Addr::get(from)?.into(),
            false => Ipv6Addr::from(<[u8; 16]>::get(from)?).into(),
        })
    }
}

impl Wire<'_> for SocketAddr {
    fn put(&self, to: &mut Vec<u8>) {
        self.ip().put(to);
        self.port().put(to);
        if let SocketAddr::V6(address) = self {
            address.flowinfo().put(to);
            address.scope_id().put(to);
        }
    }

    fn get(from: &mut Reader<'_>) -> Option<SocketAddr> {
        let (ip, port) = (IpAddr::get(from)?, u16::get(from)?);
        Some(match ip {
            IpAddr::V4(ip) => SocketAddrV4::new(ip, port).into(),
            IpAddr::V6(ip) => SocketAddrV6::new(ip, port, u32::get(from)?, u32::get(from)?).into(),
        })
    }
}

impl Wire<'_> for Prefix {
    fn put(&self, to: &mut Vec<u8>) {
        self.address.put(to);
        self.length.put(to);
    }

    fn get(from: &mut Reader<'_>) -> Option<Prefix> {
        let (address, length) = (IpAddr::get(from)?, u8::get(from)?);
        let most = if address.is_ipv4() { 32 } else { 128 };
        (length <= most).then_some(Prefix { address, length })
    }
}

/// The name of an interface.
#[derive(Clone)]
struct Name(String);

impl Wire<'_> for Name {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.as_str().put(to);
    }

    fn get(from: &mut Reader<'_>) -> Option<Name> {
        let name: &str = Wire::get(from)?;
        (1..=15).contains(&name.len()).then(|| Name(name.into()))
    }
}

impl Wire<'_> for Interface {
    fn put(&self, to: &mut Vec<u8>) {
        let Interface { index, name, mac, mtu, offload, loopback, up, link, promiscuous, counters } = self;
        index.put(to);
        Name(name.clone()).put(to);
        mac.put(to);
        mtu.put(to);
        offload.put(to);
        [loopback, up, link, promiscuous].into_iter().for_each(|flag| flag.put(to));
        counters.put(to);
    }

    fn get(from: &mut Reader<'_>) -> Option<Interface> {
        Some(Interface {
            index: Wire::get(from)?,
            name: Name::get(from)?.0,
            mac: Wire::get(from)?,
            mtu: Wire::get(from)?,
            offload: Wire::get(from)?,
            loopback: Wire::get(from)?,
            up: Wire::get(from)?,
            link: Wire::get(from)?,
            promiscuous: Wire::get(from)?,
            counters: Wire::get(from)?,
        })
    }
}

impl Wire<'_> for ErrorReport {
    fn put(&self, to: &mut Vec<u8>) {
        let ErrorReport { error, destination, reporter, message, mtu, payload } = self;
        error.put(to);
        destination.put(to);
        reporter.put(to);
        message.put(to);
        mtu.put(to);
        payload.as_slice().put(to);
    }

    fn get(from: &mut Reader<'_>) -> Option<ErrorReport> {
        Some(ErrorReport {
            error: Wire::get(from)?,
            destination: Wire::get(from)?,
            reporter: Wire::get(from)?,
            message: Wire::get(from)?,
            mtu: Wire::get(from)?,
            payload: <&[u8]>::get(from)?.into(),
        })
    }
}

impl Wire<'_> for HeaderOptions {
    fn put(&self, to: &mut Vec<u8>) {
        self.bytes().put(to);
    }

    fn get(from: &mut Reader<'_>) -> Option<HeaderOptions> {
        HeaderOptions::from_bytes(Wire::get(from)?)
    }
}

impl Wire<'_> for Kind {
    fn put(&self, to: &mut Vec<u8>) {
        match *self {
            Kind::Tcp(family) => (0_u8, family).put(to),
            Kind::Udp(family) => (1_u8, family).put(to),
            Kind::IcmpEcho(family) => (2_u8, family).put(to),
            Kind::Raw(family, protocol) => (3_u8, (family, protocol)).put(to),
            Kind::Packet { protocol, cooked } => (4_u8, (protocol, cooked)).put(to),
        }
    }

    fn get(from: &mut Reader<'_>) -> Option<Kind> {
        Some(match u8::get(from)? {
            0 => Kind::Tcp(Wire::get(from)?),
            1 => Kind::Udp(Wire::get(from)?),
            2 => Kind::IcmpEcho(Wire::get(from)?),
            3 => Kind::Raw(Wire::get(from)?, Wire::get(from)?),
            4 => Kind::Packet { protocol: Wire::get(from)?, cooked: Wire::get(from)? },
            _ => return None,
        })
    }
}

impl Wire<'_> for Membership {
    fn put(&self, to: &mut Vec<u8>) {
        match *self {
            Membership::Promiscuous => 0_u8.put(to),
            Membership::Group(address) => (1_u8, address).put(to),
            Membership::AllGroups => 2_u8.put(to),
        }
    }

    fn get(from: &mut Reader<'_>) -> Option<Membership> {
        Some(match u8::get(from)? {
            0 => Membership::Promiscuous,
            1 => Membership::Group(Wire::get(from)?),
            2 => Membership::AllGroups,
            _ => return None,
        })
    }
}

impl Wire<'_> for Subject {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Subject::Interface(interface) => {
                0_u8.put(to);
                interface.put(to);
            }
            Subject::Address(address, interface) => {
                1_u8.put(to);
                address.put(to);
                Name(interface.clone()).put(to);
            }
            Subject::Route(route) => {
                2_u8.put(to);
                route.put(to);
            }
            Subject::Neighbour(neighbour) => {
                3_u8.put(to);
                neighbour.put(to);
            }
            Subject::Missed => 4_u8.put(to),
        }
    }

    fn get(from: &mut Reader<'_>) -> Option<Subject> {
        Some(match u8::get(from)? {
            0 => Subject::Interface(Wire::get(from)?),
            1 => Subject::Address(Wire::get(from)?, Name::get(from)?.0),
            2 => Subject::Route(Wire::get(from)?),
            3 => Subject::Neighbour(Wire::get(from)?),
            4 => Subject::Missed,
            _ => return None,
        })
    }
}

impl Wire<'_> for Ipv4Addr {
    fn put(&self, to: &mut Vec<u8>) {
        self.octets().put(to);
    }

    fn get(from: &mut Reader<'_>) -> Option<Ipv4Addr> {
        <[u8; 4]>::get(from).map(Ipv4Addr::from)
    }
}

/// A set of at most eight flags is a byte.
macro_rules! flags {
    ($($name:ident { $($field:ident = $bit:literal),* })*) => {
        $(impl Wire<'_> for $name {
            fn put(&self, to: &mut Vec<u8>) {
                let $name { $($field),* } = *self;
                let byte: u8 = 0 $(| u8::from($field) << $bit)*;
                byte.put(to);
            }

            fn get(from: &mut Reader<'_>) -> Option<$name> {
                let byte = u8::get(from)?;
                Some($name { $($field: byte >> $bit & 1 != 0),* })
            }
        })*
    };
}
flags! {
    Readiness { read = 0, write = 1, read_closed = 2, hup = 3, error = 4, priority = 5 }
    Offload { transmit_checksum = 0, segmentation = 1 }
    ReceiveFlags { peek = 0, discard = 1, urgent = 2 }
}

/// The fields of a structure, one after the other.
macro_rules! structures {
    ($($name:ident { $($field:ident),* $(,)? })*) => {
        $(impl Wire<'_> for $name {
            fn put(&self, to: &mut Vec<u8>) {
                let $name { $($field),* } = self;
                $($field.put(to);)*
            }

            fn get(from: &mut Reader<'_>) -> Option<$name> {
                Some($name { $($field: Wire::get(from)?),* })
            }
        })*
    };
}
structures! {
    SocketId { index, generation }
    SendFlags { urgent, more, dont_route, source, interface, hops, traffic_class }
    Received { copied, length, from, to, interface, hops, traffic_class, time, link, options }
    LinkHeader { source, protocol, class, whole }
    PacketStatistics { received, dropped }
    Queued { receive, send, unsent, at_mark }
    SocketInfo { id, kind, local, remote, state, receive_queue, send_queue, timer, drops }
    Address { interface, prefix, expires, deprecated, tentative }
    Route { destination, gateway, interface, metric, source, origin, expires }
    Neighbour { interface, address, mac, state }
    Change { gone, subject }
    Declined { address, mac }
    Lease { prefix, router, name_servers, server, expires }
    Counters {
        received_bytes, received_packets, received_errors, received_drops, received_multicast, sent_bytes,
        sent_packets, sent_errors, sent_drops,
    }
    TcpInfo {
        state, time_stamps, selective_acks, window_scale, retransmission_timeout, send_segment, round_trip,
        round_trip_variation, congestion_window, slow_start_threshold, in_flight, retransmissions, backoff,
        peer_window, window, bytes_acked, bytes_received,
    }
    Options {
        keep_alive, keep_idle, keep_interval, keep_count, no_delay, cork, quick_ack, linger, maximum_segment,
        user_timeout, syn_retries, linger2, urgent_inline, reuse_address, reuse_port, send_buffer,
        receive_buffer, receive_low_water, hops, traffic_class, only_v6, broadcast, dont_route, interface,
        multicast_hops, multicast_loop, multicast_interface, free_bind, receive_errors, dont_fragment,
        header_included, icmp_filter,
    }
}

impl Wire<'_> for InterfaceIndex {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
    }

    fn get(from: &mut Reader<'_>) -> Option<InterfaceIndex> {
        u32::get(from).map(InterfaceIndex)
    }
}

/// One of several names is a byte.
macro_rules! choices {
    ($($name:ident { $($choice:ident = $number:literal),* $(,)? })*) => {
        $(impl Wire<'_> for $name {
            fn put(&self, to: &mut Vec<u8>) {
                let number: u8 = match self { $($name::$choice => $number),* };
                number.put(to);
            }

            fn get(from: &mut Reader<'_>) -> Option<$name> {
                Some(match u8::get(from)? {
                    $($number => $name::$choice,)*
                    _ => return None,
                })
            }
        })*
    };
}
choices! {
    Family { V4 = 0, V6 = 1 }
    Direction { Read = 0, Write = 1, Both = 2 }
    Connect { Done = 0, Started = 1 }
    Timer { Retransmission = 0, KeepAlive = 1, TimeWait = 2, Probe = 3 }
    RouteOrigin { Kernel = 0, Static = 1, RouterAdvertisement = 2, Dhcp = 3 }
    NeighbourState { Incomplete = 0, Reachable = 1, Stale = 2, Probe = 3, Failed = 4, Permanent = 5 }
    LinkClass { Host = 0, Broadcast = 1, Multicast = 2, Other = 3, Outgoing = 4 }
    State {
        Closed = 0, Listen = 1, SynSent = 2, SynReceived = 3, Established = 4, FinWait1 = 5, FinWait2 = 6,
        CloseWait = 7, Closing = 8, LastAck = 9, TimeWait = 10,
    }
    Error {
        AddressInUse = 0, AddressNotAvailable = 1, AddressFamilyNotSupported = 2, AlreadyConnecting = 3,
        NotFound = 4, InvalidArgument = 5, NotSupported = 6, AlreadyConnected = 7, NotConnected = 8,
        DestinationRequired = 9, MessageTooLong = 10, WouldBlock = 11, NoBufferSpace = 12,
        NetworkUnreachable = 13, HostUnreachable = 14, NetworkDown = 15, ConnectionRefused = 16,
        ConnectionReset = 17, ConnectionAborted = 18, TimedOut = 19, BrokenPipe = 20, AccessDenied = 21,
        Exists = 22, ProtocolError = 23,
    }
}
