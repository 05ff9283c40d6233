//! Walks through page tables in software, without the lock on mappings: code that changes the
//! tables waits for the walks that may have found what was there. Model-checked with loom.
#[cfg(not(loom))]
use core::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, Ordering, fence},
};
#[cfg(loom)]
use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, Ordering, fence},
};

/// How many walks a processor has begun and ended: odd within one. They are not nested.
pub struct Walks(AtomicU32);

impl Walks {
    /// The counter of a processor that has made no walk.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// The counter of a processor that has made no walk.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Notes that the processor begins a walk.
    #[inline]
    pub fn begin(&self) {
        // SeqCst, and the fence: before the first look at a page table.
        self.0.fetch_add(1, Ordering::SeqCst);
        crate::arch::fence_after_exchange();
    }

    /// Ends the walk, and with it the use of what was found.
    #[inline]
    pub fn end(&self) {
        // Release: the walk's last use of the tables comes before.
        self.0.fetch_add(1, Ordering::Release);
    }

    /// Waits until all of these processors have ended the walks that they had begun before now.
    pub fn await_ends<'a>(processors: impl Iterator<Item = &'a Self>) {
        // Pairs with the fence of `begin`: a walk that begins later finds the changes.
        fence(Ordering::SeqCst);
        for Self(walks) in processors {
            let seen = walks.load(Ordering::Acquire);
            while seen % 2 == 1 && walks.load(Ordering::Acquire) == seen {
                spin_loop();
            }
        }
    }
}

impl Default for Walks {
    fn default() -> Self {
        Self::new()
    }
}
