//! Locks that are taken only under another lock: they say what depends on what, and cost nothing.

#[cfg(debug_assertions)]
use super::{SpinLock, SpinLockGuard};

/// A lock that is taken only by holders of another lock, always the same one, so that it is always
/// free.
///
/// Builds with debug assertions, as all tests on the host are, take it nevertheless: code that
/// takes it twice never ends.
pub struct InnerLock {
    #[cfg(debug_assertions)]
    lock: SpinLock<()>,
}

/// The right to what an [`InnerLock`] covers, returned when dropped.
pub struct InnerLockGuard<'a> {
    #[cfg(debug_assertions)]
    _guard: SpinLockGuard<'a, ()>,
    #[cfg(not(debug_assertions))]
    _guard: core::marker::PhantomData<&'a ()>,
}

impl Default for InnerLock {
    fn default() -> Self {
        Self::new()
    }
}

impl InnerLock {
    /// A free lock.
    pub const fn new() -> Self {
        Self {
            #[cfg(debug_assertions)]
            lock: SpinLock::new(()),
        }
    }

    /// Takes the lock. The caller holds the one above. Not recursive.
    #[inline(always)]
    pub fn lock(&self) -> InnerLockGuard<'_> {
        InnerLockGuard {
            #[cfg(debug_assertions)]
            _guard: self.lock.lock(),
            #[cfg(not(debug_assertions))]
            _guard: core::marker::PhantomData,
        }
    }
}
