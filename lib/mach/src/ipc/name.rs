//! Names of rights.

use core::fmt;

/// A name by which a task knows rights: 32 bits in every interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u32);

impl Name {
    /// No right.
    pub const NULL: Self = Self(0);
    /// The right of a port that has died.
    pub const DEAD: Self = Self(u32::MAX);

    /// Whether the name can denote a right.
    pub fn is_valid(self) -> bool {
        self != Self::NULL && self != Self::DEAD
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#x}", self.0)
    }
}

/// How a system chooses the names of rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// The lowest free number, from 1.
    Lowest,
    /// An index, from 1, above eight bits that differ when the index is used again: a name that was
    /// given up does not soon denote another right. The bits begin with 3 and go up by 4.
    Generation,
}

impl NameRule {
    /// The index in the table and the generation of a name.
    pub(super) fn split(self, name: Name) -> (usize, u8) {
        match self {
            Self::Lowest => (name.0 as usize, 0),
            Self::Generation => ((name.0 >> 8) as usize, name.0 as u8),
        }
    }

    /// The name of an index in its generation.
    pub(super) fn join(self, index: usize, generation: u8) -> Name {
        match self {
            Self::Lowest => Name(index as u32),
            Self::Generation => Name((index as u32) << 8 | u32::from(generation)),
        }
    }

    /// The generation of an index that is used for the first time.
    pub(super) fn first(self) -> u8 {
        match self {
            Self::Lowest => 0,
            Self::Generation => 3,
        }
    }

    /// The generation after this one.
    pub(super) fn next(self, generation: u8) -> u8 {
        match self {
            Self::Lowest => 0,
            Self::Generation => generation.wrapping_add(4) | 3,
        }
    }

    /// The first index that has no name.
    pub(super) fn end(self) -> usize {
        match self {
            Self::Lowest => u32::MAX as usize,
            // The last index would share its names with the dead name.
            Self::Generation => (1 << 24) - 1,
        }
    }

    /// The names that share an index.
    pub(super) fn names_of(self, index: usize) -> core::ops::RangeInclusive<Name> {
        match self {
            Self::Lowest => Name(index as u32)..=Name(index as u32),
            Self::Generation => Name((index as u32) << 8)..=Name((index as u32) << 8 | 0xff),
        }
    }
}
