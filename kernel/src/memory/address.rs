//! Addresses as types: a physical address is never dereferenced, a virtual one is the user's until
//! it is checked.
use core::fmt;

/// log2 of the smallest page.
pub const PAGE_BITS: u32 = 12;
/// Size of the smallest page and of a frame, in bytes.
pub const PAGE_SIZE: u64 = 1 << PAGE_BITS;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(u64);

        impl $name {
            /// The address with this value.
            #[inline]
            pub const fn new(value: u64) -> Self {
                Self(value)
            }

            /// The address as a number.
            #[inline]
            pub const fn value(self) -> u64 {
                self.0
            }

            /// The address `bytes` further, modulo 2^64.
            #[inline]
            #[must_use]
            pub const fn offset(self, bytes: u64) -> Self {
                Self(self.0.wrapping_add(bytes))
            }

            /// The address rounded down to a multiple of 2^`bits` (0..=63).
            #[inline]
            #[must_use]
            pub const fn align_down(self, bits: u32) -> Self {
                Self(self.0 >> bits << bits)
            }

            /// Whether the address is a multiple of 2^`bits` (0..=63).
            #[inline]
            pub const fn is_aligned(self, bits: u32) -> bool {
                self.align_down(bits).0 == self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }

        impl fmt::LowerHex for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, formatter)
            }
        }
    };
}

address! {
    /// A physical address.
    PhysAddr
}
address! {
    /// A virtual address in some address space.
    VirtAddr
}

/// A range of physical memory; `end` is exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhysRange {
    /// First byte.
    pub start: PhysAddr,
    /// First byte after the range.
    pub end: PhysAddr,
}

impl PhysRange {
    /// The range `start..end`; empty if `end` is not above `start`.
    pub const fn new(start: PhysAddr, end: PhysAddr) -> Self {
        Self { start, end }
    }

    /// Length in bytes.
    pub const fn size(self) -> u64 {
        self.end.0.saturating_sub(self.start.0)
    }

    /// Whether `address` lies inside the range.
    pub const fn contains(self, address: PhysAddr) -> bool {
        self.start.0 <= address.0 && address.0 < self.end.0
    }

    /// Whether the two ranges have a byte in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.start.0 < other.end.0 && other.start.0 < self.end.0
    }
}
