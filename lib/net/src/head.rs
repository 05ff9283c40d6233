//! The head of a frame: 12 bytes before the frame in its first buffer. They are the header of
//! virtio network devices (Virtual I/O Device Version 1.1, 5.1.6), which read and write them in
//! place; numbers are little-endian.

/// The size of a head in bytes.
pub const HEAD: usize = 12;

/// Bits of the flags: the checksum is to be computed, and the device has checked the checksum.
const NEEDS_CHECKSUM: u8 = 1;
const CHECKED: u8 = 2;
/// The types of segments.
const NO_SEGMENTS: u8 = 0;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
/// The bit of the type for segments with ECN's mark.
const ECN: u8 = 0x80;

/// Where a checksum of TCP or UDP is missing: the field has the sum of the pseudo-header only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// Where the bytes begin that the checksum covers, from the beginning of the frame.
    pub start: u16,
    /// Where the field is, from `start`.
    pub offset: u16,
}

/// How a device cuts a TCP segment that is longer than the MTU, or how it has joined one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Whether the packet is one of IPv6.
    pub v6: bool,
    /// How many bytes of data each packet has, except the last one.
    pub size: u16,
    /// How many bytes the headers of Ethernet, IP and TCP have.
    pub header: u16,
}

/// What the head of a frame says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The checksum that is missing.
    pub checksum: Option<Checksum>,
    /// How the frame is cut.
    pub segments: Option<Segments>,
    /// Of a received frame: whether the checksums of TCP and UDP in it were found right.
    pub checked: bool,
}

impl Head {
    /// The head as bytes.
    pub fn bytes(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        let mut set = |at: usize, value: u16| bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        if let Some(Segments { size, header, .. }) = self.segments {
            set(2, header);
            set(4, size);
        }
        if let Some(Checksum { start, offset }) = self.checksum {
            set(6, start);
            set(8, offset);
        }
        bytes[0] = if self.checksum.is_some() { NEEDS_CHECKSUM } else { 0 };
        bytes[1] = self.segments.map_or(NO_SEGMENTS, |segments| if segments.v6 { TCP_V6 } else { TCP_V4 });
        bytes
    }

    /// What these bytes of a received frame say, and in how many buffers the frame is, as the
    /// device says.
    pub fn read(bytes: &[u8; HEAD]) -> (Head, usize) {
        let number = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let (flags, kind) = (bytes[0], bytes[1] & !ECN);
        let checksum =
            (flags & NEEDS_CHECKSUM != 0).then(|| Checksum { start: number(6), offset: number(8) });
        let segments = matches!(kind, TCP_V4 | TCP_V6).then(|| Segments {
            v6: kind == TCP_V6,
            size: number(4),
            header: number(2),
        });
        // A frame without its checksum has never been where it could be damaged.
        let checked = flags & (CHECKED | NEEDS_CHECKSUM) != 0;
        (Head { checksum, segments, checked }, number(10).into())
    }
}
