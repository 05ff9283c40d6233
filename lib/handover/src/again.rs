//! An event that happens to an object again before its owner is done with the first one: it is
//! remembered, once.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicBool, Ordering, fence};
#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering, fence};

/// Whether it has happened again. One processor notes it: the one where it happens, where the
/// object may not be. The object's owner asks when it is done, before and after it gives the object
/// back there ([`crate::Location::assign`]).
#[derive(Debug)]
pub struct Again {
    noted: AtomicBool,
}

impl Again {
    /// The event has not happened again.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { noted: AtomicBool::new(false) }
    }

    /// The event has not happened again.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { noted: AtomicBool::new(false) }
    }

    /// It has happened, and the object is not here, or not ready. Afterwards the caller looks for
    /// the object once more, because the owner may have asked before this.
    pub fn note(&self) {
        self.noted.swap(true, Ordering::AcqRel);
        // The store comes before the look. The owner gives the object back and then asks; the other
        // side notes and then looks. So one sees the other.
        fence(Ordering::SeqCst);
    }

    /// Whether the event has happened again. Of several callers one is told, and handles it.
    pub fn take(&self) -> bool {
        // Acquire and release: the caller that is told comes after what was done before it was
        // noted, and before it was asked.
        self.noted.swap(false, Ordering::AcqRel)
    }

    /// [`Self::take`] for the owner, which has just given the object back.
    pub fn take_after_return(&self) -> bool {
        // The load comes after the object was given back: see `note`.
        fence(Ordering::SeqCst);
        self.take()
    }
}

impl Default for Again {
    fn default() -> Self {
        Self::new()
    }
}
