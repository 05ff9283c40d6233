//! Kernel stacks: each in a slot of its own in a region of its own, the lower half of the slot
//! unmapped. Running over the end of a stack is a page fault, then a double fault on a stack of its
//! own, and never another stack's data.
use core::mem::{align_of, size_of};
use core::sync::atomic::{AtomicU64, Ordering};

use super::cpu_local::CpuLocal;
use super::layout::STACKS;
use super::paging::{self, Flags};
use crate::memory::{PAGE_SIZE, PhysAddr};

/// Size of a kernel stack in bytes.
pub(super) const SIZE: u64 = 32 << 10;
/// Slots per processor: the kernel stack, those of the interrupt stack table, that for faults, and
/// as the last its data.
pub(super) const PER_PROCESSOR: u32 = 8;
pub(super) const SLOT: u64 = 2 * SIZE;
/// Above the top of a stack: the processor-local data of its processor.
const HEADER: u64 = 16;

/// End of the last mapped stack's slot; processors' stacks are mapped in the order of their
/// numbers.
static MAPPED_END: AtomicU64 = AtomicU64::new(STACKS);

fn slot(number: u32, index: u32) -> u64 {
    assert!(index < PER_PROCESSOR);
    STACKS + (u64::from(number) * u64::from(PER_PROCESSOR) + u64::from(index)) * SLOT
}

/// Maps stack `index` of processor `number`, page by page, and returns its top (16-byte aligned).
pub(super) fn map(number: u32, index: u32, mut page: impl FnMut() -> PhysAddr) -> u64 {
    let slot = slot(number, index);
    for at in (slot + SLOT - SIZE..slot + SLOT).step_by(PAGE_SIZE as usize) {
        paging::map_kernel(at, page(), PAGE_SIZE, Flags::KERNEL_DATA);
    }
    MAPPED_END.fetch_max(slot + SLOT, Ordering::Relaxed);
    slot + SLOT - HEADER
}

/// Maps memory for processor `number`'s one `T`, zeroed, in its last slot, which is no stack.
pub(super) fn map_area<T>(number: u32, mut page: impl FnMut() -> PhysAddr) -> *mut T {
    const { assert!(size_of::<T>() as u64 <= SLOT && align_of::<T>() <= PAGE_SIZE as usize) };
    let slot = slot(number, PER_PROCESSOR - 1);
    for at in (slot..slot + size_of::<T>() as u64).step_by(PAGE_SIZE as usize) {
        paging::map_kernel(at, page(), PAGE_SIZE, Flags::KERNEL_DATA);
    }
    area(number)
}

/// The virtual address at which [`map_area`] maps the memory of a processor.
pub(super) fn area<T>(number: u32) -> *mut T {
    slot(number, PER_PROCESSOR - 1) as *mut T
}

/// Notes that the stack with this top belongs to the processor with this local data.
pub(super) fn set_owner(top: u64, owner: *const CpuLocal) {
    // SAFETY: the header above the top is mapped and used for nothing else.
    unsafe { (top as *mut *const CpuLocal).write(owner) }
}

/// The processor on whose stack `address` lies, as noted: for code that cannot trust GS.
pub(super) fn owner(address: u64) -> Option<*const CpuLocal> {
    let top = (address | (SLOT - 1)) + 1 - HEADER;
    // SAFETY: the header of a mapped stack is mapped.
    contains(address)
        .then(|| unsafe { (top as *const *const CpuLocal).read() })
        .filter(|owner| !owner.is_null())
}

/// Does the word at `address` lie in a mapped kernel stack? For the backtrace, which must not
/// fault.
pub(super) fn contains(address: u64) -> bool {
    let offset = address.wrapping_sub(STACKS);
    (STACKS..MAPPED_END.load(Ordering::Relaxed)).contains(&address)
        && offset / SLOT % u64::from(PER_PROCESSOR) <= super::gdt::INTERRUPT_STACKS as u64
        && offset % SLOT >= SLOT - SIZE
        && offset % SLOT <= SLOT - 8
}
