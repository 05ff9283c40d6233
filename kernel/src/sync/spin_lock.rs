//! A spin lock for the kernel, which runs with interrupts off and is never preempted while it holds
//! one. Model-checked with loom.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

use super::SEVERAL;
#[cfg(not(loom))]
use core::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, Ordering},
};
#[cfg(loom)]
use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, Ordering},
};

/// Mutual exclusion between processors.
///
/// Lock order (K12): a mapping tree before a space. No lock is held across a preemption point.
pub struct SpinLock<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands out the value to one holder at a time, so sharing the lock only moves `T`
// between processors.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// A free lock around `value`.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// A free lock around `value`.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits until the lock is free and takes it. Not recursive.
    #[inline]
    pub fn lock(&self) -> SpinLockGuard<'_, T> {
        if SEVERAL {
            // Acquire: what the last holder wrote is visible to this one.
            while self
                .locked
                .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
            {
                self.wait();
            }
        } else {
            // This is for code that may interrupt the holder of the lock: the debugger.
            self.locked.store(true, Ordering::Relaxed);
        }
        SpinLockGuard { lock: self }
    }

    /// Takes the lock where only holders of another lock take it, always the same one: then it is
    /// always free, and taking it costs nothing. Builds with debug assertions take it nevertheless,
    /// as they do an [`InnerLock`](super::InnerLock).
    ///
    /// # Safety
    /// The caller holds that other lock, or nothing else happens, while the guard exists; this is
    /// so for every caller that takes this one.
    #[inline(always)]
    pub unsafe fn lock_below(&self) -> BelowGuard<'_, T> {
        BelowGuard {
            #[cfg(debug_assertions)]
            _guard: self.lock(),
            // SAFETY: the caller promises that there is no other reference.
            value: unsafe { &mut *self.value.get() },
        }
    }

    /// Waits until the lock is free.
    #[inline(always)]
    fn wait(&self) {
        crate::arch::call_seldom(wait, (&raw const self.locked).expose_provenance() as u64, 0);
    }

    /// Takes the lock if it is free.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<SpinLockGuard<'_, T>> {
        if self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return None;
        }
        Some(SpinLockGuard { lock: self })
    }
}

/// Waits until the lock at this address is free: on a shared cache line, without writing to it.
#[cold]
extern "C" fn wait(locked: u64, _: u64) {
    // SAFETY: it is that of a lock that [`SpinLock::lock`] has a reference to.
    let locked = unsafe { &*core::ptr::with_exposed_provenance::<AtomicBool>(locked as usize) };
    while locked.load(Ordering::Relaxed) {
        // The lock's holder may wait until this processor serves its request.
        crate::arch::serve_requests();
        spin_loop();
    }
}

/// The right to the value of a [`SpinLock`], returned when dropped.
pub struct SpinLockGuard<'a, T> {
    lock: &'a SpinLock<T>,
}

/// The right to the value of a [`SpinLock`] that is taken below another one.
pub struct BelowGuard<'a, T> {
    #[cfg(debug_assertions)]
    _guard: SpinLockGuard<'a, T>,
    value: &'a mut T,
}

impl<T> Deref for BelowGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> DerefMut for BelowGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}

impl<T> Deref for SpinLockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while its processor holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for SpinLockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists only while its processor holds the lock, and is borrowed
        // uniquely here.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for SpinLockGuard<'_, T> {
    fn drop(&mut self) {
        // Release: the next holder sees what this one wrote.
        self.lock.locked.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn excludes_other_threads() {
        static COUNTER: SpinLock<u64> = SpinLock::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        *COUNTER.lock() += 1;
                    }
                });
            }
        });
        assert_eq!(*COUNTER.lock(), 4000);
    }

    #[test]
    fn try_lock_fails_while_held() {
        let lock = SpinLock::new(());
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert!(lock.try_lock().is_some());
    }
}
