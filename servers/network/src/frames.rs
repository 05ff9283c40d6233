//! What a frame of the stack leaves to the device that sends it.

use inet::Frame;
use net::head::{Checksum, Head, Segments};
use net::interface::Description;
use net::offload::Offload;

/// What a stack can leave to a device.
pub const OFFLOAD: Offload = Offload {
    receive_checksum: true,
    send_checksum: true,
    send_segments_v4: true,
    send_segments_v6: true,
    receive_segments: false,
};
/// Where the version of IP is in a frame: in the type, after the addresses.
const IPV6: [u8; 2] = [0x86, 0xdd];
const TYPE: core::ops::Range<usize> = 12..14;
/// Where the length of a TCP header is, in its upper four bits, in units of 4 bytes.
const TCP_LENGTH: usize = 12;

/// What the stack leaves to the device of this description.
pub fn offload(about: &Description) -> inet::Offload {
    inet::Offload {
        transmit_checksum: about.offload.send_checksum,
        segmentation: about.offload.send_segments_v4 && about.offload.send_segments_v6,
    }
}

/// What a frame leaves to the device.
pub fn head(frame: &Frame) -> Head {
    let checksum = frame.checksum.map(|missing| Checksum { start: missing.start, offset: missing.offset });
    let segments = frame.segment.zip(checksum).map(|(size, Checksum { start, .. })| {
        let length = frame.bytes.get(usize::from(start) + TCP_LENGTH).map_or(0, |byte| byte >> 4);
        let v6 = frame.bytes.get(TYPE) == Some(&IPV6);
        Segments { v6, size, header: start + 4 * u16::from(length) }
    });
    Head { checksum, segments, checked: false }
}
