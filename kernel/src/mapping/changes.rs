//! Changes to page tables that processors do not know of yet: collected, then made known together.
use core::mem;

use super::space::SpaceMemory;
use super::table::{Described, Table};
use crate::arch::{
    self,
    page_entry::PageEntry,
    tlb::{self, Flush},
};
use crate::memory::{PhysAddr, VirtAddr};

/// Translations to be invalidated.
///
/// Must be finished before the operation ends or yields, and before removed memory is given to
/// another user.
pub(super) trait Noted {
    /// The translation of `address` in `space` was removed or reduced.
    fn invalidate(&mut self, space: SpaceMemory, address: VirtAddr);

    /// Empties the entry for `address` in `space` and returns it as it was. `None`: that is more
    /// than these changes can be, and nothing is done.
    fn remove(&mut self, entry: &Described, space: SpaceMemory, address: VirtAddr) -> Option<PageEntry>;
}

/// Tables to be freed, a list. By value, so that a list of which one is in the hands of a function
/// can lie in registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Emptied {
    first: u32,
    count: u32,
}

impl Emptied {
    const NONE: Self = Self { first: 0, count: 0 };

    /// Returns the list with `table` added.
    pub(super) fn with(mut self, table: Table) -> Self {
        table.push(&mut self.first);
        self.count += 1;
        self
    }

    #[cold]
    fn free(mut self) {
        while let Some(table) = Table::pop(&mut self.first) {
            table.free(true);
        }
    }
}

/// Any number of changes, and tables to be freed when no processor can walk them any more.
pub(super) struct Changes {
    flush: Flush,
    /// The tables that are not reachable any more. They are freed when the changes are known: the
    /// invalidation of the entry whose removal emptied a table covers the pointers to it.
    pub(super) emptied: Emptied,
}

/// What changes with one page of memory in a table that stays.
#[must_use]
pub(super) struct ChangedPage {
    page: Option<(PhysAddr, VirtAddr)>,
}

impl Changes {
    pub(super) const fn new() -> Self {
        Self { flush: Flush::new(), emptied: Emptied::NONE }
    }

    /// How many tables wait to be freed.
    #[inline]
    pub(super) fn emptied_tables(&self) -> u32 {
        self.emptied.count
    }

    /// Invalidates all changed translations on all processors.
    #[inline]
    pub(super) fn finish(&mut self) {
        self.flush.finish();
        if self.emptied != Emptied::NONE {
            mem::replace(&mut self.emptied, Emptied::NONE).free();
        }
    }
}

impl Noted for Changes {
    #[inline]
    fn invalidate(&mut self, space: SpaceMemory, address: VirtAddr) {
        if space.is_ports() {
            // The whole bitmap is forgotten, immediately: ports change rarely.
            return arch::ports::forget(space.memory_of_ports().page_table_root());
        }
        self.flush.page(space.root().address(), address);
    }

    #[inline]
    fn remove(&mut self, entry: &Described, space: SpaceMemory, address: VirtAddr) -> Option<PageEntry> {
        Some(entry.remove(space, address, self))
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.finish();
    }
}

impl ChangedPage {
    #[inline(always)]
    pub(super) const fn new() -> Self {
        Self { page: None }
    }

    /// Makes the change, if it has come, known to all processors. (Not when dropped: so all this
    /// stays in registers.)
    #[inline(always)]
    pub(super) fn finish(self) {
        if let Some((root, address)) = self.page {
            tlb::invalidate(root, address);
        }
    }
}

impl Noted for ChangedPage {
    #[inline(always)]
    fn invalidate(&mut self, space: SpaceMemory, address: VirtAddr) {
        debug_assert!(self.page.is_none() && !space.is_ports());
        self.page = Some((space.root().address(), address));
    }

    #[inline(always)]
    fn remove(&mut self, entry: &Described, space: SpaceMemory, address: VirtAddr) -> Option<PageEntry> {
        if entry.table_stays(space) { Some(entry.take(space, address, self)) } else { None }
    }
}
