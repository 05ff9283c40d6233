//! Memory for tests: stacks, pages to map, message buffers. It is taken from the program's zeroed
//! data, allocated in pieces, and freed as a whole after each test.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};
use x2::{Fpage, Rights};

/// Bytes for stacks.
const STACKS: usize = 4 << 20;
/// Bytes for pages.
const PAGES: usize = 8 << 20;

/// Memory that is aligned to 2 MiB, so that tests can have large pages of it.
#[repr(C, align(0x200000))]
struct Memory<const SIZE: usize>(UnsafeCell<[u8; SIZE]>, AtomicU64);

// SAFETY: no reference to the content is ever made; it is accessed through `Page`, and by the
// threads whose stacks it has.
unsafe impl<const SIZE: usize> Sync for Memory<SIZE> {}

static STACK_MEMORY: Memory<STACKS> = Memory::new();
static PAGE_MEMORY: Memory<PAGES> = Memory::new();

impl<const SIZE: usize> Memory<SIZE> {
    const fn new() -> Self {
        Self(UnsafeCell::new([0; SIZE]), AtomicU64::new(0))
    }

    fn base(&self) -> u64 {
        self.0.get() as u64
    }

    /// A block of 2^`size_log2` bytes, aligned to its size.
    fn block(&self, size_log2: u32) -> u64 {
        assert!((12..=21).contains(&size_log2), "blocks have 4 KiB to 2 MiB");
        let size = 1u64 << size_log2;
        let end = |used: u64| used.next_multiple_of(size) + size;
        let used = self
            .1
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                (end(used) <= SIZE as u64).then_some(end(used))
            })
            .expect("the arena has room");
        self.base() + end(used) - size
    }
}

/// Frees all memory.
pub(crate) fn reset() {
    STACK_MEMORY.1.store(0, Ordering::Relaxed);
    PAGE_MEMORY.1.store(0, Ordering::Relaxed);
}

/// Allocates a stack of 2^`size_log2` bytes. Returns its lowest address.
pub(crate) fn stack(size_log2: u32) -> u64 {
    STACK_MEMORY.block(size_log2)
}

/// Allocates a block of 2^`size_log2` bytes (4 KiB to 2 MiB), aligned to its size and cleared.
pub(crate) fn block(size_log2: u32) -> u64 {
    let address = PAGE_MEMORY.block(size_log2);
    for page in (address..address + (1 << size_log2)).step_by(4096) {
        Page { address: page }.clear();
    }
    address
}

/// The blocks of 2 MiB that contain pages and blocks.
pub(crate) fn large_blocks() -> impl Iterator<Item = u64> {
    (PAGE_MEMORY.base()..PAGE_MEMORY.base() + PAGES as u64).step_by(1 << 21)
}

/// Allocates a cleared page of 4 KiB.
pub(crate) fn page() -> Page {
    Page { address: block(12) }
}

/// Whether pages and blocks for tests lie at `address`.
pub(crate) fn contains_page(address: u64) -> bool {
    (PAGE_MEMORY.base()..PAGE_MEMORY.base() + PAGES as u64).contains(&address)
}

/// A page of the arena, which any thread can read and write word by word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// The address of the page.
    pub(crate) address: u64,
}

impl Page {
    /// The page as an fpage with `rights`.
    pub(crate) fn fpage(self, rights: Rights) -> Fpage {
        Fpage::memory(self.address, 12).with_rights(rights)
    }

    /// Reads word `index`, 0..=511.
    pub(crate) fn read(self, index: usize) -> u64 {
        // SAFETY: the word lies in the page, which belongs to the arena and has no Rust references.
        unsafe { self.word(index).read_volatile() }
    }

    /// Sets word `index`, 0..=511.
    pub(crate) fn write(self, index: usize, value: u64) {
        // SAFETY: the word lies in the page, which belongs to the arena and has no Rust references.
        unsafe { self.word(index).write_volatile(value) }
    }

    fn clear(self) {
        (0..512).for_each(|index| self.write(index, 0));
    }

    /// A word of the page. The page belongs to the arena, to which there are no Rust references,
    /// and is used as words only.
    fn word(self, index: usize) -> *mut u64 {
        assert!(index < 512, "a page has 512 words");
        (self.address as *mut u64).wrapping_add(index)
    }
}

/// Reads the word at an address that need not be mapped: the thread's pager decides what happens.
pub(crate) fn read_at(address: u64) -> u64 {
    let value;
    // SAFETY: the load is assembler code; no Rust object lies where tests read.
    unsafe {
        core::arch::asm!("mov {}, [{}]", out(reg) value, in(reg) address, options(nostack, readonly));
    }
    value
}

/// Writes the word at an address that need not be mapped.
pub(crate) fn write_at(address: u64, value: u64) {
    // SAFETY: the store is assembler code; no Rust object lies where tests write.
    unsafe {
        core::arch::asm!("mov [{}], {}", in(reg) address, in(reg) value, options(nostack));
    }
}
