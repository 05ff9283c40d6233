//! Sockets of the internet domains, as Linux' calls see them.

use super::{MessageFlags, Received, Sending};
use crate::layout::Fields;
use crate::layout::inet::{
    FAMILY_NONE, internet_address, packet_info_v4, packet_info_v6, to_internet_address, to_packet_info,
};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use inet::{Family, InterfaceIndex, Kind, SendFlags};
use unix::file::OpenFile;
use unix::socket::{InetReceiveHow, InetReceived, InetSocket, inet_socket};
use unix::vfs::{Caller, OpenFlags};
use unix::{Environment, Error, Result, UserBuffer};

/// Levels of options and control messages.
pub(crate) const LEVEL_SOCKET: u32 = 1;
pub(crate) const LEVEL_V4: u32 = 0;
pub(crate) const LEVEL_V6: u32 = 41;

/// An entry of the queue of errors has at most this many bytes of the packet that caused it.
const QUOTED: usize = 1024;

const ICMP: i32 = 1;
const TCP: i32 = 6;
const UDP: i32 = 17;
const ICMP_V6: i32 = 58;

/// What a receiver has asked to get with each message: a bit for each in
/// [`SocketOptions::control`](unix::socket::SocketOptions::control).
#[derive(Clone, Copy)]
pub(crate) enum Asked {
    /// SO_TIMESTAMP.
    Time,
    /// SO_TIMESTAMPNS.
    ExactTime,
    /// IP_PKTINFO and IPV6_RECVPKTINFO.
    PacketInfo,
    /// IP_RECVTTL and IPV6_RECVHOPLIMIT.
    Hops,
    /// IP_RECVTOS and IPV6_RECVTCLASS.
    TrafficClass,
    /// IP_RECVOPTS.
    Options,
    /// IP_RETOPTS. A source route would be reversed, but such packets are not received.
    ReturnOptions,
    /// PACKET_AUXDATA.
    PacketData,
}

impl Asked {
    /// The bit in the set of what a receiver has asked for.
    pub(crate) fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Makes a socket from the arguments of socket(2). `ESOCKTNOSUPPORT`, `EPROTONOSUPPORT`, `EINVAL`.
pub(super) fn create(
    caller: &Caller<'_>,
    v6: bool,
    kind: u32,
    protocol: i32,
    flags: OpenFlags,
) -> Result<alloc::sync::Arc<OpenFile>> {
    const STREAM: u32 = 1;
    const DATAGRAM: u32 = 2;
    const RAW: u32 = 3;
    let family = if v6 { Family::V6 } else { Family::V4 };
    let echo = if v6 { ICMP_V6 } else { ICMP };
    let kind = match (kind, protocol) {
        (0 | 7.., _) => return Err(Error::EINVAL),
        (_, ..=-1 | 263..) => return Err(Error::EINVAL),
        (STREAM, 0 | TCP) => Kind::Tcp(family),
        (DATAGRAM, 0 | UDP) => Kind::Udp(family),
        (DATAGRAM, protocol) if protocol == echo => Kind::IcmpEcho(family),
        (RAW, 1..=255) => Kind::Raw(family, protocol as u8),
        (STREAM | DATAGRAM | RAW, _) => return Err(Error::EPROTONOSUPPORT),
        _ => return Err(Error::ESOCKTNOSUPPORT),
    };
    inet_socket(caller, kind, flags)
}

/// The number of the socket's protocol.
pub(super) fn protocol(socket: &InetSocket) -> u32 {
    let number = match socket.protocol() {
        Kind::Tcp(_) => TCP,
        Kind::Udp(_) => UDP,
        Kind::IcmpEcho(Family::V4) => ICMP,
        Kind::IcmpEcho(Family::V6) => ICMP_V6,
        Kind::Raw(_, protocol) => protocol.into(),
        Kind::Packet { protocol, .. } => protocol.to_be().into(),
    };
    number as u32
}

/// The address in these bytes for [`InetSocket::connect`]: `None` for one without a family.
pub(super) fn of_peer(socket: &InetSocket, bytes: &[u8]) -> Result<Option<SocketAddr>> {
    if bytes.u16_at(0)? == FAMILY_NONE {
        return Ok(None);
    }
    internet_address(bytes, socket.is_v6()).map(Some)
}

/// Sends a message, or bytes of a stream.
pub(super) async fn send(
    socket: &InetSocket,
    caller: &Caller<'_>,
    from: &mut dyn UserBuffer,
    sending: Sending,
) -> Result<usize> {
    let destination = match &sending.destination {
        Some(bytes) => Some(internet_address(bytes, socket.is_v6())?),
        None => None,
    };
    let mut flags = SendFlags {
        urgent: sending.flags.contains(MessageFlags::OUT_OF_BAND),
        more: sending.flags.contains(MessageFlags::MORE),
        dont_route: sending.flags.contains(MessageFlags::DONT_ROUTE),
        ..SendFlags::default()
    };
    for (level, kind, data) in &sending.control.others {
        apply(&mut flags, *level, *kind, data)?;
    }
    socket.send(caller, from, destination, flags, sending.nonblock).await
}

/// Applies a control message of a send. `EINVAL` for one that does not exist.
fn apply(flags: &mut SendFlags, level: u32, kind: u32, data: &[u8]) -> Result<()> {
    // A number of IPv6 is an int, and -1 is the socket's own (RFC 3542, 6.3 and 6.5).
    let number_v6 = || match data.len() {
        4 if data.i32_at(0)? == -1 => Ok(None),
        4 => u8::try_from(data.i32_at(0)?).map(Some).map_err(|_| Error::EINVAL),
        _ => Err(Error::EINVAL),
    };
    let number_v4 = || match data {
        &[byte] => Ok(byte),
        data if data.len() == 4 => u8::try_from(data.i32_at(0)?).map_err(|_| Error::EINVAL),
        _ => Err(Error::EINVAL),
    };
    let (interface, source) = match (level, kind) {
        (LEVEL_V4, 8) => packet_info_v4(data)?,
        (LEVEL_V6, 50) => packet_info_v6(data)?,
        (LEVEL_V4, 1) => {
            flags.traffic_class = Some(number_v4()?);
            return Ok(());
        }
        (LEVEL_V4, 2) => {
            // Only the type of service may be one byte.
            let hops = if data.len() == 4 { number_v4()? } else { 0 };
            flags.hops = Some(hops).filter(|&hops| hops > 0);
            return flags.hops.map(drop).ok_or(Error::EINVAL);
        }
        (LEVEL_V6, 52) => {
            flags.hops = number_v6()?;
            return Ok(());
        }
        (LEVEL_V6, 67) => {
            flags.traffic_class = number_v6()?;
            return Ok(());
        }
        (LEVEL_V4 | LEVEL_V6, _) => return Err(Error::EINVAL),
        _ => return Ok(()),
    };
    flags.interface = (interface != 0).then_some(InterfaceIndex(interface));
    flags.source = (!source.is_unspecified()).then_some(source);
    Ok(())
}

/// Receives a message, bytes of a stream, or an entry of the queue of errors.
pub(super) async fn receive(
    socket: &InetSocket,
    caller: &Caller<'_>,
    to: &mut dyn UserBuffer,
    flags: MessageFlags,
    nonblock: bool,
) -> Result<Received> {
    if flags.contains(MessageFlags::ERROR_QUEUE) {
        // The entry leaves the queue before it is copied, so the receiver's memory must be there.
        let length = to.remaining().min(QUOTED);
        unix::resolve_message(to, length, true).await?;
        return receive_error(socket, to);
    }
    let how = how(flags, nonblock);
    let received = socket.receive(caller, to, how).await?;
    let control = control(socket, caller, &received);
    let shown = if how.urgent { MessageFlags::OUT_OF_BAND } else { MessageFlags::empty() };
    Ok(Received {
        count: received.count,
        length: received.length,
        source: received.source.map(super::Address::Internet),
        control,
        shown,
        ..Received::default()
    })
}

/// How to receive by these flags.
pub(super) fn how(flags: MessageFlags, nonblock: bool) -> InetReceiveHow {
    InetReceiveHow {
        peek: flags.contains(MessageFlags::PEEK),
        wait_all: flags.contains(MessageFlags::WAIT_ALL),
        urgent: flags.contains(MessageFlags::OUT_OF_BAND),
        discard: flags.contains(MessageFlags::TRUNCATED),
        nonblock,
    }
}

/// The control messages that the receiver has asked for: level, type and data of each.
fn control(socket: &InetSocket, caller: &Caller<'_>, received: &InetReceived) -> Vec<(u32, u32, Vec<u8>)> {
    let asked = socket.options().control;
    if asked == 0 || received.source.is_none() {
        return Vec::new();
    }
    let mut control: Vec<_> = time(socket, &*caller.vfs.environment, received).into_iter().collect();
    let is_asked = |what: Asked| asked & what.bit() != 0;
    let level = if socket.is_v6() { LEVEL_V6 } else { LEVEL_V4 };
    if let (true, Some(destination)) = (is_asked(Asked::PacketInfo), received.destination) {
        let destination = match destination {
            IpAddr::V4(ip) if socket.is_v6() => ip.to_ipv6_mapped().into(),
            ip => ip,
        };
        let interface = received.interface.map_or(0, |interface| interface.0);
        let kind = if socket.is_v6() { 50 } else { 8 };
        control.push((level, kind, to_packet_info(interface, destination)));
    }
    if is_asked(Asked::Hops) {
        let kind = if socket.is_v6() { 52 } else { 2 };
        control.push((level, kind, i32::from(received.hops).to_le_bytes().to_vec()));
    }
    if is_asked(Asked::TrafficClass) {
        match socket.is_v6() {
            true => control.push((level, 67, i32::from(received.traffic_class).to_le_bytes().to_vec())),
            false => control.push((level, 1, alloc::vec![received.traffic_class])),
        }
    }
    let options = received.options.bytes();
    for (what, kind) in [(Asked::Options, 6), (Asked::ReturnOptions, 7)] {
        if is_asked(what) && !options.is_empty() {
            control.push((LEVEL_V4, kind, options.to_vec()));
        }
    }
    control
}

/// The seconds and nanoseconds of the real time at which a message arrived.
pub(super) fn arrival(environment: &dyn Environment, received: &InetReceived) -> (i64, u32) {
    const SECOND: i128 = 1_000_000_000;
    let age = environment.monotonic().saturating_sub(received.time).as_nanos() as i128;
    let now = environment.realtime();
    let arrived = i128::from(now.seconds) * SECOND + i128::from(now.nanoseconds) - age;
    (arrived.div_euclid(SECOND) as i64, arrived.rem_euclid(SECOND) as u32)
}

/// The control message with the time of arrival, if the receiver has asked for it.
pub(super) fn time(
    socket: &InetSocket,
    environment: &dyn Environment,
    received: &InetReceived,
) -> Option<(u32, u32, Vec<u8>)> {
    let asked = socket.options().control;
    let (kind, unit) = match () {
        () if asked & Asked::ExactTime.bit() != 0 => (35, 1),
        () if asked & Asked::Time.bit() != 0 => (29, 1000),
        () => return None,
    };
    let (seconds, nanoseconds) = arrival(environment, received);
    let data = [seconds.to_le_bytes(), i64::from(nanoseconds / unit).to_le_bytes()].concat();
    Some((LEVEL_SOCKET, kind, data))
}

/// Receives an entry of the queue of errors: the payload of the packet that caused it, and a struct
/// sock_extended_err with the address of the reporter.
fn receive_error(socket: &InetSocket, to: &mut dyn UserBuffer) -> Result<Received> {
    const LOCAL: u8 = 1;
    const BY_ICMP: u8 = 2;
    const BY_ICMP_V6: u8 = 3;
    let report = socket.take_report()?;
    let length = report.payload.len();
    let count = length.min(to.remaining());
    // What the receiver's memory does not take is lost, as with a short buffer.
    let count = to.copy_out(&report.payload[..count]).unwrap_or(0);
    let origin = match report.reporter {
        None => LOCAL,
        Some(IpAddr::V4(_)) => BY_ICMP,
        Some(IpAddr::V6(_)) => BY_ICMP_V6,
    };
    let number = crate::errno::number(report.error.into()) as u32;
    let mut data = number.to_le_bytes().to_vec();
    data.extend([origin, report.message.0, report.message.1, 0]);
    data.extend(report.mtu.to_le_bytes());
    data.extend(0u32.to_le_bytes());
    match report.reporter {
        Some(ip) => data.extend(to_internet_address(&SocketAddr::new(ip, 0))),
        None => data.extend([0; 16]),
    }
    let (level, kind) = if socket.is_v6() { (LEVEL_V6, 25) } else { (LEVEL_V4, 11) };
    Ok(Received {
        count,
        length,
        source: Some(super::Address::Internet(report.destination)),
        control: alloc::vec![(level, kind, data)],
        shown: MessageFlags::ERROR_QUEUE,
        ..Received::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_and_traffic_class_of_a_message_are_those_of_rfc_3542() {
        let apply = |level, kind, data: &[u8]| {
            let mut flags = SendFlags::default();
            apply(&mut flags, level, kind, data).map(|()| (flags.hops, flags.traffic_class))
        };
        let int = |value: i32| value.to_le_bytes();
        assert_eq!(apply(LEVEL_V6, 52, &int(0)), Ok((Some(0), None)));
        assert_eq!(apply(LEVEL_V6, 52, &int(-1)), Ok((None, None)));
        assert_eq!(apply(LEVEL_V6, 67, &int(255)), Ok((None, Some(255))));
        assert_eq!(apply(LEVEL_V6, 67, &int(-1)), Ok((None, None)));
        assert_eq!(apply(LEVEL_V4, 1, &int(16)), Ok((None, Some(16))));
        assert_eq!(apply(LEVEL_V4, 1, &[16]), Ok((None, Some(16))));
        assert_eq!(apply(LEVEL_V4, 2, &int(1)), Ok((Some(1), None)));
        for (level, kind, data) in [
            (LEVEL_V6, 52, &int(256)[..]),
            (LEVEL_V6, 52, &int(-2)),
            (LEVEL_V6, 67, &[0; 5]),
            (LEVEL_V6, 67, &[0]),
            (LEVEL_V4, 1, &int(-1)),
            (LEVEL_V4, 2, &int(0)),
            (LEVEL_V4, 2, &[1]),
        ] {
            assert_eq!(apply(level, kind, data), Err(Error::EINVAL), "{level} {kind} {data:?}");
        }
    }
}
