//! Changes to page tables that processors do not know of yet: collected, made known at once.
use super::space::SpaceMemory;
use super::table::Table;
use crate::arch::{self, tlb::Flush};
use crate::memory::VirtAddr;

/// Translations to be invalidated, and tables to be freed when no processor can walk them any more.
///
/// Must be finished before the operation ends or yields, and before removed memory is given to somebody else.
pub(super) struct Changes {
    flush: Flush,
    /// Tables to be freed, a list.
    tables: u32,
}

impl Changes {
    pub(super) const fn new() -> Self {
        Self { flush: Flush::new(), tables: 0 }
    }

    /// The translation of `address` in `space` was removed or reduced.
    #[inline]
    pub(super) fn invalidate(&mut self, space: SpaceMemory, address: VirtAddr) {
        if space.is_ports() {
            // Whole, and at once: ports are few.
            return arch::ports::forget(space.memory_of_ports().page_table_root());
        }
        self.flush.page(space.root().address(), address);
    }

    /// `table` is not reachable any more; it is freed when the changes are known. The invalidation of the entry whose
    /// removal emptied it covers the pointers to it.
    pub(super) fn free_table(&mut self, table: Table) {
        table.push(&mut self.tables);
    }

    /// Makes all changes known to all processors.
    #[inline]
    pub(super) fn finish(&mut self) {
        self.flush.finish();
        if self.tables != 0 {
            self.free_tables();
        }
    }

    #[cold]
    fn free_tables(&mut self) {
        while let Some(table) = Table::pop(&mut self.tables) {
            table.free(true);
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.finish();
    }
}
