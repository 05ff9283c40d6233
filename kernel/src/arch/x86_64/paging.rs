//! The kernel's own page tables: built once at boot, write-xor-execute, global, in the largest
//! pages there are.
use bitflags::bitflags;
use core::sync::atomic::{AtomicU64, Ordering};

use super::boot::memory;
use super::features::{self, Features};
use super::instructions::{read_cr3, write_cr3};
use super::layout;
use crate::boot::{BootInformation, MemoryKind};
use crate::memory::{PAGE_BITS, PAGE_SIZE, PhysAddr, PhysRange};

/// Bits of an entry that hold a physical address.
pub const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

bitflags! {
    /// Page-table entry bits (every level, where the processor gives them a meaning there).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Flags: u64 {
        /// The entry is valid.
        const PRESENT = 1 << 0;
        /// Writable.
        const WRITE = 1 << 1;
        /// Accessible to user programs.
        const USER = 1 << 2;
        /// Write-through.
        const WRITE_THROUGH = 1 << 3;
        /// Uncached.
        const UNCACHED = 1 << 4;
        /// The accessed bit: the processor sets it when it uses the page.
        const ACCESSED = 1 << 5;
        /// The dirty bit: the processor sets it when it writes into the page.
        const DIRTY = 1 << 6;
        /// A page, not a table, at level 2 or 3.
        const LARGE = 1 << 7;
        /// Kept in the TLB across address spaces.
        const GLOBAL = 1 << 8;
        /// Not executable.
        const NO_EXECUTE = 1 << 63;

        /// Kernel code.
        const KERNEL_CODE = 0x121;
        /// Kernel constants.
        const KERNEL_CONSTANTS = 0x121 | 1 << 63;
        /// Kernel data.
        const KERNEL_DATA = 0x163 | 1 << 63;
        /// Device registers.
        const DEVICE = 0x17b | 1 << 63;
        /// The stub page: readable and executable by user programs.
        const USER_CODE = 0x125;
    }
}

/// The kernel's root table. Its user half stays empty.
static ROOT: AtomicU64 = AtomicU64::new(0);
/// Next free address in the device region.
static NEXT_DEVICE: AtomicU64 = AtomicU64::new(layout::DEVICES);
/// What entries may contain on this processor (no-execute and global need support).
static ALLOWED: AtomicU64 = AtomicU64::new(0);

/// Physical address of the kernel's own root table: what runs when no space does.
pub fn kernel_root() -> PhysAddr {
    PhysAddr::new(ROOT.load(Ordering::Relaxed))
}

/// The 256 root entries of the kernel half, which every space's root table gets a copy of.
pub fn kernel_half() -> &'static [u64; 256] {
    let root = layout::phys_to_virt(kernel_root()).cast::<u64>();
    // SAFETY: the root table is boot memory, never freed, and its kernel half is constant once
    // `init` returned.
    unsafe { &*root.add(256).cast() }
}

/// Whether the physical range is part of the direct map. User programs may hold mappings of device
/// memory, which is not; the kernel must ask before it reaches such a page through
/// [`layout::phys_to_virt`].
pub fn is_direct_mapped(range: PhysRange) -> bool {
    let mut address = range.start.align_down(PAGE_BITS).value();
    let end = range.end.value();
    if end > layout::DIRECT_MAP_SIZE {
        return false;
    }
    while address < end {
        match page_size_at(kernel_root(), layout::DIRECT_MAP + address) {
            Some(size) => address = (address & !(size - 1)) + size,
            None => return false,
        }
    }
    true
}

/// The virtual address of the table that an entry points to.
fn table(entry: u64) -> *mut u64 {
    layout::phys_to_virt(PhysAddr::new(entry & ADDRESS)).cast()
}

fn index(address: u64, level: u32) -> usize {
    (address >> (12 + 9 * level)) as usize & 511
}

/// The size of the page that maps a kernel address, if one does.
fn page_size_at(root: PhysAddr, address: u64) -> Option<u64> {
    let mut entry = root.value();
    for level in (0..4).rev() {
        // SAFETY: `entry` points to a table of the kernel's half, reachable through the direct map.
        entry = unsafe { table(entry).add(index(address, level)).read() };
        if entry & Flags::PRESENT.bits() == 0 {
            return None;
        }
        if level == 0 || entry & Flags::LARGE.bits() != 0 {
            return Some(PAGE_SIZE << (9 * level));
        }
    }
    None
}

/// Maps a physical range at a kernel address in the largest pages that alignment and processor
/// allow.
///
/// The range must be unmapped; both addresses and the size are multiples of [`PAGE_SIZE`]. Boot
/// only (takes tables from the boot memory).
fn map(root: PhysAddr, virtual_address: u64, physical: PhysAddr, size: u64, flags: Flags) {
    let flags = flags.bits() & ALLOWED.load(Ordering::Relaxed);
    let giant_pages = features::has(Features::GIANT_PAGES);
    let user = flags & Flags::USER.bits();
    let mut done = 0;
    while done < size {
        let (at, from) = (virtual_address + done, physical.value() + done);
        let fits = |page: u64| (at | from) & (page - 1) == 0 && size - done >= page;
        let level = match () {
            () if giant_pages && fits(PAGE_SIZE << 18) => 2,
            () if fits(PAGE_SIZE << 9) => 1,
            () => 0,
        };
        let mut here = root.value();
        for step in (level + 1..4).rev() {
            // SAFETY: `here` is a table made by this function, in the direct map; nothing else
            // changes it.
            unsafe {
                let entry = table(here).add(index(at, step));
                if entry.read() == 0 {
                    entry.write(memory::allocate(1).value() | 0x23 | user);
                }
                assert!(entry.read() & Flags::LARGE.bits() == 0, "kernel mappings overlap at {at:#x}");
                here = entry.read() & ADDRESS;
            }
        }
        let large = if level > 0 { Flags::LARGE.bits() } else { 0 };
        // SAFETY: as above.
        unsafe {
            let entry = table(here).add(index(at, level));
            assert!(entry.read() == 0, "kernel mappings overlap at {at:#x}");
            entry.write(from | flags | large);
        }
        done += PAGE_SIZE << (9 * level);
    }
}

/// Adds a mapping to the kernel's half. Boot only; see [`map`] for what the arguments must be.
pub(super) fn map_kernel(virtual_address: u64, physical: PhysAddr, size: u64, flags: Flags) {
    map(kernel_root(), virtual_address, physical, size, flags);
}

/// Maps device registers uncached and returns where. Boot only. The mapping is for ever.
pub fn map_device(physical: PhysAddr, size: u64) -> *mut u8 {
    let offset = physical.value() & (PAGE_SIZE - 1);
    let size = (offset + size).next_multiple_of(PAGE_SIZE);
    let address = NEXT_DEVICE.fetch_add(size + PAGE_SIZE, Ordering::Relaxed);
    map_kernel(address, physical.align_down(PAGE_BITS), size, Flags::DEVICE);
    (address + offset) as *mut u8
}

/// Builds the final tables and makes them current: from here on nothing is mapped one to one,
/// nothing is writable and executable, and the direct map reaches all memory.
///
/// # Safety
/// Called once, by the boot processor, on the boot page tables.
pub(super) unsafe fn init(boot: &BootInformation) {
    let mut allowed = !0;
    if !features::has(Features::NO_EXECUTE) {
        allowed &= !Flags::NO_EXECUTE.bits();
    }
    if !features::has(Features::GLOBAL_PAGES) {
        allowed &= !Flags::GLOBAL.bits();
    }
    ALLOWED.store(allowed, Ordering::Relaxed);
    let root = memory::allocate(1);
    ROOT.store(root.value(), Ordering::Relaxed);

    let physical = |address: u64| layout::image_to_phys(address as *const u8);
    for (from, to, flags) in [
        (layout::image_start(), layout::text_end(), Flags::KERNEL_CODE),
        (layout::text_end(), layout::rodata_end(), Flags::KERNEL_CONSTANTS),
        (layout::rodata_end(), layout::boot_memory_end(), Flags::KERNEL_DATA),
    ] {
        map(root, from, physical(from), to - from, flags);
    }
    if layout::stub_page() < layout::text_end() {
        map(root, layout::STUB_PAGE, physical(layout::stub_page()), PAGE_SIZE, Flags::USER_CODE);
    }
    map_memory(root, boot, physical(layout::image_start()).value(), physical(layout::rodata_end()).value());
    // The slots that are filled later get their second-level tables now: root entries never change
    // (layout).
    for slot in [layout::STACKS, layout::DEVICES, layout::STUB_PAGE] {
        // SAFETY: the table was allocated above and is in the direct map.
        unsafe {
            let entry = table(root.value()).add(index(slot, 3));
            if entry.read() == 0 {
                entry.write(memory::allocate(1).value() | 0x23);
            }
        }
    }
    // SAFETY: the new tables map the running code and the boot stack at the addresses in use.
    unsafe { write_cr3(root.value()) }
    debug_assert_eq!(read_cr3(), root.value());
}

/// The direct map: every range of RAM and firmware tables, and the first megabyte (for the
/// firmware's structures there). The image's code and constants (`read_only`) are not writable here
/// either.
fn map_memory(root: PhysAddr, boot: &BootInformation, read_only_start: u64, read_only_end: u64) {
    let mut start = 0;
    let mut end = 1 << 20;
    let flush = |from: u64, to: u64| {
        let part = |from: u64, to: u64, flags| {
            if from < to {
                map(root, layout::DIRECT_MAP + from, PhysAddr::new(from), to - from, flags);
            }
        };
        part(from, to.min(read_only_start), Flags::KERNEL_DATA);
        part(from.max(read_only_start), to.min(read_only_end), Flags::KERNEL_CONSTANTS);
        part(from.max(read_only_end), to, Flags::KERNEL_DATA);
    };
    // The map is sorted. Ranges are rounded outwards to pages, so that a table at an odd address
    // can be read.
    for range in boot.memory() {
        if range.kind == MemoryKind::Reserved || range.kind == MemoryKind::Bad {
            continue;
        }
        let from = range.start & !(PAGE_SIZE - 1);
        let to = range.end.next_multiple_of(PAGE_SIZE).min(layout::DIRECT_MAP_SIZE);
        if from > end {
            flush(start, end);
            (start, end) = (from, to);
        } else {
            end = end.max(to);
        }
    }
    flush(start, end);
}
