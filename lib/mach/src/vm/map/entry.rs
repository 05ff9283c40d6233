//! One entry of a map: a range of addresses that is mapped in one way.

use alloc::sync::Arc;

use super::super::object::VmObject;
use crate::machine::{Machine, PAGE_SHIFT, Protection};

/// What a child task gets of a range (Mach's `vm_inherit_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Inheritance {
    /// The child shares the memory.
    Share = 0,
    /// The child gets a copy.
    Copy = 1,
    /// The child gets nothing: the range is free there.
    None = 2,
}

/// How a range will be used (Mach's `vm_behavior_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Behavior {
    /// Accesses have no particular order.
    #[default]
    Default,
    /// The pages are used in random order, so they are asked for one by one.
    Random,
    /// Accesses go from lower to higher addresses: pages are read ahead.
    Sequential,
    /// All pages will be used soon: they are read ahead as with [`Sequential`](Self::Sequential),
    /// and large pages are used where alignment, size and memory allow them.
    LargePages,
}

/// A mapped range. The entry tree has its bounds.
pub(super) struct Entry<M: Machine> {
    /// The mapped object; `None` for zeros that were not accessed yet.
    pub(super) object: Option<Arc<VmObject<M>>>,
    /// The offset in the object, in bytes, of the start of the range.
    pub(super) offset: u64,
    pub(super) protection: Protection,
    pub(super) max_protection: Protection,
    pub(super) inheritance: Inheritance,
    pub(super) behavior: Behavior,
    /// The object is shared with a copy: before it is written through this entry, a shadow is put
    /// over it.
    pub(super) needs_copy: bool,
    /// The memory is shared: other maps see what is written through this entry.
    pub(super) shared: bool,
    /// How often the range is wired.
    pub(super) wired: u16,
}

impl<M: Machine> Clone for Entry<M> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), ..*self }
    }
}

impl<M: Machine> Entry<M> {
    /// The number of the object's page at `distance` bytes from the start of the range.
    pub(super) fn index(&self, distance: u64) -> u64 {
        (self.offset + distance) >> PAGE_SHIFT
    }

    /// The entry for the rest of the range, which begins `distance` bytes after its start.
    pub(super) fn split(&self, distance: u64) -> Self {
        let mut upper = self.clone();
        if upper.object.is_some() {
            upper.offset += distance;
        }
        upper
    }

    /// Whether this entry, which is `length` bytes long, and the entry that begins where it ends
    /// could be one.
    pub(super) fn continues_in(&self, length: u64, next: &Self) -> bool {
        let same_object = match (&self.object, &next.object) {
            (None, None) => true,
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs) && self.offset + length == next.offset,
            _ => false,
        };
        same_object && self.is_mapped_as(next)
    }

    /// Whether two entries are equal except for their objects, so that they may be joined.
    pub(super) fn is_mapped_as(&self, next: &Self) -> bool {
        self.protection == next.protection
            && self.max_protection == next.max_protection
            && self.inheritance == next.inheritance
            && self.behavior == next.behavior
            && self.needs_copy == next.needs_copy
            && self.shared == next.shared
            && self.wired == 0
            && next.wired == 0
    }
}
