//! Slabs of objects of one type, and the list at hand of a stable one of them.

use core::marker::PhantomData;
use core::ptr::NonNull;

use super::layout::{LINE, Layout};
use super::{NONE_AT_HAND, Slab, State};
use crate::arch;
use crate::memory::{Account, OutOfMemory, PAGE_SIZE, Use, detour};
use crate::sync::SpinLock;

/// How an [`ObjectSlab`] treats its objects: they hold zeros when they are handed out.
pub const CLEARED: u32 = u32::MAX;

/// Objects of type `T`, packed. `T` must be valid as all zeros, or the caller writes it before use.
/// `CARE` says how they are treated: [`CLEARED`], or, for a stable slab (see the module), the
/// offset of a word of `T` which means nothing while it is free.
pub struct ObjectSlab<T, const CARE: u32 = CLEARED> {
    slab: Slab,
    object: PhantomData<fn() -> T>,
}

impl<T, const CARE: u32> ObjectSlab<T, CARE> {
    /// A slab of `T`.
    pub const fn new(usage: Use) -> Self {
        Self { slab: Slab { state: SpinLock::new(State::new(Self::LAYOUT)), usage }, object: PhantomData }
    }

    const SIZE: u32 = {
        assert!(
            size_of::<T>() >= 4 && size_of::<T>() <= PAGE_SIZE as usize && size_of::<T>().is_multiple_of(4)
        );
        assert!(size_of::<T>().is_multiple_of(align_of::<T>()) && align_of::<T>() <= LINE as usize);
        size_of::<T>() as u32
    };

    /// Known to the compiler, so that no object is found by a division.
    const LAYOUT: Layout = match CARE {
        CLEARED => Layout::cleared(Self::SIZE),
        link_at => Layout::stable(Self::SIZE, link_at),
    };

    /// Memory for one `T`, charged to `account`: zeroed, or as left by the last user if the slab
    /// does not clear it.
    pub fn alloc(&self, account: Account) -> Result<NonNull<T>, OutOfMemory> {
        let object = self.slab.alloc_in::<false>(self.slab.lock(), Self::LAYOUT, account)?;
        let object = arch::phys_to_virt(object).cast::<T>();
        Ok(NonNull::new(object).expect("the direct map does not contain address 0"))
    }

    /// Like [`Self::alloc`], of a slab that has a lock above it.
    ///
    /// # Safety
    /// As for [`SpinLock::lock_below`].
    #[inline(always)]
    pub unsafe fn alloc_below(&self, account: Account) -> Result<NonNull<T>, OutOfMemory> {
        // SAFETY: the caller keeps this function's contract.
        let state = unsafe { self.slab.lock_below() };
        let object = arch::phys_to_virt(self.slab.alloc_in::<false>(state, Self::LAYOUT, account)?);
        // SAFETY: the direct map does not contain address 0.
        Ok(unsafe { NonNull::new_unchecked(object.cast()) })
    }

    /// Like [`Self::alloc_below`], but other functions are called only where that is seldom needed.
    /// `None` does not mean that there is no memory: [`Self::alloc_below`] may still succeed.
    ///
    /// # Safety
    /// As for [`SpinLock::lock_below`].
    #[inline(always)]
    pub unsafe fn alloc_at_hand(&self, account: Account) -> Option<NonNull<T>> {
        if !detour::none() || !account.charge_apart(Self::SIZE.into()) {
            return None;
        }
        // SAFETY: the caller keeps this function's contract.
        let is_empty = unsafe { self.slab.lock_below() }.at_hand == NONE_AT_HAND;
        if is_empty {
            let slab = core::ptr::from_ref(&self.slab).expose_provenance() as u64;
            if arch::ask_seldom(bring_to_hand, slab, account.number().into()) == 0 {
                return None;
            }
        }
        // SAFETY: as above.
        let mut state = unsafe { self.slab.lock_below() };
        let object = arch::phys_to_virt(state.take_at_hand(Self::LAYOUT));
        // SAFETY: the direct map does not contain address 0.
        Some(unsafe { NonNull::new_unchecked(object.cast()) })
    }

    /// Returns the memory. Does not drop the `T`.
    ///
    /// # Safety
    /// As for [`Slab::free`].
    pub unsafe fn free(&self, object: NonNull<T>, account: Account) {
        // SAFETY: the caller keeps this function's contract.
        unsafe {
            let object = arch::virt_to_phys(object.as_ptr());
            self.slab.free_in(self.slab.lock(), Self::LAYOUT, object, account);
        }
    }

    /// Like [`Self::free`], of a slab that has a lock above it.
    ///
    /// # Safety
    /// As for [`Slab::free`] and [`SpinLock::lock_below`].
    #[inline(always)]
    pub unsafe fn free_below(&self, object: NonNull<T>, account: Account) {
        // SAFETY: the caller keeps this function's contract.
        unsafe {
            let object = arch::virt_to_phys(object.as_ptr());
            self.slab.free_in(self.slab.lock_below(), Self::LAYOUT, object, account);
        }
    }

    /// Whether freed objects go to the list at hand.
    #[inline(always)]
    pub fn frees_to_hand(&self) -> bool {
        Self::LAYOUT.stable && detour::none()
    }

    /// Like [`Self::free_below`] where [that comes to hand](Self::frees_to_hand); no function is
    /// called on the way but seldom.
    ///
    /// # Safety
    /// As for [`Self::free_below`].
    #[inline(always)]
    pub unsafe fn free_to_hand(&self, object: NonNull<T>, account: Account) {
        debug_assert!(self.frees_to_hand());
        // SAFETY: the caller keeps this function's contract.
        let mut state = unsafe { self.slab.lock_below() };
        state.keep_at_hand(Self::LAYOUT, arch::virt_to_phys(object.as_ptr()));
        account.credit_apart(Self::SIZE.into());
    }

    /// Like [`ObjectSlab::alloc`], but freed again unless [`Reserved::commit`] is called: for a
    /// system call that takes all it may need before its first state change.
    pub fn reserve(&'static self, account: Account) -> Result<Reserved<T, CARE>, OutOfMemory> {
        Ok(Reserved { object: self.alloc(account)?, slab: self, account })
    }

    /// The untyped slab, for statistics.
    pub fn slab(&self) -> &Slab {
        &self.slab
    }
}

/// Fills the list at hand of the stable slab at this address, which is empty, with an object for
/// `account`, which has paid for it. Returns 0 if there is no memory; what was paid is put back.
#[cold]
extern "C" fn bring_to_hand(slab: u64, account: u64) -> u64 {
    let account = Account::numbered(account as u16);
    // SAFETY: [`ObjectSlab::alloc_at_hand`] has a reference to it.
    let slab = unsafe { &*core::ptr::with_exposed_provenance::<Slab>(slab as usize) };
    // SAFETY: the promise of its caller.
    let mut state = unsafe { slab.lock_below() };
    let layout = state.layout;
    match slab.alloc_raw::<true>(&mut *state, layout, account) {
        Ok(object) => {
            state.keep_at_hand(layout, object);
            1
        }
        Err(OutOfMemory) => {
            account.credit(layout.size.into());
            0
        }
    }
}

/// Memory for a `T` that returns to its slab unless committed.
pub struct Reserved<T: 'static, const CARE: u32> {
    object: NonNull<T>,
    slab: &'static ObjectSlab<T, CARE>,
    account: Account,
}

impl<T, const CARE: u32> Reserved<T, CARE> {
    /// The address that the object will have.
    pub fn as_ptr(&self) -> *mut T {
        self.object.as_ptr()
    }

    /// The memory is used: it is the caller's to free.
    pub fn commit(self) -> NonNull<T> {
        let object = self.object;
        core::mem::forget(self);
        object
    }
}

impl<T, const CARE: u32> Drop for Reserved<T, CARE> {
    fn drop(&mut self) {
        // SAFETY: the memory came from this slab for this account, and `commit` did not hand it
        // out.
        unsafe { self.slab.free(self.object, self.account) };
    }
}
