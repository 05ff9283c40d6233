//! [`PollQueue`]: the waiters that are woken when an object's readiness changes.

use super::Readiness;
use crate::sync::SpinLock;
use alloc::vec::Vec;
use core::task::Waker;

/// The waiters of one object. A registration stays until it is removed, so that an edge-triggered
/// watcher sees every change. A waiter that must not miss a change registers first and looks at the
/// object afterwards.
///
/// Of the waiters that are registered as exclusive, a change wakes one: the first that has not been
/// woken, or that has looked at the object since. So the chosen waiter looks at the object after
/// the change. If it leaves something, it wakes another exclusive waiter ([`PollQueue::hand_on`]):
/// any other if it is done, one that was registered later if it could not use what there is and
/// goes on waiting. So no change is lost, and of many readers of a pipe only those run that find
/// something.
///
/// Code that changes an object calls [`PollQueue::wake`] after releasing the object's lock.
#[derive(Default)]
pub struct PollQueue {
    waiters: SpinLock<Waiters>,
}

#[derive(Default)]
struct Waiters {
    next: u64,
    /// The waiters in the order of their ids; an entry without a waker has left the queue.
    list: Vec<Waiter>,
    /// How many entries have left the queue and are still in the list.
    left: usize,
    /// How many registered waiters are exclusive.
    exclusive: usize,
}

struct Waiter {
    id: u64,
    interest: Readiness,
    waker: Option<Waker>,
    exclusive: bool,
    /// An exclusive waiter has been woken, and has not looked at the object since.
    woken: bool,
}

/// Events that wake exclusive waiters, too, because they concern every waiter: an end or an error.
const FOR_ALL: Readiness = Readiness::ALWAYS.union(Readiness::READ_HANGUP);

impl Waiter {
    fn wants(&self, events: Readiness) -> bool {
        self.waker.is_some() && self.interest.intersects(events)
    }
}

impl Waiters {
    fn find(&mut self, registration: Registration) -> Option<&mut Waiter> {
        let index = self.list.binary_search_by_key(&registration.0, |waiter| waiter.id).ok()?;
        self.list.get_mut(index)
    }

    /// Removes one registration and returns its waker, and whether it was an exclusive one that has
    /// been woken. After the search this takes constant time on average, however many registrations
    /// there are: the list is cleaned up only when half of its entries have left.
    fn take(&mut self, registration: Registration) -> Option<(Waker, bool)> {
        let waiter = self.find(registration)?;
        let (waker, exclusive, woken) = (waiter.waker.take()?, waiter.exclusive, waiter.woken);
        self.exclusive -= usize::from(exclusive);
        self.left += 1;
        if 2 * self.left >= self.list.len() {
            self.list.retain(|waiter| waiter.waker.is_some());
            self.left = 0;
        }
        Some((waker, woken))
    }

    /// The next exclusive waiter to wake, of those with ids from `from` on. If all have been woken,
    /// the first of them once more.
    fn next_exclusive(&mut self, events: Readiness, from: u64) -> Option<Waker> {
        if self.exclusive == 0 {
            return None;
        }
        let start = self.list.partition_point(|waiter| waiter.id < from);
        let mut candidates = self.list[start..].iter_mut().filter(|w| w.exclusive && w.wants(events));
        let first = candidates.next()?;
        let chosen = match first.woken {
            false => first,
            true => candidates.find(|waiter| !waiter.woken).unwrap_or(first),
        };
        chosen.woken = true;
        chosen.waker.clone()
    }
}

/// Identifies a registered waiter in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration(u64);

impl PollQueue {
    /// Makes a queue without waiters.
    pub const fn new() -> PollQueue {
        PollQueue { waiters: SpinLock::new(Waiters { next: 0, list: Vec::new(), left: 0, exclusive: 0 }) }
    }

    /// Registers a waiter: `waker` is woken at each change that concerns `interest` (or an error or
    /// hang-up).
    pub fn register(&self, interest: Readiness, waker: &Waker) -> Registration {
        self.add(interest, waker, false)
    }

    /// Registers an exclusive waiter: one of several that wait for the same change, which wakes
    /// only one of them. The waiter must call [`PollQueue::update`] before each look at the object,
    /// and [`PollQueue::leave`] at the end.
    pub(super) fn register_exclusive(&self, interest: Readiness, waker: &Waker) -> Registration {
        self.add(interest, waker, true)
    }

    fn add(&self, interest: Readiness, waker: &Waker, exclusive: bool) -> Registration {
        let mut waiters = self.waiters.lock();
        let id = waiters.next;
        waiters.next += 1;
        let (interest, waker) = (interest | Readiness::ALWAYS, Some(waker.clone()));
        waiters.exclusive += usize::from(exclusive);
        waiters.list.push(Waiter { id, interest, waker, exclusive, woken: false });
        Registration(id)
    }

    /// Replaces the waker of a registration (a future that moved to another task), before another
    /// look at the object. Returns whether it is an exclusive one that has been woken; from now on
    /// it counts as not woken.
    pub fn update(&self, registration: Registration, waker: &Waker) -> bool {
        let mut waiters = self.waiters.lock();
        let Some(Waiter { waker: Some(old), woken, .. }) = waiters.find(registration) else { return false };
        old.clone_from(waker);
        core::mem::take(woken)
    }

    /// Changes what a registration is interested in.
    pub fn set_interest(&self, registration: Registration, interest: Readiness) {
        let mut waiters = self.waiters.lock();
        if let Some(waiter) = waiters.find(registration) {
            waiter.interest = interest | Readiness::ALWAYS;
        }
    }

    /// Ends the registration of a waiter.
    pub fn unregister(&self, registration: Registration) {
        self.leave(registration);
    }

    /// Ends a registration. True if it was an exclusive one that has been woken: the caller then
    /// has to wake the next if something is left for it.
    pub(super) fn leave(&self, registration: Registration) -> bool {
        // The waker is dropped after the lock is released.
        let removed = self.waiters.lock().take(registration);
        removed.is_some_and(|(_, woken)| woken)
    }

    /// Wakes another exclusive waiter for what a woken one has left: one that was registered after
    /// `after`, or with `None` any.
    pub(super) fn hand_on(&self, after: Option<Registration>, events: Readiness) {
        let from = after.map_or(0, |registration| registration.0 + 1);
        let waker = self.waiters.lock().next_exclusive(events, from);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Wakes every waiter that is interested in one of `events`, but only one of the exclusive
    /// waiters, unless the events are an end or an error. The wakers run while no lock of the queue
    /// is held.
    pub fn wake(&self, events: Readiness) {
        let all = events.intersects(FOR_ALL);
        let mut from = 0;
        let mut end = None;
        loop {
            // Takes a bounded batch of wakers under the lock; ids only grow, so registrations that
            // are made later are not woken.
            let mut batch: [Option<Waker>; 8] = Default::default();
            let mut filled = 0;
            {
                let mut waiters = self.waiters.lock();
                if end.is_none() && !all {
                    batch[0] = waiters.next_exclusive(events, 0);
                    filled = usize::from(batch[0].is_some());
                }
                let end = *end.get_or_insert(waiters.next);
                let start = waiters.list.partition_point(|w| w.id < from);
                from = end;
                for waiter in &waiters.list[start..] {
                    if waiter.id >= end {
                        break;
                    }
                    if filled == batch.len() {
                        from = waiter.id;
                        break;
                    }
                    if waiter.wants(events) && (all || !waiter.exclusive) {
                        batch[filled] = waiter.waker.clone();
                        filled += 1;
                    }
                }
            }
            batch.into_iter().flatten().for_each(Waker::wake);
            if end.is_none_or(|end| from >= end) {
                return;
            }
        }
    }

    /// How many waiters are registered (tests look for leaks).
    #[cfg(any(test, feature = "testing"))]
    pub fn len(&self) -> usize {
        let waiters = self.waiters.lock();
        waiters.list.len() - waiters.left
    }

    /// Whether no waiter is registered.
    #[cfg(any(test, feature = "testing"))]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn all_of_many_waiters_are_woken() {
        struct Count(AtomicU32);
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        for waiters in [1, 7, 8, 9, 16, 17, 100] {
            let queue = PollQueue::new();
            let count = Arc::new(Count(AtomicU32::new(0)));
            let waker = Waker::from(count.clone());
            let all: Vec<_> = (0..waiters).map(|_| queue.register(Readiness::READ, &waker)).collect();
            queue.register(Readiness::WRITE, &waker);
            queue.wake(Readiness::READ);
            assert_eq!(count.0.load(Ordering::SeqCst), waiters);
            queue.wake(Readiness::HANGUP);
            assert_eq!(count.0.load(Ordering::SeqCst), 2 * waiters + 1);
            all.into_iter().for_each(|r| queue.unregister(r));
            assert_eq!(queue.len(), 1);
        }
    }

    #[test]
    fn many_waiters_leave_in_any_order() {
        let queue = PollQueue::new();
        for order in [1usize, 7919, 99_999] {
            let all: Vec<_> = (0..100_000).map(|_| queue.register(Readiness::READ, Waker::noop())).collect();
            // The step and the number of waiters have no common divisor, so each waiter is met
            // once.
            for step in 0..all.len() {
                queue.unregister(all[step * order % all.len()]);
                assert!(step % 1000 != 0 || queue.len() == all.len() - step - 1);
            }
            assert!(queue.is_empty() && queue.waiters.lock().list.is_empty());
        }
    }
}
