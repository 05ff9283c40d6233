//! User translations that the processor remembers: switching spaces, and forgetting what changed.
//!
//! One processor, no PCIDs: only the active space's translations are remembered, and switching forgets them. What
//! several processors and PCIDs need goes behind this same interface.
use core::arch::asm;
use core::mem::MaybeUninit;

use super::instructions::{read_cr3, write_cr3};
use super::ports;
use crate::memory::{PhysAddr, VirtAddr};

/// From how many pages on it is cheaper to forget everything.
const MOST_PAGES: usize = 16;

/// Makes the space with this root table the active one.
#[inline]
pub fn activate(root: PhysAddr) {
    if read_cr3() != root.value() {
        // SAFETY: a space's root table maps the kernel's half like every other.
        unsafe { write_cr3(root.value()) };
        ports::activate(root);
    }
}

/// Writes back and empties the executing processor's caches, and those that it shares.
pub fn flush_caches() {
    // SAFETY: no more than time is lost.
    unsafe { asm!("wbinvd", options(nostack, preserves_flags)) };
}

/// Changed translations, collected until [`Flush::finish`].
pub struct Flush {
    /// The first `count` are initialised.
    pages: [MaybeUninit<VirtAddr>; MOST_PAGES],
    count: usize,
}

impl Flush {
    /// Nothing changed.
    #[inline]
    pub const fn new() -> Self {
        Self { pages: [const { MaybeUninit::uninit() }; MOST_PAGES], count: 0 }
    }

    /// The page at `address` in the space with this root table was removed or reduced, or its status cleared, or a
    /// table above it removed.
    #[inline]
    pub fn page(&mut self, root: PhysAddr, address: VirtAddr) {
        if read_cr3() == root.value() {
            if let Some(place) = self.pages.get_mut(self.count) {
                place.write(address);
            }
            self.count += 1;
        }
    }

    /// Makes the changes known: no access uses an old translation from now on.
    #[inline]
    pub fn finish(&mut self) {
        if let Some(pages) = self.pages.get(..self.count) {
            for page in pages {
                // SAFETY: the first `count` pages were written; forgetting a translation is always allowed.
                unsafe {
                    let page = page.assume_init().value();
                    asm!("invlpg [{}]", in(reg) page, options(nostack, preserves_flags));
                }
            }
        } else {
            // SAFETY: the same root again.
            unsafe { write_cr3(read_cr3()) };
        }
        self.count = 0;
    }
}

impl Default for Flush {
    fn default() -> Self {
        Self::new()
    }
}
