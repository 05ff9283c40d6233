//! What a client of a network interface can leave to the device, as the words of `net_attach`.

/// Work that the client can leave to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// Received frames may come without their checksum of TCP or UDP, if they come from this
    /// machine's host and were never on a wire.
    pub receive_checksum: bool,
    /// The device computes the checksum of TCP or UDP in frames to send.
    pub send_checksum: bool,
    /// The device cuts TCP segments over IPv4 that are longer than the MTU.
    pub send_segments_v4: bool,
    /// The device cuts TCP segments over IPv6 that are longer than the MTU.
    pub send_segments_v6: bool,
    /// Received TCP segments may be longer than the MTU.
    pub receive_segments: bool,
}

impl Offload {
    /// What the device does, as a word of a message.
    pub fn word(self) -> u64 {
        let Offload { receive_checksum, send_checksum, send_segments_v4, send_segments_v6, receive_segments } =
            self;
        let all = [receive_checksum, send_checksum, send_segments_v4, send_segments_v6, receive_segments];
        all.iter().rev().fold(0, |word, &bit| word << 1 | u64::from(bit))
    }

    /// What a word of a message says. Unknown bits mean nothing.
    pub fn from_word(word: u64) -> Offload {
        let bit = |number: u32| word >> number & 1 != 0;
        Offload {
            receive_checksum: bit(0),
            send_checksum: bit(1),
            send_segments_v4: bit(2),
            send_segments_v6: bit(3),
            receive_segments: bit(4),
        }
    }
}
