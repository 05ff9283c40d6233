//! Entries of x86-64 page tables, as the kernel writes them for user spaces.
//!
//! Tables have four levels: level 1 entries map 4 KiB, level 2 2 MiB, level 3 1 GiB, or point to a
//! table of the level below; level 4 entries only point. A non-present entry is zero (K14).
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use x2::Rights;

use crate::memory::PhysAddr;

/// How many entries a page table has.
pub const ENTRIES: usize = 512;
/// The level of a space's root table.
pub const ROOT_LEVEL: u32 = 4;

const PRESENT: u64 = 1 << 0;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const LARGE: u64 = 1 << 7;
/// The memory type's three bits; the third is elsewhere in small pages and large ones.
const TYPE_LOW: u64 = 3 << 3;
const TYPE_HIGH_SMALL: u64 = 1 << 7;
const TYPE_HIGH_LARGE: u64 = 1 << 12;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// Level of page tables whose entries map the largest pages in use.
static LARGEST_LEVEL: AtomicU32 = AtomicU32::new(3);
/// The bit that forbids execution, or 0 on a processor without it.
static FORBID_EXECUTE: AtomicU64 = AtomicU64::new(NO_EXECUTE);

/// Tells what the processor can do, before the first user page is mapped: whether it has pages of 1
/// GiB, and whether it can forbid execution.
pub fn configure(giant_pages: bool, no_execute: bool) {
    LARGEST_LEVEL.store(if giant_pages { 3 } else { 2 }, Ordering::Relaxed);
    FORBID_EXECUTE.store(if no_execute { NO_EXECUTE } else { 0 }, Ordering::Relaxed);
}

/// The level of the largest pages that can be mapped: 3 (1 GiB), or 2 on processors that lack them.
#[inline]
pub fn largest_level() -> u32 {
    LARGEST_LEVEL.load(Ordering::Relaxed)
}

/// The least rights, including `rights` (some), that the processor can give: it cannot forbid
/// reading, and not every one execution.
#[inline]
pub fn effective(rights: Rights) -> Rights {
    PageEntry(PRESENT | PageEntry::rights_bits(rights)).rights()
}

/// log2 of what one entry of a table of `level` maps.
#[inline]
pub const fn page_bits(level: u32) -> u32 {
    3 + 9 * level
}

/// The index of `address` in a table of `level`.
#[inline]
pub const fn index(address: u64, level: u32) -> usize {
    (address >> page_bits(level)) as usize & (ENTRIES - 1)
}

/// How memory is cached: an index into the processor's page-attribute table, which
/// [`MemoryType::TABLE`] fills.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryType(u8);

impl MemoryType {
    /// Write-back, as far as the machine's own ranges allow: device registers are not cached.
    pub const USUAL: Self = Self(0);
    /// Write-through.
    pub const WRITE_THROUGH: Self = Self(1);
    /// Not cached.
    pub const UNCACHEABLE: Self = Self(3);
    /// Not cached; writes are combined.
    pub const WRITE_COMBINING: Self = Self(4);
    /// Reads are cached, writes are not.
    pub const WRITE_PROTECTED: Self = Self(5);

    /// The page-attribute table: the first half as after reset, then write-combining,
    /// write-protected, and the rest again.
    pub const TABLE: u64 = 0x0007_0501_0007_0406;

    const fn bits(self, level: u32) -> u64 {
        let high = if level == 1 { TYPE_HIGH_SMALL } else { TYPE_HIGH_LARGE };
        (self.0 as u64 & 3) << 3 | if self.0 & 4 != 0 { high } else { 0 }
    }
}

/// One page-table entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct PageEntry(u64);

impl PageEntry {
    /// Nothing mapped.
    pub const EMPTY: Self = Self(0);

    /// The entry with this value.
    #[inline]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The entry's value.
    #[inline]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// A page of `level` at `address`, accessible to users with `rights`; readable in any case.
    #[inline]
    pub fn page(address: PhysAddr, level: u32, rights: Rights) -> Self {
        let size = if level > 1 { LARGE } else { 0 };
        Self(address.value() | PRESENT | USER | size | Self::rights_bits(rights))
    }

    /// A pointer to a table of the level below.
    #[inline]
    pub const fn table(address: PhysAddr) -> Self {
        Self(address.value() | PRESENT | USER | WRITABLE | ACCESSED)
    }

    #[inline]
    fn rights_bits(rights: Rights) -> u64 {
        let write = if rights.contains(Rights::WRITE) { WRITABLE } else { 0 };
        let execute =
            if rights.contains(Rights::EXECUTE) { 0 } else { FORBID_EXECUTE.load(Ordering::Relaxed) };
        write | execute
    }

    /// Whether the entry maps or points to anything.
    #[inline]
    pub const fn is_present(self) -> bool {
        self.0 & PRESENT != 0
    }

    /// Whether the entry of a table of `level` maps a page.
    #[inline]
    pub const fn is_page(self, level: u32) -> bool {
        self.is_present() && (level == 1 || self.0 & LARGE != 0)
    }

    /// Whether the entry of a table of `level` points to a table.
    #[inline]
    pub const fn is_table(self, level: u32) -> bool {
        self.is_present() && level > 1 && self.0 & LARGE == 0
    }

    /// Whether the entry of a table above the lowest points to a table.
    #[inline]
    pub const fn points_to_table(self) -> bool {
        self.0 & (PRESENT | LARGE) == PRESENT
    }

    /// The physical address of the page or table to which the entry points.
    #[inline]
    pub const fn address(self) -> PhysAddr {
        PhysAddr::new(self.0 & ADDRESS)
    }

    /// The small page at `address` within this page of `level`, in other hands with the rights that
    /// `wanted` comes to there; without status. `None`: that is none, or the page is cached in a
    /// way that is written differently in small pages.
    #[inline(always)]
    pub fn derived(self, address: u64, level: u32, wanted: Rights) -> Option<Self> {
        let rights = wanted.and(self.rights());
        if rights.is_none() || level > 1 && self.0 & TYPE_HIGH_LARGE != 0 {
            return None;
        }
        let within = ((1 << page_bits(level)) - 1) & ADDRESS;
        let page = self.0 & ADDRESS & !within | address & within;
        let high = if level == 1 { TYPE_HIGH_SMALL } else { 0 };
        Some(Self(page | self.0 & (TYPE_LOW | high) | PRESENT | USER | Self::rights_bits(rights)))
    }

    /// What a page's users may do: more than was asked for where the processor cannot forbid it.
    #[inline]
    pub const fn rights(self) -> Rights {
        let write = if self.0 & WRITABLE != 0 { Rights::WRITE } else { Rights::NONE };
        let execute = if self.0 & NO_EXECUTE == 0 { Rights::EXECUTE } else { Rights::NONE };
        Rights::READ.or(write).or(execute)
    }

    /// The entry with other access rights; its status bits stay.
    #[inline]
    #[must_use]
    pub fn with_rights(self, rights: Rights) -> Self {
        Self(self.0 & !(WRITABLE | NO_EXECUTE) | Self::rights_bits(rights))
    }

    /// The memory type with which a page of `level` is mapped.
    #[inline]
    pub const fn memory_type(self, level: u32) -> MemoryType {
        let high = if level == 1 { TYPE_HIGH_SMALL } else { TYPE_HIGH_LARGE };
        MemoryType((self.0 >> 3 & 3) as u8 | if self.0 & high != 0 { 4 } else { 0 })
    }

    /// The entry of a page of `level` with another memory type.
    #[inline]
    #[must_use]
    pub const fn with_memory_type(self, level: u32, memory_type: MemoryType) -> Self {
        Self(self.0 & !TYPE_LOW & !MemoryType(4).bits(level) | memory_type.bits(level))
    }

    /// What was done to the page since its status was last cleared: read, written.
    #[inline]
    pub const fn status(self) -> Rights {
        let read = if self.0 & ACCESSED != 0 { Rights::READ } else { Rights::NONE };
        let write = if self.0 & DIRTY != 0 { Rights::WRITE } else { Rights::NONE };
        read.or(write)
    }

    /// The entry with its status bits (accessed, dirty) cleared.
    #[inline]
    #[must_use]
    pub const fn without_status(self) -> Self {
        Self(self.0 & !(ACCESSED | DIRTY))
    }

    /// What the processor does to the entry when a user reads, and writes if `write`.
    #[inline]
    #[must_use]
    pub const fn touched(self, write: bool) -> Self {
        Self(self.0 | ACCESSED | if write { DIRTY } else { 0 })
    }

    /// The `part`-th page of `level` - 1 of this page of `level`.
    #[inline]
    #[must_use]
    pub const fn part(self, part: usize, level: u32) -> Self {
        let size = if level > 2 { LARGE } else { 0 };
        let memory_type = self.memory_type(level).bits(level - 1);
        let rest = self.0 & !LARGE & !TYPE_LOW & !TYPE_HIGH_LARGE;
        Self((rest | size | memory_type) + ((part as u64) << page_bits(level - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Machine;

    /// The features that matter are properties of the machine.
    fn machine() -> Machine {
        Machine::new(1 << 20)
    }

    #[test]
    fn pages_keep_address_rights_and_status() {
        let _machine = machine();
        for level in 1..=3 {
            for bits in 4..8 {
                let rights = Rights::from_bits(bits);
                let address = PhysAddr::new(0x7f << page_bits(level));
                let page = PageEntry::page(address, level, rights);
                assert!(page.is_page(level) && !page.is_table(level));
                assert_eq!((page.address(), page.rights()), (address, rights));
                assert!(page.status().is_none());
                let written = page.touched(true);
                assert_eq!(written.status(), Rights::READ_WRITE);
                assert_eq!(page.touched(false).status(), Rights::READ);
                assert_eq!(written.with_rights(Rights::READ).status(), Rights::READ_WRITE);
                assert_eq!(written.without_status(), page);
            }
        }
    }

    #[test]
    fn rights_that_the_processor_cannot_express_include_read() {
        let _machine = machine();
        let page = PageEntry::page(PhysAddr::new(0x1000), 1, Rights::WRITE);
        assert_eq!(page.rights(), Rights::READ_WRITE);
        assert_eq!(PageEntry::EMPTY.raw(), 0);
        assert!(!PageEntry::EMPTY.is_present());
    }

    #[test]
    fn effective_rights_are_what_a_page_has() {
        let _machine = machine();
        for bits in 1..8 {
            let rights = Rights::from_bits(bits);
            assert_eq!(effective(rights), PageEntry::page(PhysAddr::new(0x1000), 1, rights).rights());
            assert!(effective(rights).contains(rights));
        }
    }

    #[test]
    fn memory_types_survive_everything_but_their_change() {
        let _machine = machine();
        let types = [
            MemoryType::USUAL,
            MemoryType::WRITE_THROUGH,
            MemoryType::UNCACHEABLE,
            MemoryType::WRITE_COMBINING,
            MemoryType::WRITE_PROTECTED,
        ];
        for (number, memory_type) in types.into_iter().enumerate() {
            // Write-back 6, write-through 4, uncacheable 0, write-combining 1, write-protected 5.
            let kind = MemoryType::TABLE >> (8 * memory_type.0) & 0xff;
            assert_eq!(kind, [6, 4, 0, 1, 5][number]);
            for level in 1..=3 {
                let address = PhysAddr::new(0x7f << page_bits(level));
                let page = PageEntry::page(address, level, Rights::ALL);
                let typed = page.with_memory_type(level, memory_type);
                assert_eq!(typed.memory_type(level), memory_type);
                assert!(typed.is_page(level) && typed.rights() == page.rights() && typed.status().is_none());
                assert_eq!(typed.address().align_down(page_bits(level)), address);
                assert_eq!(typed.with_rights(Rights::READ).memory_type(level), memory_type);
                assert_eq!(typed.with_memory_type(level, MemoryType::USUAL), page);
                if level > 1 {
                    let part = typed.part(511, level);
                    assert!(part.is_page(level - 1));
                    assert_eq!(part.memory_type(level - 1), memory_type);
                    assert_eq!(part.with_memory_type(level - 1, MemoryType::USUAL), page.part(511, level));
                }
            }
        }
    }

    #[test]
    fn small_pages_derived_from_any_page() {
        let _machine = machine();
        for (level, bits) in (1..=3).flat_map(|level| (0..8).map(move |bits| (level, bits))) {
            let (held, wanted) = (Rights::from_bits(4 | bits), Rights::from_bits(bits));
            for memory_type in [MemoryType::USUAL, MemoryType::UNCACHEABLE, MemoryType::WRITE_COMBINING] {
                let address = PhysAddr::new(0x7f << page_bits(level));
                let page = PageEntry::page(address, level, held).with_memory_type(level, memory_type);
                let offset = 0x12_3456_7000 & ((1 << page_bits(level)) - 1);
                let derived = page.touched(true).derived(0xff << 40 | offset, level, wanted);
                if wanted.is_none() || level > 1 && memory_type == MemoryType::WRITE_COMBINING {
                    assert_eq!(derived, None);
                    continue;
                }
                let expected = PageEntry::page(address.offset(offset), 1, wanted);
                assert_eq!(derived, Some(expected.with_memory_type(1, memory_type)));
            }
        }
        let page = PageEntry::page(PhysAddr::new(0x1000), 1, Rights::READ);
        assert_eq!(page.derived(0, 1, Rights::WRITE), None);
        assert_eq!(page.derived(0, 1, Rights::READ_WRITE), Some(page));
    }

    #[test]
    fn parts_of_large_pages() {
        let _machine = machine();
        let large = PageEntry::page(PhysAddr::new(0x4000_0000), 3, Rights::READ_WRITE).touched(true);
        let middle = large.part(3, 3);
        assert!(middle.is_page(2));
        assert_eq!(middle.address(), PhysAddr::new(0x4060_0000));
        let small = middle.part(511, 2);
        assert_eq!(small, PageEntry::page(PhysAddr::new(0x407f_f000), 1, Rights::READ_WRITE).touched(true));
        let table = PageEntry::table(PhysAddr::new(0x5000));
        assert!(table.is_table(2) && table.is_table(4) && !table.is_page(2));
        assert_eq!(table.address(), PhysAddr::new(0x5000));
    }
}
