//! Kernel stacks: each in a slot of its own in a region of its own, the lower half of the slot unmapped. Running over
//! the end of a stack is a page fault, then a double fault on a stack of its own, and never another stack's data.
use core::sync::atomic::{AtomicU64, Ordering};

use super::boot::memory;
use super::cpu_local::CpuLocal;
use super::layout::STACKS;
use super::paging::{self, Flags};
use crate::memory::PAGE_SIZE;

/// Bytes of a stack.
pub(super) const SIZE: u64 = 32 << 10;
/// Slots per processor: the kernel stack, then those of the interrupt stack table.
pub(super) const PER_PROCESSOR: u32 = 8;
const SLOT: u64 = 2 * SIZE;
/// Above the top of a stack: whose it is.
const HEADER: u64 = 16;

/// End of the last mapped slot; processors are numbered in the order in which their stacks are mapped.
static MAPPED_END: AtomicU64 = AtomicU64::new(STACKS);

/// Maps stack `index` of processor `number` and returns its top (16-byte aligned).
pub(super) fn map(number: u32, index: u32) -> u64 {
    assert!(index < PER_PROCESSOR);
    let slot = STACKS + (u64::from(number) * u64::from(PER_PROCESSOR) + u64::from(index)) * SLOT;
    let bottom = slot + SLOT - SIZE;
    let frames = memory::allocate(SIZE / PAGE_SIZE);
    paging::map_kernel(bottom, frames, SIZE, Flags::KERNEL_DATA);
    MAPPED_END.fetch_max(slot + SLOT, Ordering::Relaxed);
    slot + SLOT - HEADER
}

/// Notes whose stack it is whose top is `top`.
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

/// Does the word at `address` lie in a mapped kernel stack? For the backtrace, which must not fault.
pub(super) fn contains(address: u64) -> bool {
    let offset = address.wrapping_sub(STACKS);
    (STACKS..MAPPED_END.load(Ordering::Relaxed)).contains(&address)
        && offset / SLOT % u64::from(PER_PROCESSOR) <= super::gdt::INTERRUPT_STACKS as u64
        && offset % SLOT >= SLOT - SIZE
        && offset % SLOT <= SLOT - 8
}
