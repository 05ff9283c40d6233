//! Wait queues: tasks that wait until a condition holds, in order of arrival.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
#[cfg(not(loom))]
use core::sync::atomic::{AtomicUsize, Ordering, fence};
use core::task::{Context, Poll, Waker};
#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering, fence};

use crate::SpinLock;

/// A place in a queue, in order of arrival.
pub(crate) type Ticket = u64;

/// The waiting tasks in order of their tickets. The primitive that contains the line protects it by
/// a lock.
pub(crate) struct Line<K> {
    next: Ticket,
    waiting: VecDeque<(Ticket, K, Waker)>,
}

impl<K> Line<K> {
    pub(crate) const fn new() -> Self {
        Self { next: 0, waiting: VecDeque::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn front(&self) -> Option<&K> {
        self.waiting.front().map(|(_, kind, _)| kind)
    }

    pub(crate) fn pop(&mut self) -> Option<(K, Waker)> {
        self.waiting.pop_front().map(|(_, kind, waker)| (kind, waker))
    }

    pub(crate) fn take(&mut self) -> VecDeque<(Ticket, K, Waker)> {
        core::mem::take(&mut self.waiting)
    }

    fn position(&self, ticket: Ticket) -> Result<usize, usize> {
        self.waiting.binary_search_by_key(&ticket, |(ticket, ..)| *ticket)
    }

    /// Adds a task at the end of the line. Returns its ticket.
    pub(crate) fn join(&mut self, kind: K, waker: Waker) -> Ticket {
        let ticket = self.next;
        self.next += 1;
        self.waiting.push_back((ticket, kind, waker));
        ticket
    }

    /// Puts a task back in the place of `ticket`, after a wake-up that was not sufficient.
    fn rejoin(&mut self, ticket: Ticket, kind: K, waker: Waker) {
        if let Err(place) = self.position(ticket) {
            self.waiting.insert(place, (ticket, kind, waker));
        }
    }

    /// Replaces the waker of a waiting task. Returns false if the task is not waiting any more.
    pub(crate) fn refresh(&mut self, ticket: Ticket, waker: &Waker) -> bool {
        match self.position(ticket) {
            Ok(place) => {
                self.waiting[place].2.clone_from(waker);
                true
            }
            Err(_) => false,
        }
    }

    /// Removes a waiting task. Returns false if it had been removed before, because it was woken or
    /// given the lock.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> bool {
        match self.position(ticket) {
            Ok(place) => self.waiting.remove(place).is_some(),
            Err(_) => false,
        }
    }
}

/// Tasks that wait for something to change.
///
/// The pattern: change the shared state, then [`wake_one`](Self::wake_one) or
/// [`wake_all`](Self::wake_all); tasks that wait use [`wait_until`](Self::wait_until) with a
/// function that checks the state. A task joins the queue *before* its last check, and the waker
/// looks at the queue *after* its change. So no wake-up is lost, whatever the order of the
/// processors.
pub struct WaitQueue {
    /// How many tasks wait. If none does, a waker need not take the lock.
    waiting: AtomicUsize,
    line: SpinLock<Line<()>>,
}

impl Default for WaitQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl WaitQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self { waiting: AtomicUsize::new(0), line: SpinLock::new(Line::new()) }
    }

    /// Waits until `look` returns a value. `look` is called at least once, and again after each
    /// wake-up, without any lock of the queue. It must not block.
    pub fn wait_until<T, F: FnMut() -> Option<T> + Unpin>(&self, look: F) -> WaitUntil<'_, F> {
        WaitUntil { queue: self, look, ticket: None }
    }

    /// Wakes the task that has waited longest. If that task's future is dropped before it runs, the
    /// next is woken instead.
    pub fn wake_one(&self) {
        if self.has_waiters() {
            let waker = {
                let mut line = self.line.lock();
                let woken = line.pop();
                self.waiting.store(line.waiting.len(), Ordering::Relaxed);
                woken
            };
            if let Some((_, waker)) = waker {
                waker.wake();
            }
        }
    }

    /// Wakes every task that waits now.
    pub fn wake_all(&self) {
        if self.has_waiters() {
            let woken: Vec<Waker> = {
                let mut line = self.line.lock();
                self.waiting.store(0, Ordering::Relaxed);
                line.take().into_iter().map(|(.., waker)| waker).collect()
            };
            woken.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether a task waits. The check is ordered after the caller's preceding change of the shared
    /// state.
    pub fn has_waiters(&self) -> bool {
        // Pairs with the fence in `poll`: either the second check of the waiting task sees the
        // caller's change, or this load sees the waiting task.
        fence(Ordering::SeqCst);
        self.waiting.load(Ordering::Relaxed) != 0
    }
}

/// The future of [`WaitQueue::wait_until`].
#[must_use = "futures do nothing unless awaited"]
pub struct WaitUntil<'a, F> {
    queue: &'a WaitQueue,
    look: F,
    ticket: Option<Ticket>,
}

impl<F> WaitUntil<'_, F> {
    /// Leaves the queue. If `pass_on` is set, a wake-up that came but was not used is passed to the
    /// next task.
    fn leave(&mut self, pass_on: bool) {
        let Some(ticket) = self.ticket.take() else { return };
        let was_waiting = {
            let mut line = self.queue.line.lock();
            let was_waiting = line.leave(ticket);
            self.queue.waiting.store(line.waiting.len(), Ordering::Relaxed);
            was_waiting
        };
        if pass_on && !was_waiting {
            self.queue.wake_one();
        }
    }
}

impl<T, F: FnMut() -> Option<T> + Unpin> Future for WaitUntil<'_, F> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        if let Some(value) = (this.look)() {
            this.leave(false);
            return Poll::Ready(value);
        }
        {
            let mut line = this.queue.line.lock();
            match this.ticket {
                None => this.ticket = Some(line.join((), context.waker().clone())),
                Some(ticket) => {
                    if !line.refresh(ticket, context.waker()) {
                        line.rejoin(ticket, (), context.waker().clone());
                    }
                }
            }
            this.queue.waiting.store(line.waiting.len(), Ordering::Relaxed);
        }
        // Pairs with the fence in `has_waiters`.
        fence(Ordering::SeqCst);
        match (this.look)() {
            Some(value) => {
                this.leave(false);
                Poll::Ready(value)
            }
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for WaitUntil<'_, F> {
    fn drop(&mut self) {
        self.leave(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Task;
    use std::sync::atomic::AtomicBool;

    fn when<'a>(queue: &'a WaitQueue, flag: &'a AtomicBool) -> impl Future<Output = ()> + 'a {
        queue.wait_until(move || flag.load(Ordering::SeqCst).then_some(()))
    }

    #[test]
    fn a_wait_that_is_ready_does_not_join_the_queue() {
        let (queue, flag) = (WaitQueue::new(), AtomicBool::new(true));
        assert!(Task::new(when(&queue, &flag)).poll().is_ready());
        assert!(!queue.has_waiters());
    }

    #[test]
    fn wakes_in_order_of_arrival() {
        let (queue, flag) = (WaitQueue::new(), AtomicBool::new(false));
        let (mut first, mut second) = (Task::new(when(&queue, &flag)), Task::new(when(&queue, &flag)));
        assert!(first.poll().is_pending() && second.poll().is_pending());
        queue.wake_one();
        assert!(first.woken() && !second.woken());
        // A task whose wake-up was not sufficient keeps its place.
        assert!(first.poll().is_pending());
        queue.wake_one();
        assert!(first.woken() && !second.woken());
        flag.store(true, Ordering::SeqCst);
        assert!(first.poll().is_ready());
        queue.wake_all();
        assert!(second.woken() && second.poll().is_ready());
        assert!(!queue.has_waiters());
    }

    #[test]
    fn a_dropped_waiter_passes_its_wake_up_on() {
        let (queue, flag) = (WaitQueue::new(), AtomicBool::new(false));
        let (mut first, mut second) = (Task::new(when(&queue, &flag)), Task::new(when(&queue, &flag)));
        assert!(first.poll().is_pending() && second.poll().is_pending());
        queue.wake_one();
        drop(first);
        assert!(second.woken());
        drop(second);
        assert!(!queue.has_waiters());
    }

    #[test]
    fn no_wake_up_is_lost_between_threads() {
        let shared = std::sync::Arc::new((WaitQueue::new(), AtomicUsize::new(0)));
        let waker = {
            let shared = shared.clone();
            std::thread::spawn(move || {
                for turn in 1..=2000 {
                    shared.1.store(turn, Ordering::SeqCst);
                    shared.0.wake_all();
                }
            })
        };
        crate::testing::block_on(
            shared.0.wait_until(|| (shared.1.load(Ordering::SeqCst) == 2000).then_some(())),
        );
        waker.join().unwrap();
    }
}
