//! The names that a task has for rights, and the rules by which a system chooses them.

use core::fmt;

/// A task's name for rights: a number of 32 bits in every interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u32);

impl Name {
    /// The null name, which denotes no right.
    pub const NULL: Self = Self(0);
    /// The name that a message has instead of a right to a dead port.
    pub const DEAD: Self = Self(u32::MAX);

    /// Whether the number can be the name of a right: it is neither the null name nor the dead
    /// name.
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
    /// The name is the lowest free number, from 1.
    Lowest,
    /// The name is an index, from 1, above a generation of eight bits that changes when the index
    /// is used again, so that a name that was given up does not soon denote another right. An index
    /// has the generation 3 first, and then 4 more each time.
    Generation,
}

impl NameRule {
    /// Splits a name into its index in the table and its generation.
    pub(super) fn split(self, name: Name) -> (usize, u8) {
        match self {
            Self::Lowest => (name.0 as usize, 0),
            Self::Generation => ((name.0 >> 8) as usize, name.0 as u8),
        }
    }

    /// Makes a name of an index and a generation.
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

    /// The generation that follows `generation` when an index is used again.
    pub(super) fn next(self, generation: u8) -> u8 {
        match self {
            Self::Lowest => 0,
            Self::Generation => generation.wrapping_add(4) | 3,
        }
    }

    /// The end of the range of valid indices.
    pub(super) fn end(self) -> usize {
        match self {
            Self::Lowest => u32::MAX as usize,
            // With the last index and the generation 0xff, a name would be the dead name.
            Self::Generation => (1 << 24) - 1,
        }
    }

    /// All names that an index can have, in all generations.
    pub(super) fn names_of(self, index: usize) -> core::ops::RangeInclusive<Name> {
        match self {
            Self::Lowest => Name(index as u32)..=Name(index as u32),
            Self::Generation => Name((index as u32) << 8)..=Name((index as u32) << 8 | 0xff),
        }
    }
}
