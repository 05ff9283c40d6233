//! A mutual exclusion lock that may be held across awaits, first come, first served.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::future::Future;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::sync::atomic::{AtomicU8, Ordering};
use core::task::{Context, Poll};

use crate::SpinLock;
use crate::wait::{Line, Ticket};

/// The lock is free.
const FREE: u8 = 0;
/// The lock is held, and no task waits for it.
const HELD: u8 = 1;
/// The lock is held, and tasks may be waiting: the holder must check when it unlocks. The state
/// changes to and from this value only under the spin lock of the line.
const CONTENDED: u8 = 2;

/// A value that one task at a time may use, also across awaits.
///
/// Unlocking passes the lock to the first waiting task, so a task that locks in a loop cannot
/// starve the others.
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    state: AtomicU8,
    line: SpinLock<Line<()>>,
    value: UnsafeCell<T>,
}

impl<K> Default for Line<K> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: `state` allows one guard at a time, and the value is accessed only through the guard (or
// `&mut self`).
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: the mutex owns its value, which is `Send`.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}

/// The guard of a [`Mutex`], by which its value is accessed. Dropping it unlocks the mutex.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// A shared guard gives access to the value, so it must be `Sync` only if `T` is. Without this
    /// field it would be `Sync` for every `T`.
    value: core::marker::PhantomData<&'a mut T>,
}

impl<T> Mutex<T> {
    /// A mutex around `value` that is not locked.
    pub fn new(value: T) -> Self {
        Self { state: AtomicU8::new(FREE), line: SpinLock::new(Line::new()), value: UnsafeCell::new(value) }
    }

    /// Returns the value and drops the mutex.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks the mutex. Waits in order of arrival if it is locked.
    pub fn lock(&self) -> Lock<'_, T> {
        Lock { mutex: self, ticket: None }
    }

    /// Locks the mutex if it is not locked.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        // Acquire: pairs with the Release of unlocking.
        self.state
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| self.guard())
    }

    /// Whether the mutex is locked now; for assertions and statistics.
    pub fn is_locked(&self) -> bool {
        self.state.load(Ordering::Relaxed) != FREE
    }

    /// The value, accessed through exclusive ownership of the mutex.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    fn guard(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, value: core::marker::PhantomData }
    }

    #[inline]
    fn unlock(&self) {
        // Release: publishes what was written while the lock was held.
        if self.state.compare_exchange(HELD, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            self.hand_over();
        }
    }

    /// Passes the lock to the first waiting task: `state` stays held for it.
    #[cold]
    fn hand_over(&self) {
        let waker = {
            let mut line = self.line.lock();
            match line.pop() {
                Some((_, waker)) => {
                    if line.is_empty() {
                        self.state.store(HELD, Ordering::Release);
                    }
                    Some(waker)
                }
                None => {
                    self.state.store(FREE, Ordering::Release);
                    None
                }
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The future of [`Mutex::lock`].
#[must_use = "futures do nothing unless awaited"]
pub struct Lock<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    ticket: Option<Ticket>,
}

impl<'a, T: ?Sized> Future for Lock<'a, T> {
    type Output = MutexGuard<'a, T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.ticket.is_none()
            && let Some(guard) = self.mutex.try_lock()
        {
            return Poll::Ready(guard);
        }
        self.poll_contended(context)
    }
}

impl<'a, T: ?Sized> Lock<'a, T> {
    #[cold]
    fn poll_contended(&mut self, context: &mut Context<'_>) -> Poll<MutexGuard<'a, T>> {
        let mut line = self.mutex.line.lock();
        if let Some(ticket) = self.ticket {
            if line.refresh(ticket, context.waker()) {
                return Poll::Pending;
            }
            // The task is not in the line any more, so the lock was passed to it. The lock of the
            // line orders this after what the previous holder wrote.
            self.ticket = None;
            return Poll::Ready(self.mutex.guard());
        }
        // While the line is locked, the only possible concurrent change is that an uncontended lock
        // is released; then the swap returns FREE. Acquire orders the caller after that release.
        if self.mutex.state.swap(CONTENDED, Ordering::Acquire) == FREE {
            if line.is_empty() {
                self.mutex.state.store(HELD, Ordering::Relaxed);
            }
            return Poll::Ready(self.mutex.guard());
        }
        self.ticket = Some(line.join((), context.waker().clone()));
        Poll::Pending
    }
}

impl<T: ?Sized> Drop for Lock<'_, T> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let still_waiting = self.mutex.line.lock().leave(ticket);
            if !still_waiting {
                self.mutex.hand_over();
            }
        }
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this is the only guard: `state` is not FREE because of it alone.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this is the only guard, and `self` is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Task, block_on};
    use std::sync::Arc;

    #[test]
    fn first_come_first_served() {
        let mutex = Mutex::new(0);
        let held = mutex.try_lock().unwrap();
        let (mut first, mut second) = (Task::new(mutex.lock()), Task::new(mutex.lock()));
        assert!(first.poll().is_pending() && second.poll().is_pending());
        drop(held);
        // The lock has been passed to `first` already, so no other task can get it before.
        assert!(mutex.try_lock().is_none());
        assert!(first.woken() && !second.woken());
        assert!(second.poll().is_pending());
        let Poll::Ready(guard) = first.poll() else { panic!("not handed over") };
        drop(guard);
        assert!(second.poll().is_ready());
    }

    #[test]
    fn a_dropped_waiter_leaves_and_a_dropped_grantee_hands_on() {
        let mutex = Mutex::new(());
        let held = mutex.try_lock().unwrap();
        let mut tasks: Vec<_> = (0..3).map(|_| Task::new(mutex.lock())).collect();
        tasks.iter_mut().for_each(|task| assert!(task.poll().is_pending()));
        drop(tasks.remove(1));
        drop(held);
        drop(tasks.remove(0));
        assert!(tasks[0].poll().is_ready());
        drop(tasks);
        assert!(mutex.try_lock().is_some());
    }

    #[test]
    fn a_line_emptied_by_drops_frees_the_lock() {
        let mutex = Mutex::new(());
        let held = mutex.try_lock().unwrap();
        let mut waiter = Task::new(mutex.lock());
        assert!(waiter.poll().is_pending());
        drop(waiter);
        drop(held);
        assert!(!mutex.is_locked());
    }

    #[test]
    fn sections_of_threads_exclude_each_other() {
        let counter = Arc::new(Mutex::new(0u32));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let counter = counter.clone();
                std::thread::spawn(move || {
                    for turn in 0..2000 {
                        if turn % 7 == 0 {
                            // This task gives up after its first poll.
                            let _ = Task::new(counter.lock()).poll().map(drop);
                        }
                        *block_on(counter.lock()) += 1;
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*counter.try_lock().unwrap(), 8000);
    }
}
