//! User translations that processors remember: switching spaces, and forgetting what changed, here
//! and elsewhere.
//!
//! Without PCIDs only the active space's translations are remembered, and switching forgets them.
//! Support for PCIDs would keep this interface.
use core::arch::asm;
use core::mem::MaybeUninit;

use super::cpu_local::walks_of;
use super::instructions::{call_seldom, read_cr3, write_cr3};
use super::{cpu_count, cpu_local, ports, shoot_down};
use crate::memory::{PhysAddr, VirtAddr};
use crate::space::Space;
use crate::sync::delay::{self, Point};
use crate::sync::{SEVERAL, Walks};

/// From this number of pages on it is cheaper to forget all translations than one by one.
pub(super) const MOST_PAGES: usize = 16;

/// Makes the space with this root table the active one.
#[inline]
pub fn activate(root: PhysAddr) {
    if read_cr3() != root.value() {
        // SAFETY: a space's root table maps the kernel's half like every other.
        unsafe { write_cr3(root.value()) };
        ports::activate(root);
    }
}

/// Makes sure that no processor uses the page tables of `space`, which has no thread any more.
pub fn unload(space: &'static Space) {
    unload_here(space.memory.page_table_root());
    shoot_down::unload(space.memory.page_table_root());
}

/// The executing processor stops using the page table with this root, if it uses it.
pub(super) fn unload_here(root: PhysAddr) {
    if read_cr3() == root.value() {
        unload_any();
    }
}

/// The executing processor uses no space's page tables any more: shoot-downs need not reach it.
pub fn unload_any() {
    let this = &cpu_local().processor;
    let load = || {
        super::load_kernel_space();
        this.loaded_space.set(None);
    };
    if SEVERAL { this.public.active_root.unload(load) } else { load() }
}

/// Writes back and empties the processors' caches.
pub fn flush_caches() {
    flush_caches_here();
    shoot_down::flush_caches();
}

pub(super) fn flush_caches_here() {
    // SAFETY: the instruction costs time and changes no memory contents.
    unsafe { asm!("wbinvd", options(nostack, preserves_flags)) };
}

/// A page of the space with this root table.
pub(super) type Page = (PhysAddr, VirtAddr);

/// Forgets these pages, as far as they are the active space's; `None`: all pages.
#[inline]
pub(super) fn forget(pages: Option<impl Iterator<Item = Page>>) {
    let active = read_cr3();
    match pages {
        Some(pages) => {
            for (_, page) in pages.filter(|(root, _)| root.value() == active) {
                // SAFETY: forgetting a translation is always allowed.
                unsafe { asm!("invlpg [{}]", in(reg) page.value(), options(nostack, preserves_flags)) };
            }
        }
        // SAFETY: this loads the root table that is loaded already.
        None => unsafe { write_cr3(active) },
    }
}

/// Makes a change of one page known immediately, as [`Flush::page`] and [`Flush::finish`] do
/// together.
#[inline(always)]
pub fn invalidate(root: PhysAddr, address: VirtAddr) {
    if cpu_count() > 1 {
        return call_seldom(invalidate_everywhere, root.value(), address.value());
    }
    if read_cr3() == root.value() {
        // SAFETY: forgetting a translation is always allowed.
        unsafe { asm!("invlpg [{}]", in(reg) address.value(), options(nostack, preserves_flags)) };
    }
}

#[cold]
extern "C" fn invalidate_everywhere(root: u64, address: u64) {
    let mut flush = Flush::new();
    flush.page(PhysAddr::new(root), VirtAddr::new(address));
    flush.finish();
}

/// Changed translations, collected until [`Flush::finish`].
pub struct Flush {
    /// Changed pages, of which the first `count` are initialised.
    pages: [MaybeUninit<Page>; MOST_PAGES],
    count: usize,
}

impl Flush {
    /// Nothing changed.
    #[inline]
    pub const fn new() -> Self {
        Self { pages: [const { MaybeUninit::uninit() }; MOST_PAGES], count: 0 }
    }

    /// The page at `address` in the space with this root table was removed or reduced, or its
    /// status cleared, or a table above it removed.
    #[inline]
    pub fn page(&mut self, root: PhysAddr, address: VirtAddr) {
        if read_cr3() == root.value() || cpu_count() > 1 {
            if let Some(place) = self.pages.get_mut(self.count) {
                place.write((root, address));
            }
            self.count += 1;
        }
    }

    /// Makes the changes known: no access uses an old translation from now on.
    #[inline]
    pub fn finish(&mut self) {
        if self.count == 0 {
            return;
        }
        // SAFETY: the first `count` pages were written.
        let pages = self.pages.get(..self.count).map(|pages| unsafe { pages.assume_init_ref() });
        forget(pages.map(|pages| pages.iter().copied()));
        if cpu_count() > 1 {
            shoot_down::forget(pages);
            wait_for_walks();
        }
        self.count = 0;
    }
}

impl Default for Flush {
    fn default() -> Self {
        Self::new()
    }
}

/// A walk through page tables in software, and the use of the memory found, without the lock on
/// mappings. While it lasts, memory that it may have found is given to no other user. It is short,
/// and never waits.
pub struct Walk(());

impl Walk {
    /// Begins a walk through page tables. Walks are not nested.
    #[inline]
    pub fn begin() -> Self {
        if cpu_count() > 1 {
            cpu_local().walks.begin();
            delay::at(Point::Walk);
        }
        Self(())
    }
}

impl Drop for Walk {
    #[inline]
    fn drop(&mut self) {
        if cpu_count() > 1 {
            cpu_local().walks.end();
        }
    }
}

/// Waits until no processor is in a walk that began before now.
fn wait_for_walks() {
    let others = (0..cpu_count()).filter(|&number| number != cpu_local().number);
    Walks::await_ends(others.map(walks_of));
}
