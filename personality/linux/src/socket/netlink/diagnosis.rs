//! Requests for sockets (sock_diag(7)), which `ss` makes.

use super::message::{MULTIPART, Message, Request};
use crate::layout::{Fields, Writer};
use crate::socket::state_number;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use inet::{Family, Kind, Timer};
use unix::network::{Network, SocketEntry};
use unix::{Error, Result};

const BY_FAMILY: u16 = 20;
const V4: u8 = 2;
const V6: u8 = 10;
/// Bytes of struct inet_diag_req_v2 and of struct inet_diag_msg.
const REQUEST: usize = 56;
const ANSWER: usize = 72;

/// The sockets for which a request asks. `ENOENT` for a family or protocol whose sockets are not
/// listed here; programs then read the files in /proc/net.
pub(super) fn answer(network: &Network, request: &Request<'_>, port: u32) -> Result<Vec<Vec<u8>>> {
    let body = request.body();
    if request.kind != BY_FAMILY || body.len() < 2 {
        return Err(Error::EINVAL);
    }
    let (family, protocol) = (body[0], body[1]);
    if !matches!((family, protocol), (V4 | V6, 6 | 17 | 255)) {
        return Err(Error::ENOENT);
    }
    if body.len() < REQUEST {
        return Err(Error::EINVAL);
    }
    let states = body.u32_at(4)?;
    let is_wanted = |entry: &SocketEntry| {
        let (own, number) = match entry.info.kind {
            Kind::Tcp(family) => (family, 6),
            Kind::Udp(family) => (family, 17),
            Kind::Raw(family, _) => (family, 255),
            Kind::IcmpEcho(_) | Kind::Packet { .. } => return false,
        };
        let own = if own == Family::V4 { V4 } else { V6 };
        own == family && number == protocol && states >> state_number(entry.info.state) & 1 != 0
    };
    let wanted = network.sockets().into_iter().filter(is_wanted);
    Ok(wanted.map(|entry| message(&entry, family, request, port)).collect())
}

fn message(entry: &SocketEntry, family: u8, request: &Request<'_>, port: u32) -> Vec<u8> {
    let info = &entry.info;
    let (timer, expires) = info.timer.map_or((0, 0), |(timer, time)| {
        let kind = match timer {
            Timer::Retransmission => 1,
            Timer::KeepAlive => 2,
            Timer::TimeWait => 3,
            Timer::Probe => 4,
        };
        (kind, u32::try_from(time.as_millis()).unwrap_or(u32::MAX))
    });
    let fixed = Writer::<ANSWER>::new().bytes(0, &[family, state_number(info.state), timer]);
    let fixed = fixed.bytes(4, &info.local.port().to_be_bytes()).bytes(6, &info.remote.port().to_be_bytes());
    let fixed = fixed.bytes(8, &ip_of(info.local, family)).bytes(24, &ip_of(info.remote, family));
    let fixed = fixed.u64(44, entry.inode).u32(52, expires).u32(56, info.receive_queue as u32);
    let fixed = fixed.u32(60, info.send_queue as u32).u32(64, entry.user).u32(68, entry.inode as u32);
    Message::answer(request, port, BY_FAMILY, MULTIPART, &fixed.done()).done()
}

/// The bytes of an address, for a socket of this family.
fn ip_of(address: SocketAddr, family: u8) -> Vec<u8> {
    match address.ip() {
        IpAddr::V4(ip) if family == V6 && ip.is_unspecified() => alloc::vec![0; 16],
        IpAddr::V4(ip) if family == V6 => ip.to_ipv6_mapped().octets().to_vec(),
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}
