//! The checksum of the internet (RFC 1071): the sum of 16-bit words in one's complement.

use core::net::IpAddr;

/// Adds the bytes as if they began at an even place. Words of 64 bits are summed with their carry,
/// in the order of this processor; the sum of 16-bit words has the same bytes in either order.
pub(crate) fn sum(bytes: &[u8], start: u64) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<32>();
    let mut sum = start;
    let mut add = |word: u64| {
        let (low, carry) = sum.overflowing_add(word);
        sum = low + u64::from(carry);
    };
    for chunk in chunks {
        let (words, _) = chunk.as_chunks::<8>();
        for word in words {
            add(u64::from_le_bytes(*word));
        }
    }
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        add(u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    add(u64::from_le_bytes(last));
    sum
}

/// The sum as 16 bits, not complemented, in network order.
pub(crate) fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum as u16).swap_bytes()
}

/// The sum of the pseudo header of TCP, UDP and ICMPv6.
pub(crate) fn pseudo(source: IpAddr, destination: IpAddr, protocol: u8, length: usize) -> u64 {
    let tail = u64::from(u32::from(protocol).to_be()) + u64::from((length as u32).to_be());
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            sum(&destination.octets(), sum(&source.octets(), tail))
        }
        (source, destination) => {
            let octets = |address| match address {
                IpAddr::V4(address) => core::net::Ipv4Addr::to_ipv6_mapped(&address).octets(),
                IpAddr::V6(address) => address.octets(),
            };
            sum(&octets(destination), sum(&octets(source), tail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(bytes: &[u8]) -> u16 {
        let words =
            bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
        let mut sum: u64 = words.map(u64::from).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    proptest! {
        #[test]
        fn wide_sums_are_the_plain_sum(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(fold(sum(&bytes, 0)), plain(&bytes));
        }

        #[test]
        fn sums_go_on(bytes in proptest::collection::vec(prop_oneof![Just(0xffu8), any::<u8>()], 64..200)) {
            prop_assert_eq!(fold(sum(&bytes[32..], sum(&bytes[..32], 0))), plain(&bytes));
        }
    }

    #[test]
    fn the_pseudo_header_is_summed() {
        let [a, b] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse::<IpAddr>().unwrap());
        let header = [10, 0, 0, 1, 10, 0, 0, 2, 0, 6, 1, 44];
        assert_eq!(fold(pseudo(a, b, 6, 300)), plain(&header));
    }
}
