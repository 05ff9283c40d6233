//! The id of an object whose memory is used again and again, always for such objects.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

/// The value of an object that is not in use, or whose end has begun.
const NONE: u64 = 0;

/// The id of an object, or none. The object's owner alone changes it; an object without id may be
/// touched only by the processor that ends or makes it.
///
/// The id is read *before* the [`Location`](crate::Location). So a processor that finds an id and
/// then the object at itself has found an object that is there, and stays until that processor
/// sends it away or ends it: an object that was ended here shows no id from then on, and one that
/// was made elsewhere in the same memory shows its id only after its new location.
#[derive(Debug)]
#[repr(transparent)]
pub struct Identity(AtomicU64);

impl Identity {
    /// An object that is not in use.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU64::new(NONE))
    }

    /// An object that is not in use.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU64::new(NONE))
    }

    /// The id, 0 for none: a hint, unless the object is known to be here.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The id with which an object was found that is in use; 0 if it is not. The location is read
    /// afterwards.
    #[inline]
    pub fn find(&self) -> u64 {
        // Acquire: keeps the read of the location after it, and pairs with the release in `set`.
        self.0.load(Ordering::Acquire)
    }

    /// The owner gives the object this id, or begins its end by 0. The location of a new object has
    /// been set before.
    #[inline]
    pub fn set(&self, id: u64) {
        // Release: a processor that finds the id sees the location that was set before.
        self.0.store(id, Ordering::Release);
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self::new()
    }
}
