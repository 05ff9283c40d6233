//! Fpages: power-of-two regions of memory or of IO ports, with rights (ABI 9, X.2 rules 7.32, 8.1,
//! 8.9).

use crate::bits;

/// Access rights, and access status: read 4, write 2, execute 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Rights(u8);

impl Rights {
    /// No right.
    pub const NONE: Self = Self(0);
    /// Execute.
    pub const EXECUTE: Self = Self(1);
    /// Write.
    pub const WRITE: Self = Self(2);
    /// Read.
    pub const READ: Self = Self(4);
    /// Read and write.
    pub const READ_WRITE: Self = Self(6);
    /// Read and execute.
    pub const READ_EXECUTE: Self = Self(5);
    /// Read, write and execute: everything that an fpage can carry.
    pub const ALL: Self = Self(7);

    /// The rights in the low three bits of `word`.
    pub const fn from_bits(word: u64) -> Self {
        Self((word & 7) as u8)
    }

    /// The rights as the low three bits of a word.
    pub const fn bits(self) -> u64 {
        self.0 as u64
    }

    /// Rights in both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Rights in either.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Rights of `self` that are not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether every right of `other` is in `self`.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there is no right.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl core::fmt::Debug for Rights {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (right, letter) in [(Self::READ, "r"), (Self::WRITE, "w"), (Self::EXECUTE, "x")] {
            f.write_str(if self.contains(right) { letter } else { "-" })?;
        }
        Ok(())
    }
}

/// The part of the address space that a usable memory fpage denotes: `size_log2` is 12..=63, or 64
/// for the complete address space; `base` is a multiple of the size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// First address.
    pub base: u64,
    /// Binary logarithm of the size in bytes.
    pub size_log2: u32,
}

impl Region {
    /// The complete address space.
    pub const COMPLETE: Self = Self { base: 0, size_log2: 64 };

    /// The region of size 2^`size_log2` that contains `address`.
    pub const fn containing(address: u64, size_log2: u32) -> Self {
        Self { base: address & !low_mask(size_log2), size_log2 }
    }

    /// Last address.
    pub const fn last(self) -> u64 {
        self.base | low_mask(self.size_log2)
    }

    /// Whether `address` lies in the region.
    pub const fn contains(self, address: u64) -> bool {
        address >= self.base && address <= self.last()
    }

    /// Whether the whole of `other` lies in the region.
    pub const fn contains_region(self, other: Self) -> bool {
        other.base >= self.base && other.last() <= self.last()
    }

    /// Whether the two regions have an address in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.base <= other.last() && other.base <= self.last()
    }
}

/// 2^`size_log2` - 1, for exponents up to 64.
const fn low_mask(size_log2: u32) -> u64 {
    if size_log2 >= 64 { u64::MAX } else { (1 << size_log2) - 1 }
}

/// The ports that a usable IO fpage denotes: `size_log2` is 0..=16, `first` a multiple of the size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PortRange {
    /// First port.
    pub first: u16,
    /// Binary logarithm of the number of ports.
    pub size_log2: u32,
}

impl PortRange {
    /// All 65536 ports.
    pub const COMPLETE: Self = Self { first: 0, size_log2: 16 };

    /// Last port.
    pub const fn last(self) -> u16 {
        self.first | low_mask(self.size_log2) as u16
    }

    /// Whether `port` is in the range.
    pub const fn contains(self, port: u16) -> bool {
        port >= self.first && port <= self.last()
    }

    /// The ports in both ranges (X.2 rule 7.41): the smaller one if it lies in the larger, else
    /// none.
    pub const fn intersection(self, other: Self) -> Option<Self> {
        let (small, large) = if self.size_log2 <= other.size_log2 { (self, other) } else { (other, self) };
        if large.contains(small.first) { Some(small) } else { None }
    }
}

/// What an fpage word means.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FpageKind {
    /// The empty fpage (s = 0).
    Nil,
    /// Memory (s = 1, the complete address space, or s >= 12).
    Memory(Region),
    /// IO ports (s = 2).
    Io(PortRange),
    /// A size that no page has (2 < s < 12, or an IO fpage of more than 2^16 ports): no effect
    /// anywhere.
    Unusable,
}

/// An fpage word. Memory: bits 0..=2 rights, bit 3 zero ("extended", sigma0 only), 4..=9 s = log2
/// of the size, 10..=63 base / 1024. IO: bits 0..=3 rights, 4..=9 = 2, 10..=15 log2 of the number
/// of ports, 16..=31 first port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Fpage(u64);

impl Fpage {
    /// Nilpage.
    pub const NIL: Self = Self(0);
    /// The complete address space, without rights.
    pub const COMPLETE: Self = Self(0x10);
    /// All IO ports, with the rights bits that a map item of ports carries.
    pub const COMPLETE_IO: Self = Self(16 << 10 | 2 << 4);
    /// Binary logarithm of the smallest page and of the smallest usable memory fpage.
    pub const MIN_SIZE_LOG2: u32 = 12;

    /// The fpage with this raw value.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The raw word.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The memory fpage of 2^`size_log2` bytes that contains `address`, without rights; `size_log2`
    /// is 12..=63, or 64 for the complete address space. Nilpage for other sizes.
    pub const fn memory(address: u64, size_log2: u32) -> Self {
        match size_log2 {
            64 => Self::COMPLETE,
            Self::MIN_SIZE_LOG2..=63 => Self(address & !low_mask(size_log2) | (size_log2 as u64) << 4),
            _ => Self::NIL,
        }
    }

    /// The memory fpage that denotes `region`, with `rights`.
    pub const fn from_region(region: Region, rights: Rights) -> Self {
        Self::memory(region.base, region.size_log2).with_rights(rights)
    }

    /// The fpage of 2^`size_log2` IO ports that contains `port`; `size_log2` is 0..=16, else
    /// nilpage.
    pub const fn io(port: u16, size_log2: u32) -> Self {
        if size_log2 > 16 {
            return Self::NIL;
        }
        let first = port & !(low_mask(size_log2) as u16);
        Self((first as u64) << 16 | (size_log2 as u64) << 10 | 2 << 4)
    }

    /// What the fpage denotes.
    pub const fn kind(self) -> FpageKind {
        match self.size_field() {
            0 => FpageKind::Nil,
            1 => FpageKind::Memory(Region::COMPLETE),
            2 => match bits(self.0, 10, 15) as u32 {
                size_log2 @ 0..=16 => FpageKind::Io(PortRange {
                    first: bits(self.0, 16, 31) as u16 & !(low_mask(size_log2) as u16),
                    size_log2,
                }),
                _ => FpageKind::Unusable,
            },
            size_log2 @ Self::MIN_SIZE_LOG2.. => {
                FpageKind::Memory(Region::containing(self.0 & !0x3ff, size_log2))
            }
            _ => FpageKind::Unusable,
        }
    }

    /// The memory that the fpage denotes, if it denotes memory.
    pub const fn region(self) -> Option<Region> {
        match self.kind() {
            FpageKind::Memory(region) => Some(region),
            _ => None,
        }
    }

    /// The IO ports that the fpage denotes, if it denotes ports.
    pub const fn ports(self) -> Option<PortRange> {
        match self.kind() {
            FpageKind::Io(ports) => Some(ports),
            _ => None,
        }
    }

    /// The raw size field s, bits 4..=9.
    pub const fn size_field(self) -> u32 {
        bits(self.0, 4, 9) as u32
    }

    /// Whether the fpage is a nilpage: every word with s = 0 acts as one (X.2 rule 8.1).
    pub const fn is_nil(self) -> bool {
        self.size_field() == 0
    }

    /// Whether the fpage is an IO fpage (s = 2).
    pub const fn is_io(self) -> bool {
        self.size_field() == 2
    }

    /// Rights, or after Unmap the access status: bits 0..=2.
    pub const fn rights(self) -> Rights {
        Rights::from_bits(self.0)
    }

    /// This fpage with other rights.
    pub const fn with_rights(self, rights: Rights) -> Self {
        Self(self.0 & !7 | rights.bits())
    }
}

impl core::fmt::Debug for Fpage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.kind() {
            FpageKind::Nil => f.write_str("nilpage"),
            FpageKind::Memory(Region { base, size_log2 }) => {
                write!(f, "{base:#x}/2^{size_log2}:{:?}", self.rights())
            }
            FpageKind::Io(PortRange { first, size_log2 }) => write!(f, "port {first:#x}/2^{size_log2}"),
            FpageKind::Unusable => write!(f, "unusable:{:#x}", self.0),
        }
    }
}

/// Where a map or grant item takes effect: `source` in the sender's space appears at `target` in
/// the receiver's; both have the same size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The part of the send fpage that is mapped.
    pub source: Region,
    /// The part of the receive window that it is mapped to.
    pub target: Region,
}

impl Placement {
    /// X.2 rule 7.32: which part of `send` goes to which part of `window`, with `send_base`
    /// deciding when the sizes differ.
    pub const fn of(send: Region, send_base: u64, window: Region) -> Self {
        let (s, r) = (send.size_log2, window.size_log2);
        let send_base = send_base & !0x3ff;
        if s <= r {
            let offset = send_base & low_mask(r) & !low_mask(s);
            Self { source: send, target: Region { base: window.base + offset, size_log2: s } }
        } else {
            let offset = send_base & low_mask(s) & !low_mask(r);
            Self { source: Region { base: send.base + offset, size_log2: r }, target: window }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(base: u64, size_log2: u32) -> Region {
        Fpage::memory(base, size_log2).region().unwrap()
    }

    /// (send, send base, window) -> (source, target), the examples of X.2 rule 7.33.
    /// Rules: 7.33.
    #[test]
    fn placement_examples() {
        const COMPLETE: (u64, u32) = (0, 64);
        let examples = [
            ((0x4000_0000, 12), 0x7fff_3000, COMPLETE, 0x4000_0000, 0x7fff_3000),
            ((0x4000_0000, 12), 0x5000, (0x10_0000, 16), 0x4000_0000, 0x10_5000),
            ((0x4000_0000, 12), 0x2_5000, (0x10_0000, 16), 0x4000_0000, 0x10_5000),
            ((0x20_0000, 21), 0x345_6000, (0x70_0000, 12), 0x25_6000, 0x70_0000),
            ((0x30_0000, 16), 0x123_4000, (0x90_0000, 16), 0x30_0000, 0x90_0000),
            (COMPLETE, 0x1234_5000, (0x80_0000, 12), 0x1234_5000, 0x80_0000),
            ((0x20_0000, 13), 0x5000, (0x40_0000, 16), 0x20_0000, 0x40_4000),
            (COMPLETE, 0x5000, COMPLETE, 0, 0),
        ];
        for (send, send_base, window, source, target) in examples {
            let placed = Placement::of(region(send.0, send.1), send_base, region(window.0, window.1));
            assert_eq!((placed.source.base, placed.target.base), (source, target), "{send:x?} {window:x?}");
            assert_eq!(placed.source.size_log2, send.1.min(window.1));
            assert_eq!(placed.target.size_log2, send.1.min(window.1));
        }
    }

    /// Rules: 8.1, ABI 9.2.
    #[test]
    fn size_field_decides_the_kind() {
        assert_eq!(Fpage::from_raw(0xffff_0007).kind(), FpageKind::Nil);
        assert_eq!(Fpage::from_raw(0x17).kind(), FpageKind::Memory(Region::COMPLETE));
        for s in 3..12 {
            assert_eq!(Fpage::from_raw(0x1000 | s << 4).kind(), FpageKind::Unusable);
        }
        for s in 12..64 {
            let fpage = Fpage::from_raw(!0x3f0 | s << 4);
            let region = fpage.region().unwrap();
            assert_eq!(region.size_log2 as u64, s);
            assert_eq!(region.base & low_mask(region.size_log2), 0);
            assert_eq!(region.last(), u64::MAX);
            assert_eq!(Fpage::from_region(region, Rights::ALL).region(), Some(region));
        }
        assert_eq!(Fpage::from_raw(17 << 10 | 2 << 4).kind(), FpageKind::Unusable);
        assert_eq!(Fpage::COMPLETE_IO.ports(), Some(PortRange::COMPLETE));
    }

    /// Rules: 8.1.
    #[test]
    fn base_bits_below_the_size_are_ignored() {
        assert_eq!(
            Fpage::memory(0x1234_5678, 16).region(),
            Some(Region { base: 0x1234_0000, size_log2: 16 })
        );
        assert_eq!(Fpage::from_raw(0x1234_5400 | 16 << 4).region().unwrap().base, 0x1234_0000);
        let ports = Fpage::from_raw(0x3fa << 16 | 3 << 10 | 2 << 4).ports().unwrap();
        assert_eq!((ports.first, ports.last()), (0x3f8, 0x3ff));
    }

    /// Rules: 8.1.
    #[test]
    fn rights_are_the_low_bits() {
        let fpage = Fpage::memory(0x1000, 12).with_rights(Rights::READ_WRITE);
        assert_eq!(fpage.raw(), 0x10c6);
        assert_eq!(fpage.rights(), Rights::READ.or(Rights::WRITE));
        assert_eq!(fpage.with_rights(Rights::EXECUTE).raw(), 0x10c1);
        assert_eq!(format!("{fpage:?}"), "0x1000/2^12:rw-");
        assert_eq!(Rights::ALL.without(Rights::WRITE), Rights::READ_EXECUTE);
    }

    #[test]
    fn regions_at_the_end_of_the_address_space_do_not_wrap() {
        let top = Region::containing(u64::MAX, 12);
        assert_eq!(top.last(), u64::MAX);
        assert!(Region::COMPLETE.contains_region(top) && !top.contains_region(Region::COMPLETE));
        assert!(top.overlaps(Region::COMPLETE) && Region::COMPLETE.overlaps(top));
        assert!(!top.overlaps(Region::containing(0, 12)));
    }

    /// Rules: 7.41.
    #[test]
    fn port_ranges_intersect_to_the_smaller() {
        let serial = Fpage::io(0x3f8, 3).ports().unwrap();
        assert_eq!(serial.intersection(PortRange::COMPLETE), Some(serial));
        assert_eq!(PortRange::COMPLETE.intersection(serial), Some(serial));
        assert_eq!(serial.intersection(Fpage::io(0x2f8, 3).ports().unwrap()), None);
        assert_eq!(Fpage::io(0x3f8, 17), Fpage::NIL);
    }
}
