//! [`PollQueue`]: the waiters that are told when an object's readiness changes.

use super::Readiness;
use crate::sync::SpinLock;
use crate::{BoxFuture, Environment, NotDone};
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

/// The waiters of one object. A registration stays until it is removed, so that an edge-triggered
/// watcher sees every change; a waiter that must not miss one registers first and looks at the
/// object afterwards.
///
/// Code that changes an object calls [`PollQueue::wake`] after releasing the object's lock.
#[derive(Default)]
pub struct PollQueue {
    waiters: SpinLock<Waiters>,
}

#[derive(Default)]
struct Waiters {
    next: u64,
    /// In the order of their ids; those without a waker have left.
    list: Vec<Waiter>,
    /// How many have left.
    left: usize,
}

struct Waiter {
    id: u64,
    interest: Readiness,
    waker: Option<Waker>,
}

impl Waiters {
    fn find(&mut self, registration: Registration) -> Option<&mut Waiter> {
        let index = self.list.binary_search_by_key(&registration.0, |waiter| waiter.id).ok()?;
        self.list.get_mut(index)
    }

    /// Takes one registration out and returns its waker. On the average this takes constant time
    /// after the search, however many registrations there are: the list is cleaned up only when
    /// half of its waiters have left.
    fn take(&mut self, registration: Registration) -> Option<Waker> {
        let waker = self.find(registration)?.waker.take()?;
        self.left += 1;
        if 2 * self.left >= self.list.len() {
            self.list.retain(|waiter| waiter.waker.is_some());
            self.left = 0;
        }
        Some(waker)
    }
}

/// Names a registration in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration(u64);

impl PollQueue {
    /// A queue without waiters.
    pub const fn new() -> PollQueue {
        PollQueue { waiters: SpinLock::new(Waiters { next: 0, list: Vec::new(), left: 0 }) }
    }

    /// From now on `waker` is woken at each change that concerns `interest` (or an error or
    /// hang-up).
    pub fn register(&self, interest: Readiness, waker: &Waker) -> Registration {
        let mut waiters = self.waiters.lock();
        let id = waiters.next;
        waiters.next += 1;
        let waker = Some(waker.clone());
        waiters.list.push(Waiter { id, interest: interest | Readiness::ALWAYS, waker });
        Registration(id)
    }

    /// Replaces the waker of a registration (a future that moved to another task).
    pub fn update(&self, registration: Registration, waker: &Waker) {
        let mut waiters = self.waiters.lock();
        if let Some(Waiter { waker: Some(old), .. }) = waiters.find(registration) {
            old.clone_from(waker);
        }
    }

    /// Changes what a registration is interested in.
    pub fn set_interest(&self, registration: Registration, interest: Readiness) {
        let mut waiters = self.waiters.lock();
        if let Some(waiter) = waiters.find(registration) {
            waiter.interest = interest | Readiness::ALWAYS;
        }
    }

    /// Ends a registration.
    pub fn unregister(&self, registration: Registration) {
        // Dropped outside the lock.
        let removed = self.waiters.lock().take(registration);
        drop(removed);
    }

    /// Wakes every waiter that is interested in one of `events`. The wakers run while no lock of
    /// the queue is held.
    pub fn wake(&self, events: Readiness) {
        let mut from = 0;
        let mut end = None;
        loop {
            // A bounded batch under the lock; ids only grow, so registrations that are made later
            // are not woken.
            let mut batch: [Option<Waker>; 8] = Default::default();
            let mut filled = 0;
            {
                let waiters = self.waiters.lock();
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
                    if waiter.waker.is_some() && waiter.interest.intersects(events) {
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

    /// How many are registered (tests look for leaks).
    pub fn len(&self) -> usize {
        let waiters = self.waiters.lock();
        waiters.list.len() - waiters.left
    }

    /// Whether no waiter is registered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Repeats `attempt` until it is something else than [`NotDone::NotReady`], waiting on `queue` in
/// between. Dropping the future leaves the queue as it was.
pub fn until_ready<T, F>(queue: &PollQueue, interest: Readiness, attempt: F) -> UntilReady<'_, F>
where
    F: FnMut() -> Result<T, NotDone> + Unpin,
{
    UntilReady { queue, interest, attempt, registration: None }
}

/// The future of [`until_ready`].
pub struct UntilReady<'a, F> {
    queue: &'a PollQueue,
    interest: Readiness,
    attempt: F,
    registration: Option<Registration>,
}

impl<T, F: FnMut() -> Result<T, NotDone> + Unpin> Future for UntilReady<'_, F> {
    type Output = Result<T, NotDone>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.registration {
            Some(registration) => this.queue.update(registration, cx.waker()),
            None => match (this.attempt)() {
                Err(NotDone::NotReady) => {
                    this.registration = Some(this.queue.register(this.interest, cx.waker()));
                }
                done => return Poll::Ready(done),
            },
        }
        // Registered: a change after this attempt wakes us, a change before it is seen by it.
        match (this.attempt)() {
            Err(NotDone::NotReady) => Poll::Pending,
            done => Poll::Ready(done),
        }
    }
}

impl<F> Drop for UntilReady<'_, F> {
    fn drop(&mut self) {
        if let Some(registration) = self.registration {
            self.queue.unregister(registration);
        }
    }
}

/// As [`until_ready`], but each refused attempt may name a deadline; when that passes, the attempt
/// is repeated with `true`, and its result stands whatever it is.
pub fn until_ready_or_deadline<'a, T, F>(
    queue: &'a PollQueue,
    interest: Readiness,
    environment: &'a dyn Environment,
    attempt: F,
) -> UntilReadyOrDeadline<'a, F>
where
    F: FnMut(bool) -> Result<T, (NotDone, Option<Duration>)>,
{
    UntilReadyOrDeadline { queue, interest, environment, attempt, registration: None, sleep: None }
}

/// The future of [`until_ready_or_deadline`].
pub struct UntilReadyOrDeadline<'a, F> {
    queue: &'a PollQueue,
    interest: Readiness,
    environment: &'a dyn Environment,
    attempt: F,
    registration: Option<Registration>,
    sleep: Option<(Duration, BoxFuture<'static, ()>)>,
}

impl<F> Unpin for UntilReadyOrDeadline<'_, F> {}

impl<T, F> Future for UntilReadyOrDeadline<'_, F>
where
    F: FnMut(bool) -> Result<T, (NotDone, Option<Duration>)>,
{
    type Output = Result<T, NotDone>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.registration {
            Some(registration) => this.queue.update(registration, cx.waker()),
            None => this.registration = Some(this.queue.register(this.interest, cx.waker())),
        }
        // Registered: a change after this attempt wakes us, a change before it is seen by it.
        let deadline = match (this.attempt)(false) {
            Ok(value) => return Poll::Ready(Ok(value)),
            Err((NotDone::NotReady, deadline)) => deadline,
            Err((not_done, _)) => return Poll::Ready(Err(not_done)),
        };
        let Some(deadline) = deadline else {
            this.sleep = None;
            return Poll::Pending;
        };
        if deadline <= this.environment.monotonic() {
            return Poll::Ready((this.attempt)(true).map_err(|(not_done, _)| not_done));
        }
        if this.sleep.as_ref().is_none_or(|(until, _)| *until != deadline) {
            this.sleep = Some((deadline, this.environment.sleep_until(deadline)));
        }
        let (_, sleep) = this.sleep.as_mut().expect("just set");
        match sleep.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready((this.attempt)(true).map_err(|(not_done, _)| not_done)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<F> Drop for UntilReadyOrDeadline<'_, F> {
    fn drop(&mut self) {
        if let Some(registration) = self.registration {
            self.queue.unregister(registration);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Task;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn wakes_only_the_interested_and_leaves_nothing() {
        let shared = Arc::new((PollQueue::new(), AtomicU32::new(0)));
        let copy = shared.clone();
        let mut task = Task::new(async move {
            until_ready(&copy.0, Readiness::READ, || match copy.1.load(Ordering::SeqCst) {
                0 => Err(NotDone::NotReady),
                n => Ok(n),
            })
            .await
        });
        task.waits();
        shared.1.store(7, Ordering::SeqCst);
        shared.0.wake(Readiness::WRITE);
        task.waits();
        shared.0.wake(Readiness::READ);
        assert_eq!(task.finish(), Ok(7));
        assert!(shared.0.is_empty());
    }

    #[test]
    fn many_waiters_are_all_woken() {
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
    fn any_number_of_waiters_leave_in_any_order() {
        let queue = PollQueue::new();
        for order in [1usize, 7919, 99_999] {
            let all: Vec<_> = (0..100_000).map(|_| queue.register(Readiness::READ, Waker::noop())).collect();
            // The factors have no divisor in common with the number: each is met once.
            for step in 0..all.len() {
                queue.unregister(all[step * order % all.len()]);
                assert!(step % 1000 != 0 || queue.len() == all.len() - step - 1);
            }
            assert!(queue.is_empty() && queue.waiters.lock().list.is_empty());
        }
    }

    #[test]
    fn dropping_a_waiter_unregisters_it() {
        let queue = PollQueue::new();
        let mut future = Box::pin(until_ready(&queue, Readiness::READ, || Err::<(), _>(NotDone::NotReady)));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(&mut cx).is_pending());
        assert_eq!(queue.len(), 1);
        drop(future);
        assert!(queue.is_empty());
    }
}
