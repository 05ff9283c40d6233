//! Boot memory: the pages between the image and 14 MiB, handed out once and never taken back. It
//! serves what must exist before the kernel's allocator: page tables, stacks, processor areas.
use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::x86_64::layout;
use crate::memory::{PAGE_SIZE, PhysAddr};

static NEXT: AtomicU64 = AtomicU64::new(0);
static END: AtomicU64 = AtomicU64::new(0);

/// Takes the boot memory into use. Called once, after the image's displacement is known.
pub(in crate::arch::x86_64) fn init() {
    NEXT.store(layout::image_to_phys(layout::boot_memory_start() as *const u8).value(), Ordering::Relaxed);
    END.store(layout::image_to_phys(layout::boot_memory_end() as *const u8).value(), Ordering::Relaxed);
}

/// The physical address of `pages` zeroed, contiguous pages. Their amount depends only on the
/// machine (memory size, processors), never on programs: running out is a reason not to boot.
pub(in crate::arch::x86_64) fn allocate(pages: u64) -> PhysAddr {
    let size = pages * PAGE_SIZE;
    let address = PhysAddr::new(NEXT.fetch_add(size, Ordering::Relaxed));
    assert!(
        address.value() + size <= END.load(Ordering::Relaxed),
        "boot memory is used up: is `maxmem=` needed?"
    );
    // SAFETY: the pages lie between the image and the end of boot memory, which nothing else uses,
    // and were handed out just now. Boot and final page tables both have them in the direct map.
    unsafe { layout::phys_to_virt(address).write_bytes(0, size as usize) }
    address
}

/// The physical range that has been handed out so far: from the start of boot memory up to the
/// returned address.
pub fn used_end() -> PhysAddr {
    PhysAddr::new(NEXT.load(Ordering::Relaxed))
}
