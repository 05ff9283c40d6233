//! Layouts of addresses of the internet domains, and of the structures in the control messages of
//! their sockets.

use super::{Fields, Writer};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use unix::{Error, Result};

/// The number of no family (AF_UNSPEC).
pub const FAMILY_NONE: u16 = 0;
/// The number of the family of IPv4 (AF_INET).
pub const FAMILY_V4: u16 = 2;
/// The number of the family of IPv6 (AF_INET6).
pub const FAMILY_V6: u16 = 10;
/// Bytes of struct sockaddr_in.
const V4_SIZE: usize = 16;
/// Bytes of struct sockaddr_in6 without the scope, which programs may leave out.
const V6_LEAST: usize = 24;

/// Reads a struct sockaddr_in or sockaddr_in6 for a socket of IPv6 (`v6`) or of IPv4. `EINVAL` if
/// it is too short, `EAFNOSUPPORT` if it is of another family.
pub fn internet_address(bytes: &[u8], v6: bool) -> Result<SocketAddr> {
    if bytes.len() < 2 {
        return Err(Error::EINVAL);
    }
    let family = bytes.u16_at(0)?;
    // Both families have the port, with the most significant byte first, at the same place.
    let port = || bytes.field::<2>(2).map(u16::from_be_bytes);
    match (family, v6) {
        (FAMILY_V4, _) | (FAMILY_NONE, false) => {
            if bytes.len() < V4_SIZE {
                return Err(Error::EINVAL);
            }
            let ip = Ipv4Addr::from(bytes.field::<4>(4)?);
            if family == FAMILY_NONE && !ip.is_unspecified() {
                return Err(Error::EAFNOSUPPORT);
            }
            Ok(SocketAddrV4::new(ip, port()?).into())
        }
        (FAMILY_V6, true) => {
            if bytes.len() < V6_LEAST {
                return Err(Error::EINVAL);
            }
            let ip = Ipv6Addr::from(bytes.field::<16>(8)?);
            let scope = bytes.u32_at(24).unwrap_or(0);
            Ok(SocketAddrV6::new(ip, port()?, bytes.u32_at(4)?.swap_bytes(), scope).into())
        }
        _ if bytes.len() < if v6 { V6_LEAST } else { V4_SIZE } => Err(Error::EINVAL),
        _ => Err(Error::EAFNOSUPPORT),
    }
}

/// Writes a struct sockaddr_in or sockaddr_in6.
pub fn to_internet_address(address: &SocketAddr) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    match address {
        SocketAddr::V4(address) => {
            let bytes = Writer::<V4_SIZE>::new().u16(0, FAMILY_V4).bytes(2, &port);
            bytes.bytes(4, &address.ip().octets()).done().to_vec()
        }
        SocketAddr::V6(address) => {
            let bytes = Writer::<28>::new().u16(0, FAMILY_V6).bytes(2, &port);
            let bytes = bytes.bytes(4, &address.flowinfo().to_be_bytes()).bytes(8, &address.ip().octets());
            bytes.u32(24, address.scope_id()).done().to_vec()
        }
    }
}

/// Writes a struct in_pktinfo: the interface at which a packet arrived, and its destination.
pub fn to_packet_info(interface: u32, destination: IpAddr) -> Vec<u8> {
    match destination {
        IpAddr::V4(ip) => {
            let bytes = Writer::<12>::new().u32(0, interface).bytes(4, &ip.octets());
            bytes.bytes(8, &ip.octets()).done().to_vec()
        }
        IpAddr::V6(ip) => Writer::<20>::new().bytes(0, &ip.octets()).u32(16, interface).done().to_vec(),
    }
}

/// Reads a struct in_pktinfo: the interface by which a packet is to leave (0: any), and its source.
pub fn packet_info_v4(bytes: &[u8]) -> Result<(u32, IpAddr)> {
    Ok((bytes.u32_at(0)?, Ipv4Addr::from(bytes.field::<4>(4)?).into()))
}

/// Reads a struct in6_pktinfo, as [`packet_info_v4`] does.
pub fn packet_info_v6(bytes: &[u8]) -> Result<(u32, IpAddr)> {
    Ok((bytes.u32_at(16)?, Ipv6Addr::from(bytes.field::<16>(0)?).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_conversion_both_ways() {
        for text in ["127.0.0.1:80", "255.255.255.255:65535", "[::1]:80", "[fe80::1%3]:1", "[::]:0"] {
            let address: SocketAddr = text.parse().unwrap();
            let bytes = to_internet_address(&address);
            assert_eq!(internet_address(&bytes, address.is_ipv6()), Ok(address), "{text}");
        }
        let v4 = to_internet_address(&"127.0.0.1:80".parse().unwrap());
        assert_eq!(&v4[..8], [2, 0, 0, 80, 127, 0, 0, 1]);
        assert!(internet_address(&v4, true).unwrap().is_ipv4(), "a socket of IPv6 may reach IPv4");
    }

    #[test]
    fn addresses_of_other_families_and_lengths_are_refused() {
        let v6 = to_internet_address(&"[::1]:80".parse().unwrap());
        assert_eq!(internet_address(&v6, false), Err(Error::EAFNOSUPPORT));
        assert!(internet_address(&v6[..24], true).is_ok(), "without the scope");
        assert_eq!(internet_address(&v6[..23], true), Err(Error::EINVAL));
        assert_eq!(internet_address(&[2, 0, 0, 80, 127, 0, 0, 1], false), Err(Error::EINVAL));
        assert_eq!(internet_address(&[1; 16], false), Err(Error::EAFNOSUPPORT));
        assert_eq!(internet_address(&[1], false), Err(Error::EINVAL));
        assert!(internet_address(&[0; 16], false).is_ok(), "no family and no address is any address");
        assert_eq!(
            internet_address(&[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], false),
            Err(Error::EAFNOSUPPORT)
        );
    }
}
