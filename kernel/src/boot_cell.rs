//! A value that boot code writes while nothing else runs, and that is constant afterwards.
use core::cell::UnsafeCell;

/// A static that is written at boot only.
pub struct BootCell<T>(UnsafeCell<T>);

// SAFETY: `get_mut`'s contract says that nothing else runs while the value changes; afterwards it
// is shared and constant.
unsafe impl<T: Send + Sync> Sync for BootCell<T> {}

impl<T> BootCell<T> {
    /// A cell with the value that holds until boot code sets another.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The value.
    #[inline]
    pub fn get(&self) -> &T {
        // SAFETY: by `get_mut`'s contract no unique reference is in use now.
        unsafe { &*self.0.get() }
    }

    /// The value, to be settled.
    ///
    /// # Safety
    /// Boot only: while the returned reference is in use, no other processor runs and no reference
    /// from [`BootCell::get`] is in use.
    #[allow(clippy::mut_from_ref, reason = "the contract is what makes the reference unique")]
    pub unsafe fn get_mut(&self) -> &mut T {
        // SAFETY: the caller promises that no other reference exists.
        unsafe { &mut *self.0.get() }
    }
}
