//! Pages for the programs, from this server's zeroed data. All pages are freed when a program ends.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

const PAGES: usize = 1024;
/// Bytes in a page.
pub(crate) const PAGE: usize = 4096;

#[repr(C, align(4096))]
struct Arena(UnsafeCell<[[u8; PAGE]; PAGES]>);

// SAFETY: `allocate` gives out each page once, and pages are accessed only through `Page`: by this
// server's only thread, and by the programs that they are mapped to.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(UnsafeCell::new([[0; PAGE]; PAGES]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// A page that belongs to a program.
#[derive(Clone, Copy)]
pub(crate) struct Page(usize);

/// Allocates a zeroed page; `None` if all are in use.
pub(crate) fn allocate() -> Option<Page> {
    let index = USED.fetch_add(1, Ordering::Relaxed);
    if index >= PAGES {
        return None;
    }
    let page = Page(index);
    page.write(0, &[0; PAGE]);
    Some(page)
}

/// Frees all pages. No program may have them mapped any more.
pub(crate) fn free_all() {
    USED.store(0, Ordering::Relaxed);
}

impl Page {
    /// The address of the page in this server's space.
    pub(crate) fn address(self) -> u64 {
        ARENA.0.get() as u64 + (self.0 * PAGE) as u64
    }

    /// Copies `bytes` to `offset`.
    pub(crate) fn write(self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= PAGE, "within the page");
        for (index, &byte) in bytes.iter().enumerate() {
            // SAFETY: the byte lies within the arena. The access is volatile, because a program may
            // use the page at the same time.
            unsafe { ((self.address() as *mut u8).add(offset + index)).write_volatile(byte) }
        }
    }

    /// The byte at `offset`.
    pub(crate) fn byte(self, offset: usize) -> u8 {
        assert!(offset < PAGE, "within the page");
        // SAFETY: the byte lies within the arena. The access is volatile, because a program may use
        // the page at the same time.
        unsafe { (self.address() as *const u8).add(offset).read_volatile() }
    }
}
