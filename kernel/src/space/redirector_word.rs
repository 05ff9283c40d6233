//! Where a space's messages to others go: a word that SpaceControl sets on one processor while the
//! end of the redirector takes it away on another. Model-checked with loom.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

/// Messages go to the threads that they are for.
pub const NONE: u64 = 0;
/// The redirector no longer exists: senders wait (X.2 rule 6.15). No thread has this id.
pub const GONE: u64 = u64::MAX;

/// The id of a redirector, or one of the two other values.
pub struct RedirectorWord(AtomicU64);

impl RedirectorWord {
    /// No redirector.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU64::new(NONE))
    }

    /// No redirector.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU64::new(NONE))
    }

    /// The word.
    #[inline]
    pub fn get(&self) -> u64 {
        // Relaxed: the word says nothing about other memory.
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the redirector, on one processor at a time. Returns whether it has changed.
    pub fn set(&self, word: u64) -> bool {
        // AcqRel, here and below: of two changes the second sees the first.
        self.0.swap(word, Ordering::AcqRel) != word
    }

    /// The redirector with this id has gone. One step: another processor may be setting another
    /// one.
    pub fn forget(&self, id: u64) {
        // If another redirector is set by now, that is no error.
        let _ = self.0.compare_exchange(id, GONE, Ordering::AcqRel, Ordering::Relaxed);
    }
}

impl Default for RedirectorWord {
    fn default() -> Self {
        Self::new()
    }
}
