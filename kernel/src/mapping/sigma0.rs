//! sigma0's own use of memory: every address that is not the kernel's is mapped at itself, as it is
//! touched.
//!
//! These pages have no nodes: sigma0 cannot lose them, and what it maps to others is derived from
//! the roots of the trees.
use x2::Rights;

use super::space::SpaceMemory;
use super::{memory_type, table, tree};
use crate::arch;
use crate::arch::page_entry::{PageEntry, page_bits};
use crate::memory::{OutOfMemory, PhysAddr, VirtAddr};

/// Level of the pages that sigma0 gets where it can: 2 MiB.
const USUAL_LEVEL: u32 = 2;

/// Serves a page fault of sigma0. Returns whether there is memory for it at `address` now; if not,
/// the fault is an error of sigma0's.
pub(super) fn sigma0_fault(space: SpaceMemory, address: VirtAddr) -> Result<bool, OutOfMemory> {
    debug_assert!(space.is_sigma0());
    let page = x2::Region::containing(address.value(), page_bits(1));
    if address.value() >= arch::USER_END || space.area_in(page).is_some() {
        return Ok(false);
    }
    let present = table::find(space, address, 1);
    if present.entry.is_page(present.level) {
        return Ok(present.at.node().is_none());
    }
    for level in (1..=USUAL_LEVEL).rev() {
        let bits = page_bits(level);
        let start = address.align_down(bits);
        let block = x2::Region { base: start.value(), size_log2: bits };
        let physical = PhysAddr::new(start.value());
        // Smaller pages may be there already, next to an area.
        if present.level < level
            || space.area_in(block).is_some()
            || tree::reserved_in(physical, bits).is_some()
        {
            continue;
        }
        let Some(memory_type) = memory_type::of(physical, bits) else { continue };
        let at = match table::make(space, address, level) {
            Ok(at) => at,
            Err(error) => {
                table::trim(space, address, &mut super::changes::Changes::new());
                return Err(error);
            }
        };
        let _tree = tree::lock(physical);
        let _space = space.lock();
        let page = PageEntry::page(physical, level, Rights::ALL).with_memory_type(level, memory_type);
        at.install(page);
        return Ok(true);
    }
    Ok(false)
}
