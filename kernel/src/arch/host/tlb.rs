//! A simulated TLB that never forgets by itself, so that every missing invalidation shows.
//!
//! It remembers translations per space, as with one PCID for each. An access that hits an entry
//! which the page tables contradict in a way that matters (another address, fewer rights, a status
//! bit that will not be set again) fails the test.
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::vec::Vec;

use x2::Rights;

use super::machine::phys_to_virt;
use crate::arch::page_entry::{PageEntry, ROOT_LEVEL, index, page_bits};
use crate::memory::{PhysAddr, VirtAddr};
use crate::space::Space;

/// A remembered page: its entry as last seen or written by the processor.
#[derive(Clone, Copy)]
struct Remembered {
    entry: PageEntry,
    level: u32,
}

/// Root table, level and page number.
type Key = (u64, u32, u64);

static PAGES: Mutex<Option<HashMap<Key, Remembered>>> = Mutex::new(None);
static ACTIVE: AtomicU64 = AtomicU64::new(0);

/// Makes the space with this root table the active one.
pub fn activate(root: PhysAddr) {
    ACTIVE.store(root.value(), Ordering::Relaxed);
}

/// Unloads the space from all processors.
pub fn unload(space: &'static Space) {
    super::unload(space);
}

/// A walk through page tables; in the model nothing else runs during the walk.
pub struct Walk(());

impl Walk {
    /// Begins a walk.
    pub fn begin() -> Self {
        Self(())
    }
}

/// The model has no caches.
pub fn flush_caches() {}

/// Invalidates one changed translation on all processors.
pub fn invalidate(root: PhysAddr, address: VirtAddr) {
    let mut flush = Flush::new();
    flush.page(root, address);
    flush.finish();
}

/// Changed translations, collected until [`Flush::finish`].
pub struct Flush {
    pages: Vec<(PhysAddr, VirtAddr)>,
}

impl Flush {
    /// Nothing changed.
    pub const fn new() -> Self {
        Self { pages: Vec::new() }
    }

    /// The page at `address` in the space with this root table was removed or reduced, or its
    /// status cleared, or a table above it removed.
    pub fn page(&mut self, root: PhysAddr, address: VirtAddr) {
        self.pages.push((root, address));
    }

    /// Makes the changes known: no access uses an old translation from now on.
    pub fn finish(&mut self) {
        let mut pages = PAGES.lock().expect("no test failed inside the model");
        for (root, address) in self.pages.drain(..) {
            for level in 1..ROOT_LEVEL {
                let key = (root.value(), level, address.value() >> page_bits(level));
                if let Some(pages) = pages.as_mut() {
                    pages.remove(&key);
                }
            }
        }
    }
}

impl Default for Flush {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        assert!(self.pages.is_empty() || std::thread::panicking(), "changes were not made known");
    }
}

/// Forgets everything: a new machine.
pub(super) fn reset() {
    *PAGES.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
}

/// Forgets what belongs to a root table that was freed, as a processor does that reuses a PCID.
pub(super) fn forget_root(root: PhysAddr) {
    let mut pages = PAGES.lock().expect("no test failed inside the model");
    if let Some(pages) = pages.as_mut() {
        pages.retain(|key, _| key.0 != root.value());
    }
}

/// A user of the space with this root table reads, writes or executes at `address`. Returns the
/// physical address, or `None` for a page fault. Panics if a translation is used that the kernel
/// should have invalidated.
pub(super) fn access(root: PhysAddr, address: VirtAddr, right: Rights) -> Option<PhysAddr> {
    let write = right.contains(Rights::WRITE);
    let (at, now, level) = walk(root, address);
    let mut pages = PAGES.lock().expect("no test failed inside the model");
    let pages = pages.get_or_insert_default();
    for old_level in 1..ROOT_LEVEL {
        let Some(old) = pages.get(&(root.value(), old_level, address.value() >> page_bits(old_level))) else {
            continue;
        };
        // A remembered entry without the right makes the processor walk again.
        if old.entry.rights().contains(right) && (!write || old.entry.status().contains(Rights::WRITE)) {
            let offset = address.value() & ((1 << page_bits(old_level)) - 1);
            let present = now.is_page(level);
            assert!(present, "stale: {address:?} is not mapped any more");
            let now_offset = address.value() & ((1 << page_bits(level)) - 1);
            assert_eq!(
                old.entry.address().value() + offset,
                now.address().value() + now_offset,
                "stale: {address:?} is elsewhere now"
            );
            assert!(now.rights().contains(right), "stale: {address:?} lost {right:?}");
            let touched = now.touched(write).status();
            assert!(now.status().contains(touched), "stale: the status of {address:?} will not be set");
        }
        debug_assert_eq!(old.level, old_level);
    }
    if !now.is_page(level) || !now.rights().contains(right) {
        return None;
    }
    let touched = now.touched(write);
    // SAFETY: `at` is the entry of a live table in the model's memory.
    unsafe { at.write(touched.raw()) };
    pages.insert(
        (root.value(), level, address.value() >> page_bits(level)),
        Remembered { entry: touched, level },
    );
    let offset = address.value() & ((1 << page_bits(level)) - 1);
    Some(PhysAddr::new(now.address().value() + offset))
}

/// Walks the page tables as the processor does. Returns the place, value and level of the entry
/// that maps `address`, or of the one on the way to it that is not present.
fn walk(root: PhysAddr, address: VirtAddr) -> (*mut u64, PageEntry, u32) {
    let mut table = root;
    let mut level = ROOT_LEVEL;
    loop {
        let at = phys_to_virt(table.offset(8 * index(address.value(), level) as u64)).cast::<u64>();
        // SAFETY: root tables and the tables that they point to lie in the model's memory.
        let entry = PageEntry::from_raw(unsafe { at.read() });
        if !entry.is_table(level) {
            return (at, entry, level);
        }
        table = entry.address();
        level -= 1;
    }
}
