//! Changes to page tables that processors do not know of yet: collected, made known at once.
use core::mem;

use super::space::SpaceMemory;
use super::table::Table;
use crate::arch::{
    self,
    tlb::{self, Flush},
};
use crate::memory::{PhysAddr, VirtAddr};

/// Translations to be invalidated, and tables to be freed when no processor can walk them any more.
///
/// Must be finished before the operation ends or yields, and before removed memory is given to somebody else.
pub(super) trait Noted {
    /// The translation of `address` in `space` was removed or reduced.
    fn invalidate(&mut self, space: SpaceMemory, address: VirtAddr);

    /// The tables that are not reachable any more. They are freed when the changes are known: the invalidation of the entry
    /// whose removal emptied a table covers the pointers to it.
    fn emptied(&mut self) -> &mut Emptied;
}

/// Tables to be freed, a list. By value, so that a list of which one is in the hands of a function can lie in a register.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Emptied(u32);

impl Emptied {
    const NONE: Self = Self(0);

    /// The list with `table` in it.
    pub(super) fn with(mut self, table: Table) -> Self {
        table.push(&mut self.0);
        self
    }

    #[cold]
    fn free(mut self) {
        while let Some(table) = Table::pop(&mut self.0) {
            table.free(true);
        }
    }
}

/// Any number of changes.
pub(super) struct Changes {
    flush: Flush,
    emptied: Emptied,
}

/// What changes with one page of memory.
#[must_use]
pub(super) struct ChangedPage {
    page: Option<(PhysAddr, VirtAddr)>,
    emptied: Emptied,
}

impl Changes {
    pub(super) const fn new() -> Self {
        Self { flush: Flush::new(), emptied: Emptied::NONE }
    }

    /// Makes all changes known to all processors.
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
            // Whole, and at once: ports are few.
            return arch::ports::forget(space.memory_of_ports().page_table_root());
        }
        self.flush.page(space.root().address(), address);
    }

    #[inline]
    fn emptied(&mut self) -> &mut Emptied {
        &mut self.emptied
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
        Self { page: None, emptied: Emptied::NONE }
    }

    /// Makes the change, if it has come, known to all processors. (Not when dropped: so all this stays in registers.)
    #[inline(always)]
    pub(super) fn finish(self) {
        if let Some((root, address)) = self.page {
            tlb::invalidate(root, address);
        }
        if self.emptied != Emptied::NONE {
            self.emptied.free();
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
    fn emptied(&mut self) -> &mut Emptied {
        &mut self.emptied
    }
}
