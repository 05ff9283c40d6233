//! Slabs whose users hold a lock already.

use super::layout::{LINE, Layout};
use super::{Slab, State};
use crate::memory::{Account, OutOfMemory, PhysAddr, Use};
use crate::sync::BelowGuard;
#[cfg(doc)]
use crate::sync::SpinLock;

/// A slab of small objects that are made and freed often: their size is known to the compiler, they
/// are not cleared, and all its users hold one and the same lock ([`SpinLock::lock_below`]).
pub(crate) struct FastSlab<const SIZE: u32>(Slab);

impl<const SIZE: u32> FastSlab<SIZE> {
    const LAYOUT: Layout = {
        assert!(SIZE < LINE && SIZE.is_power_of_two());
        Layout::packed(SIZE)
    };

    /// # Safety
    /// Every user of the slab holds a lock, always the same one.
    pub(crate) const unsafe fn new(usage: Use) -> Self {
        Self(Slab::new(usage, SIZE))
    }

    #[inline(always)]
    fn lock(&self) -> BelowGuard<'_, State> {
        // SAFETY: the creator of the slab has promised that its users hold a lock.
        unsafe { self.0.lock_below() }
    }

    /// An object with any contents, charged to `account`.
    #[inline]
    pub(crate) fn alloc(&self, account: Account) -> Result<PhysAddr, OutOfMemory> {
        self.0.alloc_raw::<false>(self.lock(), Self::LAYOUT, account)
    }

    /// Returns an object.
    ///
    /// # Safety
    /// It came from this slab, charged to `account`, and is not in use any more.
    #[inline]
    pub(crate) unsafe fn free(&self, object: PhysAddr, account: Account) {
        self.0.free_raw(self.lock(), Self::LAYOUT, object);
        account.credit_apart(SIZE.into());
    }

    /// Allocates a whole frame of objects, with any contents, charged to `account`, and returns the
    /// first.
    pub(crate) fn alloc_frame(&self, account: Account) -> Result<PhysAddr, OutOfMemory> {
        self.0.alloc_frame(self.lock(), Self::LAYOUT, account)
    }

    /// Returns all objects of a frame together.
    ///
    /// # Safety
    /// They came from [`Self::alloc_frame`], charged to `account`, none was freed, and none is in
    /// use any more.
    pub(crate) unsafe fn free_frame(&self, first: PhysAddr, account: Account) {
        // SAFETY: the caller promises that the object is the slab's and is not used any more.
        unsafe { self.0.free_frame(self.lock(), Self::LAYOUT, first, account) };
    }

    pub(crate) fn usage(&self) -> (u32, u32) {
        let state = self.lock();
        (state.objects, state.frames)
    }
}
