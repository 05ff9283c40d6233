//! A spin lock for short sections that processors share.
//!
//! Code that holds a [`SpinLock`] must run for a bounded time, must not await, and must not call
//! code that takes this lock. Each processor has one worker, and workers do not preempt each other,
//! so the holder of a lock is always running.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::cell::UnsafeCell;
#[cfg(not(loom))]
use core::hint::spin_loop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
#[cfg(not(loom))]
use core::sync::atomic::{AtomicBool, Ordering};
#[cfg(loom)]
use loom::hint::spin_loop;
#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering};

/// A value that one processor at a time may access; others spin until it is free.
#[derive(Default)]
pub struct SpinLock<T: ?Sized> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `locked` allows one guard at a time, and the value is accessed only through a guard (or
// `&mut self`). So sharing the lock is no more than sending the value from one thread to the next.
unsafe impl<T: ?Sized + Send> Sync for SpinLock<T> {}
// SAFETY: the lock owns its value, which is `Send`.
unsafe impl<T: ?Sized + Send> Send for SpinLock<T> {}

/// The guard of a [`SpinLock`], by which its value is accessed. Dropping it releases the lock.
#[must_use = "the lock is released when the guard is dropped"]
pub struct SpinGuard<'a, T: ?Sized> {
    lock: &'a SpinLock<T>,
    /// Makes the guard not `Send`: so a future that holds it across an await cannot move between
    /// workers, and is rejected by the compiler.
    not_send: core::marker::PhantomData<*const ()>,
}

impl<T> SpinLock<T> {
    /// A lock around `value` that is not held.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// A lock around `value` that is not held.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Returns the value and drops the lock.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> SpinLock<T> {
    /// Takes the lock. Spins until it is free.
    #[inline]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            while self.locked.load(Ordering::Relaxed) {
                spin_loop();
            }
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        // Acquire: orders this after what the previous holder wrote, which released the lock by the
        // store in `drop`.
        self.locked
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| SpinGuard { lock: self, not_send: core::marker::PhantomData })
    }

    /// The value, accessed through exclusive ownership of the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T: ?Sized> Deref for SpinGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this is the only guard: `locked` is true because of it alone.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this is the only guard, since `locked` is true because of it alone, and `self` is
        // borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: publishes what was written to the next holder.
        self.lock.locked.store(false, Ordering::Release);
    }
}

/// A guard of a [`SpinLock`] inside a shared object, which it keeps alive. It is used to walk from
/// object to object: the next one is locked before the last one is unlocked.
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedSpinGuard<O, T> {
    lock: NonNull<SpinLock<T>>,
    owner: Arc<O>,
}

impl<O, T> OwnedSpinGuard<O, T> {
    /// Takes the lock that `project` finds in `owner`. Spins until it is free.
    pub fn lock(owner: Arc<O>, project: impl for<'a> FnOnce(&'a O) -> &'a SpinLock<T>) -> Self {
        let lock = NonNull::from(project(&owner));
        // SAFETY: `project` borrowed the lock from `*owner` for as long as `*owner` is shared. The
        // `Arc` kept below shares it (no `&mut` can be had) and keeps it in place until after the
        // guard has released the lock.
        core::mem::forget(unsafe { lock.as_ref() }.lock());
        Self { lock, owner }
    }

    /// The object that contains the lock.
    pub fn owner(&self) -> &Arc<O> {
        &self.owner
    }
}

impl<O, T> Deref for OwnedSpinGuard<O, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock exists as long as `owner` is referred to (see `lock`), and is held by
        // this guard alone.
        unsafe { &*self.lock.as_ref().value.get() }
    }
}

impl<O, T> DerefMut for OwnedSpinGuard<O, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock exists as long as `owner` is referred to, is held by this guard alone,
        // and `self` is borrowed exclusively.
        unsafe { &mut *self.lock.as_ref().value.get() }
    }
}

impl<O, T> Drop for OwnedSpinGuard<O, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `owner` is dropped after this, so the lock still exists. Release: publishes what
        // was written.
        unsafe { self.lock.as_ref() }.locked.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn sections_exclude_each_other() {
        let counter = Arc::new(SpinLock::new(0u64));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let counter = counter.clone();
                std::thread::spawn(move || (0..10_000).for_each(|_| *counter.lock() += 1))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*counter.lock(), 40_000);
    }

    #[test]
    fn an_owned_guard_keeps_the_lock_and_its_owner() {
        let owner = Arc::new((1u8, SpinLock::new(2u8)));
        let mut guard = OwnedSpinGuard::lock(owner.clone(), |owner| &owner.1);
        assert!(owner.1.try_lock().is_none());
        *guard += 1;
        assert_eq!((guard.owner().0, Arc::strong_count(&owner)), (1, 2));
        drop(guard);
        assert_eq!((*owner.1.lock(), Arc::strong_count(&owner)), (3, 1));
    }

    #[test]
    fn a_held_lock_cannot_be_taken() {
        let lock = SpinLock::new(());
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert!(lock.try_lock().is_some());
    }
}
