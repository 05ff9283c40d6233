//! The virtual address space: what lies where, and how physical memory is reached.
//!
//! | PML4 slot | from                 | what |
//! |-----------|----------------------|------|
//! | 0..255    | 0                    | user (the last page below 2^47 is never mappable) |
//! | 256..383  | 0xffff800000000000   | direct map of physical memory: never executable, the image's code read-only |
//! | 508       | 0xfffffe0000000000   | kernel stacks between guard pages |
//! | 509       | 0xfffffe8000000000   | device registers, uncached |
//! | 510       | 0xffffff0000000000   | the system-call stub page, the only kernel-half page that users can access |
//! | 511       | 0xffffffff80000000   | kernel image, at its link address |
//!
//! The page-map level-4 entries of the kernel half are made at boot and copied into every space
//! ([`super::paging::kernel_half`]); they never change afterwards.
use core::sync::atomic::{AtomicU64, Ordering};

use crate::memory::PhysAddr;

/// First address that is not the user's. The page below the canonical boundary is left out, so that
/// an instruction cannot end there (SYSRET with a non-canonical RCX).
pub const USER_END: u64 = (1 << 47) - 4096;
/// Virtual address of physical address 0 in the direct map.
pub const DIRECT_MAP: u64 = 0xffff_8000_0000_0000;
/// How much physical memory the direct map can reach; more is ignored, with a warning.
pub const DIRECT_MAP_SIZE: u64 = 64 << 40;
/// Kernel stacks.
pub const STACKS: u64 = 0xffff_fe00_0000_0000;
/// Device registers.
pub const DEVICES: u64 = 0xffff_fe80_0000_0000;
/// The page of system-call stubs, readable and executable by every user program, at the same
/// address in every space (K9). Its content is the image's section `.stubs`.
pub const STUB_PAGE: u64 = 0xffff_ff00_0000_0000;
/// Virtual minus physical link address of the image.
pub const IMAGE: u64 = 0xffff_ffff_8000_0000;

/// How far from its link address the image was loaded (Multiboot 2 may do that).
static DISPLACEMENT: AtomicU64 = AtomicU64::new(0);

pub(super) fn set_displacement(displacement: u64) {
    DISPLACEMENT.store(displacement, Ordering::Relaxed);
}

/// How far from its link address the image was loaded: a multiple of 2 MiB below 4 GiB.
pub(super) fn displacement() -> u64 {
    DISPLACEMENT.load(Ordering::Relaxed)
}

/// Where physical memory is reached. Valid only for memory of the boot memory map
/// ([`super::paging::is_direct_mapped`]); device registers are mapped by
/// [`super::paging::map_device`].
#[inline]
pub fn phys_to_virt(physical: PhysAddr) -> *mut u8 {
    DIRECT_MAP.wrapping_add(physical.value()) as *mut u8
}

/// The inverse of [`phys_to_virt`].
#[inline]
pub fn virt_to_phys<T>(pointer: *const T) -> PhysAddr {
    PhysAddr::new((pointer as u64).wrapping_sub(DIRECT_MAP))
}

/// The physical address of something in the kernel image (a static, a linker symbol).
#[inline]
pub fn image_to_phys<T>(item: *const T) -> PhysAddr {
    PhysAddr::new((item as u64).wrapping_sub(IMAGE).wrapping_add(DISPLACEMENT.load(Ordering::Relaxed)))
}

macro_rules! linker_symbols {
    ($($(#[$doc:meta])* $name:ident = $symbol:ident;)*) => {
        $( $(#[$doc])* pub fn $name() -> u64 {
            unsafe extern "C" { static $symbol: u8; }
            (&raw const $symbol) as u64
        } )*
    };
}

// Virtual addresses that the linker script defines.
linker_symbols! {
    /// First byte of the image: code.
    image_start = image_start;
    /// The stub page's content.
    stub_page = stub_page;
    /// End of code, beginning of constants.
    text_end = text_end;
    /// End of constants, beginning of writable data.
    rodata_end = rodata_end;
    /// End of the image's data and zeroed data, beginning of the boot memory.
    boot_memory_start = boot_memory_start;
    /// End of the boot memory.
    boot_memory_end = boot_memory_end;
}
