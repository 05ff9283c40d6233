//! A lock for many readers or one writer, which may be held across awaits, first come, first
//! served.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::future::Future;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use crate::SpinLock;
use crate::wait::{Line, Ticket};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
}

/// Which tasks hold the lock, and which wait for it.
struct State {
    readers: usize,
    writer: bool,
    line: Line<Kind>,
}

impl State {
    fn admits(&self, kind: Kind) -> bool {
        match kind {
            Kind::Read => !self.writer,
            Kind::Write => !self.writer && self.readers == 0,
        }
    }

    fn admit(&mut self, kind: Kind) {
        match kind {
            Kind::Read => self.readers += 1,
            Kind::Write => self.writer = true,
        }
    }

    fn release(&mut self, kind: Kind) {
        match kind {
            Kind::Read => self.readers -= 1,
            Kind::Write => self.writer = false,
        }
    }

    /// Lets waiting tasks have the lock, in order, as long as the first may have it.
    fn admit_waiting(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some(&kind) = self.line.front() {
            if !self.admits(kind) {
                break;
            }
            self.admit(kind);
            woken.extend(self.line.pop().map(|(_, waker)| waker));
        }
        woken
    }
}

/// A value that many tasks may read or one may change, also across awaits.
///
/// A reader that comes after a waiting writer gets the lock after that writer, so writers are not
/// starved.
pub struct RwLock<T: ?Sized> {
    state: SpinLock<State>,
    value: UnsafeCell<T>,
}

// SAFETY: `state` allows either readers, which share `&T` (so `T` must be `Sync`), or one writer
// (so `T` must be `Send`).
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}
// SAFETY: the lock owns its value, which is `Send`.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}

impl<T> RwLock<T> {
    /// A lock around `value` that is not held.
    pub fn new(value: T) -> Self {
        Self {
            state: SpinLock::new(State { readers: 0, writer: false, line: Line::new() }),
            value: UnsafeCell::new(value),
        }
    }

    /// Returns the value and drops the lock.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Takes the lock for reading. Waits in order of arrival.
    pub async fn read(&self) -> ReadGuard<'_, T> {
        Acquire { lock: self, kind: Kind::Read, ticket: None }.await;
        ReadGuard { lock: self }
    }

    /// Takes the lock for writing. Waits in order of arrival.
    pub async fn write(&self) -> WriteGuard<'_, T> {
        Acquire { lock: self, kind: Kind::Write, ticket: None }.await;
        WriteGuard { lock: self, value: core::marker::PhantomData }
    }

    /// Takes the lock for reading if that is possible now.
    pub fn try_read(&self) -> Option<ReadGuard<'_, T>> {
        self.try_enter(Kind::Read).then(|| ReadGuard { lock: self })
    }

    /// Takes the lock for writing if that is possible now.
    pub fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        self.try_enter(Kind::Write).then(|| WriteGuard { lock: self, value: core::marker::PhantomData })
    }

    /// The value, accessed through exclusive ownership of the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    fn try_enter(&self, kind: Kind) -> bool {
        let mut state = self.state.lock();
        let enters = state.line.is_empty() && state.admits(kind);
        if enters {
            state.admit(kind);
        }
        enters
    }

    fn leave(&self, kind: Kind) {
        let woken = {
            let mut state = self.state.lock();
            state.release(kind);
            state.admit_waiting()
        };
        woken.into_iter().for_each(Waker::wake);
    }
}

/// A future that waits for the lock. It holds nothing while it is pending. If it is dropped after
/// it was given the lock, the lock passes to the next task.
struct Acquire<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    kind: Kind,
    ticket: Option<Ticket>,
}

impl<T: ?Sized> Future for Acquire<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock.state.lock();
        match self.ticket {
            None if state.line.is_empty() && state.admits(self.kind) => {
                state.admit(self.kind);
                Poll::Ready(())
            }
            None => {
                let ticket = state.line.join(self.kind, context.waker().clone());
                drop(state);
                self.ticket = Some(ticket);
                Poll::Pending
            }
            Some(ticket) if state.line.refresh(ticket, context.waker()) => Poll::Pending,
            Some(_) => {
                drop(state);
                self.ticket = None;
                Poll::Ready(())
            }
        }
    }
}

impl<T: ?Sized> Drop for Acquire<'_, T> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let woken = {
            let mut state = self.lock.state.lock();
            if !state.line.leave(ticket) {
                state.release(self.kind);
            }
            // If a waiting task gives up, others may continue: for example readers that waited
            // for a writer.
            state.admit_waiting()
        };
        woken.into_iter().for_each(Waker::wake);
    }
}

/// The guard of a reader of a [`RwLock`].
#[must_use = "the lock is released when the guard is dropped"]
pub struct ReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
}

/// The guard of a writer of a [`RwLock`].
#[must_use = "the lock is released when the guard is dropped"]
pub struct WriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    /// Without this field the guard would be `Sync` even if `T` is not.
    value: core::marker::PhantomData<&'a mut T>,
}

impl<T: ?Sized> Deref for ReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: while there is a reader there is no writer.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> Deref for WriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: a writer is the only holder of the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: a writer is the only holder of the lock, and `self` is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for ReadGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.leave(Kind::Read);
    }
}

impl<T: ?Sized> Drop for WriteGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.leave(Kind::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Task, block_on};

    #[test]
    fn readers_share_and_a_writer_is_alone() {
        let lock = RwLock::new(1);
        let (first, second) = (lock.try_read().unwrap(), lock.try_read().unwrap());
        assert_eq!(*first + *second, 2);
        assert!(lock.try_write().is_none());
        drop((first, second));
        *lock.try_write().unwrap() = 5;
        assert_eq!(*lock.try_read().unwrap(), 5);
    }

    #[test]
    fn a_waiting_writer_is_not_overtaken_by_readers() {
        let lock = RwLock::new(());
        let reader = lock.try_read().unwrap();
        let mut writer = Task::new(lock.write());
        assert!(writer.poll().is_pending());
        let mut late = Task::new(lock.read());
        assert!(late.poll().is_pending() && lock.try_read().is_none());
        drop(reader);
        let Poll::Ready(guard) = writer.poll() else { panic!("writer not admitted") };
        assert!(late.poll().is_pending());
        drop(guard);
        assert!(late.poll().is_ready());
    }

    #[test]
    fn a_writer_that_gives_up_lets_readers_in() {
        let lock = RwLock::new(());
        let reader = lock.try_read().unwrap();
        let mut writer = Task::new(lock.write());
        assert!(writer.poll().is_pending());
        let mut late = Task::new(lock.read());
        assert!(late.poll().is_pending());
        drop(writer);
        assert!(late.woken() && late.poll().is_ready());
        drop(reader);
    }

    #[test]
    fn an_unused_admission_is_given_back() {
        let lock = RwLock::new(());
        let guard = lock.try_write().unwrap();
        let mut writer = Task::new(lock.write());
        assert!(writer.poll().is_pending());
        drop(guard);
        drop(writer);
        assert!(lock.try_write().is_some());
    }

    #[test]
    fn threads_see_whole_values() {
        let lock = std::sync::Arc::new(RwLock::new((0u64, 0u64)));
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let lock = lock.clone();
                std::thread::spawn(move || {
                    for _ in 0..1000 {
                        if number == 0 {
                            let mut value = block_on(lock.write());
                            value.0 += 1;
                            value.1 += 1;
                        } else {
                            let value = block_on(lock.read());
                            assert_eq!(value.0, value.1);
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(lock.try_read().unwrap().0, 1000);
    }
}
