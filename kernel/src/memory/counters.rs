//! What processors share of an account: its limit, what is used of it, and who refers to it. Model-checked with loom.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The counters of one account. With no references and nothing used it can be freed, by whoever [claims](Self::claim) it.
#[repr(C)]
#[derive(Debug)]
pub struct Counters {
    limit: AtomicU64,
    used: AtomicU64,
    references: AtomicU32,
}

/// References of an account that is free.
const FREE: u32 = u32::MAX;

impl Counters {
    /// Those of an account with one reference, for models. (In the kernel they are memory that is [reset](Self::reset).)
    #[cfg(loom)]
    pub fn new(limit: u64) -> Self {
        Self { limit: AtomicU64::new(limit), used: AtomicU64::new(0), references: AtomicU32::new(1) }
    }

    /// Makes them those of an account that has just been made: nothing used, one reference. Nobody else knows it yet.
    pub fn reset(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
        self.used.store(0, Ordering::Relaxed);
        self.references.store(1, Ordering::Relaxed);
    }

    /// Bytes that may be used.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets the limit.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// References, or `None` if the account is free, or about to be.
    pub fn references(&self) -> Option<u32> {
        let references = self.references.load(Ordering::Relaxed);
        (references != FREE && (references != 0 || self.used() != 0)).then_some(references)
    }

    /// Takes `bytes` out of the quota, if they are left.
    #[inline]
    pub fn charge(&self, bytes: u64) -> bool {
        // Relaxed: the sum alone matters.
        let used = self.used.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes);
        if used <= self.limit.load(Ordering::Relaxed) {
            return true;
        }
        // Another processor may fail meanwhile although this amount is about to return: at the limit, that is fair.
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        false
    }

    /// Puts `bytes` back into the quota. Returns whether the account may be unused now: see [`Self::claim`].
    #[inline]
    pub fn credit(&self, bytes: u64) -> bool {
        // Release and acquire in both read-modify-writes, here and in `release`: of two processors that give back the last
        // byte and the last reference, the one that comes second at either counter sees what the other did at both.
        let before = self.used.fetch_sub(bytes, Ordering::AcqRel);
        debug_assert!(before >= bytes, "more returned than taken");
        before == bytes && self.references.fetch_add(0, Ordering::AcqRel) == 0
    }

    /// Adds a reference; the caller has one.
    pub fn retain(&self) {
        self.references.fetch_add(1, Ordering::Relaxed);
    }

    /// Drops a reference. Returns whether the account may be unused now: see [`Self::claim`].
    pub fn release(&self) -> bool {
        self.references.fetch_sub(1, Ordering::AcqRel) == 1 && self.used.fetch_add(0, Ordering::AcqRel) == 0
    }

    /// Whether the account is unused, and the caller is the one who frees it. One caller at a time.
    pub fn claim(&self) -> bool {
        self.used() == 0
            && self.references.compare_exchange(0, FREE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
