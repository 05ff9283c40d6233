//! The physical memory that is the kernel's alone. sigma0 is given everything else, idempotently,
//! and never this.
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::boot_cell::BootCell;
use crate::memory::{PAGE_BITS, PAGE_SIZE, PhysAddr, PhysRange};

/// Image, kernel memory, local APIC, I/O APICs, HPET: with room for large machines.
const MAX: usize = 32;

static RANGES: BootCell<[PhysRange; MAX]> =
    BootCell::new([PhysRange::new(PhysAddr::new(0), PhysAddr::new(0)); MAX]);
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Adds a range, widened to whole pages.
///
/// # Safety
/// Boot only: nothing else runs, and no result of [`ranges`] is in use.
pub unsafe fn add(range: PhysRange) {
    let count = COUNT.load(Ordering::Relaxed);
    assert!(count < MAX, "too many devices of the kernel's own");
    let end = range.end.offset(PAGE_SIZE - 1).align_down(PAGE_BITS);
    // SAFETY: the caller promises that this runs at boot, on one processor.
    unsafe { RANGES.get_mut()[count] = PhysRange::new(range.start.align_down(PAGE_BITS), end) }
    COUNT.store(count + 1, Ordering::Relaxed);
}

/// The ranges, in whole pages, in no order. Constant once the first user program runs.
pub fn ranges() -> &'static [PhysRange] {
    &RANGES.get()[..COUNT.load(Ordering::Relaxed)]
}
