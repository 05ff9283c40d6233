//! The configuration of a virtio network device (Virtual I/O Device Version 1.1, 5.1.4), and the
//! features that it depends on (5.1.3).

use net::offload::Offload;

/// The features of network devices, as bits.
pub mod features {
    /// The device computes checksums of frames to send.
    pub const CHECKSUM: u64 = 1 << 0;
    /// The driver takes frames whose checksum is missing.
    pub const GUEST_CHECKSUM: u64 = 1 << 1;
    /// The configuration has the MTU.
    pub const MTU: u64 = 1 << 3;
    /// The configuration has the address of the interface.
    pub const ADDRESS: u64 = 1 << 5;
    /// The driver takes TCP segments longer than the MTU, over IPv4 and over IPv6.
    pub const GUEST_TCP_V4: u64 = 1 << 7;
    /// Like `GUEST_TCP_V4`, over IPv6.
    pub const GUEST_TCP_V6: u64 = 1 << 8;
    /// The device cuts TCP segments over IPv4.
    pub const HOST_TCP_V4: u64 = 1 << 11;
    /// The device cuts TCP segments over IPv6.
    pub const HOST_TCP_V6: u64 = 1 << 12;
    /// A received frame may be in several buffers.
    pub const MERGED_BUFFERS: u64 = 1 << 15;
    /// The configuration has the state of the link.
    pub const STATUS: u64 = 1 << 16;
    /// Features that the driver always uses.
    pub const ALWAYS: u64 = MTU | ADDRESS | MERGED_BUFFERS | STATUS | virtio::features::EVENT_INDEX;
}

/// The features to ask a device for that does this work for the client. Only a device that `merges`
/// buffers is asked for segments longer than the MTU.
pub fn wanted(offload: Offload, merges: bool) -> u64 {
    let of = |is_wanted: bool, features: u64| if is_wanted { features } else { 0 };
    // Cut segments have checksums that the device has computed.
    let large = features::GUEST_CHECKSUM | features::GUEST_TCP_V4 | features::GUEST_TCP_V6;
    features::ALWAYS
        | of(offload.receive_checksum, features::GUEST_CHECKSUM)
        | of(offload.send_checksum, features::CHECKSUM)
        | of(offload.send_segments_v4, features::CHECKSUM | features::HOST_TCP_V4)
        | of(offload.send_segments_v6, features::CHECKSUM | features::HOST_TCP_V6)
        | of(offload.receive_segments && merges, large)
}

/// What a device with the agreed features does for the client.
pub fn agreed(features: u64) -> Offload {
    let has = |feature: u64| features & feature != 0;
    Offload {
        receive_checksum: has(features::GUEST_CHECKSUM),
        send_checksum: has(features::CHECKSUM),
        send_segments_v4: has(features::HOST_TCP_V4),
        send_segments_v6: has(features::HOST_TCP_V6),
        receive_segments: has(features::GUEST_TCP_V4 | features::GUEST_TCP_V6),
    }
}

/// Whether the buffers are long enough for what a device with these features receives: longer
/// segments need several.
pub fn is_possible(features: u64) -> bool {
    !agreed(features).receive_segments || merges(features)
}

/// Whether a device with these features puts a received frame into several buffers.
pub fn merges(features: u64) -> bool {
    features & features::MERGED_BUFFERS != 0
}

/// Where the parts of the configuration are: the address, the state of the link, the MTU.
const ADDRESS: usize = 0;
const STATUS: usize = 6;
const MTU: usize = 10;
/// The bit of the state of the link by which it is up.
const LINK_UP: u16 = 1;
/// The MTU of an Ethernet, and the least one of an interface that has IPv6 (RFC 8200).
const ETHERNET_MTU: u16 = 1500;
const LEAST_MTU: u16 = 1280;
/// The longest frame that is received into one buffer has this MTU.
const LONGEST_MTU: u16 = (net::BUFFER - net::SHORTEST - net::head::HEAD) as u16;

/// How many bytes of the configuration a device with the agreed features has at least.
pub fn length(features: u64) -> usize {
    match features {
        features if features & features::MTU != 0 => MTU + 2,
        features if features & features::STATUS != 0 => STATUS + 2,
        _ => STATUS,
    }
}

/// What the configuration of a device says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The address of the interface.
    pub address: [u8; 6],
    /// The most bytes of a packet.
    pub mtu: u16,
    /// Whether the link is up.
    pub link: bool,
}

/// What these bytes of the configuration say, of a device with the agreed features. `None`: it has
/// no address, or less than the MTU that IPv6 needs.
pub fn read(features: u64, bytes: &[u8; MTU + 2]) -> Option<Configuration> {
    let number = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let has = |feature: u64| features & feature != 0;
    let mut address = [0; 6];
    address.copy_from_slice(&bytes[ADDRESS..ADDRESS + 6]);
    let mtu = if has(features::MTU) { number(MTU) } else { ETHERNET_MTU };
    // Without merged buffers a frame must fit into one.
    let longest = if has(features::MERGED_BUFFERS) { u16::MAX } else { LONGEST_MTU };
    let link = !has(features::STATUS) || number(STATUS) & LINK_UP != 0;
    let is_possible = has(features::ADDRESS) && address[0] & 1 == 0 && address != [0; 6];
    (is_possible && mtu >= LEAST_MTU).then_some(Configuration { address, mtu: mtu.min(longest), link })
}

/// How many bytes the driver reads of the configuration at most.
pub const LENGTH: usize = MTU + 2;

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; LENGTH] = [0x52, 0x54, 0, 1, 2, 3, 1, 0, 9, 9, 0x28, 0x23];

    #[test]
    fn a_device_without_features_has_an_ethernet_whose_link_is_up() {
        let mut bytes = BYTES;
        bytes[STATUS] = 0;
        let expected = Configuration { address: [0x52, 0x54, 0, 1, 2, 3], mtu: 1500, link: true };
        assert_eq!(read(features::ADDRESS, &bytes), Some(expected));
        assert_eq!(length(features::ADDRESS), 6);
    }

    #[test]
    fn with_features_the_numbers_count() {
        let has = features::ADDRESS | features::STATUS | features::MTU;
        let expected = Configuration { address: [0x52, 0x54, 0, 1, 2, 3], mtu: LONGEST_MTU, link: true };
        assert_eq!(read(has, &BYTES), Some(expected));
        let merged = read(has | features::MERGED_BUFFERS, &BYTES).unwrap();
        assert_eq!(merged, Configuration { mtu: 9000, ..expected });
        let mut bytes = BYTES;
        bytes[STATUS] = 2;
        assert_eq!(read(has, &bytes), Some(Configuration { link: false, ..expected }));
        assert_eq!((length(has), length(features::STATUS)), (12, 8));
    }

    #[test]
    fn impossible_devices_are_refused() {
        let (mut group, mut short) = (BYTES, BYTES);
        (group[0], short[MTU + 1]) = (1, 2);
        let has = features::ADDRESS | features::MTU;
        assert_eq!((read(has, &group), read(has, &short)), (None, None));
        assert_eq!(read(0, &BYTES), None, "it has no address");
        assert_eq!(read(has, &[0; LENGTH]), None);
    }

    #[test]
    fn work_for_the_client_is_asked_for_by_features() {
        assert_eq!(wanted(Offload::default(), true), features::ALWAYS);
        assert_eq!(wanted(Offload::default(), false), features::ALWAYS);
        assert_eq!(agreed(features::ALWAYS), Offload::default());
        for bits in 0..32 {
            let offload = Offload::from_word(bits);
            let found = agreed(wanted(offload, true));
            // What is asked for comes, with the checksums that it needs.
            assert_eq!(found.word() & bits, bits);
            assert_eq!(found.send_checksum, bits & 0b01110 != 0);
            assert_eq!(found.receive_checksum, bits & 0b10001 != 0);
            assert!(is_possible(wanted(offload, true)));
            // A device that does not merge buffers can be started whatever a client asks for.
            let without = wanted(offload, false) & !features::MERGED_BUFFERS;
            assert!(is_possible(without) && !merges(without));
            let rest = Offload { receive_segments: false, ..offload };
            assert_eq!(agreed(without), agreed(wanted(rest, true)));
        }
        assert!(!is_possible(features::GUEST_TCP_V4) && is_possible(features::GUEST_CHECKSUM));
    }
}
