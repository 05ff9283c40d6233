//! Waiting for an object by repeating an attempt until it does not block any more, or until a
//! deadline has passed.

use super::{PollQueue, Readiness, Registration};
use crate::{AttemptError, BoxFuture, Environment};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

/// Repeats `attempt` until its result is not [`AttemptError::WouldBlock`], waiting on `queue` in
/// between. A future that is dropped removes its registration from the queue.
pub fn until_ready<T, F>(queue: &PollQueue, interest: Readiness, attempt: F) -> UntilReady<'_, F>
where
    F: FnMut() -> Result<T, AttemptError> + Unpin,
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

impl<T, F: FnMut() -> Result<T, AttemptError> + Unpin> Future for UntilReady<'_, F> {
    type Output = Result<T, AttemptError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.registration {
            Some(registration) => {
                this.queue.update(registration, cx.waker());
            }
            None => match (this.attempt)() {
                Err(AttemptError::WouldBlock) => {
                    this.registration = Some(this.queue.register(this.interest, cx.waker()));
                }
                done => return Poll::Ready(done),
            },
        }
        // The waiter is registered: a change after this attempt wakes it, and a change before is
        // seen by the attempt.
        match (this.attempt)() {
            Err(AttemptError::WouldBlock) => Poll::Pending,
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

/// Repeats `attempt` as [`until_ready`] does. Each attempt that would block may name a deadline;
/// when that passes, the attempt is repeated with `true`, and its result is final.
pub fn until_ready_or_deadline<'a, T, F>(
    queue: &'a PollQueue,
    interest: Readiness,
    environment: &'a dyn Environment,
    attempt: F,
) -> UntilReadyOrDeadline<'a, F>
where
    F: FnMut(bool) -> Result<T, (AttemptError, Option<Duration>)>,
{
    UntilReadyOrDeadline {
        queue,
        interest,
        environment,
        attempt,
        left: None,
        registration: None,
        woken: false,
        sleep: None,
    }
}

/// The future of [`until_ready_or_deadline`].
pub struct UntilReadyOrDeadline<'a, F> {
    queue: &'a PollQueue,
    interest: Readiness,
    environment: &'a dyn Environment,
    attempt: F,
    /// For an exclusive waiter: whether the object could serve another waiter.
    left: Option<&'a (dyn Fn() -> bool + Sync)>,
    registration: Option<Registration>,
    /// This exclusive waiter has been woken, and has not yet passed on what it leaves.
    woken: bool,
    sleep: Option<(Duration, BoxFuture<'static, ()>)>,
}

impl<F> Unpin for UntilReadyOrDeadline<'_, F> {}

impl<'a, F> UntilReadyOrDeadline<'a, F> {
    /// Makes this an exclusive waiter: one of several that wait for the same change, which wakes
    /// only one of them. `left` says whether the object could serve another waiter; it is asked
    /// when this waiter was woken and has taken what it wants, or cannot use what there is.
    pub fn exclusive(mut self, left: Option<&'a (dyn Fn() -> bool + Sync)>) -> Self {
        self.left = left;
        self
    }

    /// Registers this waiter before it looks at the object, or updates its waker.
    fn register(&mut self, waker: &Waker) {
        match (self.registration, self.left) {
            (Some(registration), _) => self.woken |= self.queue.update(registration, waker),
            (None, None) => self.registration = Some(self.queue.register(self.interest, waker)),
            (None, Some(_)) => self.registration = Some(self.queue.register_exclusive(self.interest, waker)),
        }
    }

    /// Wakes the next exclusive waiter if this one was woken and leaves something for it.
    fn hand_on(&mut self, after: Option<Registration>) {
        if core::mem::take(&mut self.woken) && self.left.is_some_and(|left| left()) {
            self.queue.hand_on(after, self.interest);
        }
    }
}

impl<T, F> Future for UntilReadyOrDeadline<'_, F>
where
    F: FnMut(bool) -> Result<T, (AttemptError, Option<Duration>)>,
{
    type Output = Result<T, AttemptError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.register(cx.waker());
        // The waiter is registered: a change after this attempt wakes it, and a change before is
        // seen by the attempt.
        let deadline = match (this.attempt)(false) {
            Ok(value) => return Poll::Ready(Ok(value)),
            Err((AttemptError::WouldBlock, deadline)) => deadline,
            Err((not_done, _)) => return Poll::Ready(Err(not_done)),
        };
        this.hand_on(this.registration);
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
            self.woken |= self.queue.leave(registration);
            self.hand_on(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;
    use crate::testing::{Task, TestEnvironment};
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Mutex};

    /// A source of numbers for which several tasks wait.
    #[derive(Default)]
    struct Source {
        queue: PollQueue,
        numbers: Mutex<VecDeque<u32>>,
        attempts: Mutex<u32>,
    }

    impl Source {
        fn put(&self, number: u32) {
            self.numbers.lock().unwrap().push_back(number);
            self.queue.wake(Readiness::READ);
        }

        fn attempts(&self) -> u32 {
            std::mem::take(&mut self.attempts.lock().unwrap())
        }

        /// Waits as an exclusive waiter for a number that is at least `least`.
        async fn take(&self, environment: &dyn Environment, least: u32) -> Result<u32, AttemptError> {
            let left = || !self.numbers.lock().unwrap().is_empty();
            until_ready_or_deadline(&self.queue, Readiness::READ, environment, |_| {
                *self.attempts.lock().unwrap() += 1;
                let mut numbers = self.numbers.lock().unwrap();
                let found = numbers.iter().position(|number| *number >= least);
                found.and_then(|at| numbers.remove(at)).ok_or((AttemptError::WouldBlock, None))
            })
            .exclusive(Some(&left))
            .await
        }
    }

    /// A source, and a task for each element of `least` that waits for a number of at least that.
    fn waiting(least: &[u32]) -> (Arc<Source>, Vec<Task<Result<u32, AttemptError>>>) {
        let (source, environment) = (Arc::new(Source::default()), TestEnvironment::new());
        let mut tasks: Vec<_> = least
            .iter()
            .map(|&least| {
                let (source, environment) = (source.clone(), environment.clone());
                Task::new(async move { source.take(&*environment, least).await })
            })
            .collect();
        tasks.iter_mut().for_each(|task| task.waits());
        source.attempts();
        (source, tasks)
    }

    #[test]
    fn a_change_wakes_one_exclusive_waiter() {
        let (source, mut tasks) = waiting(&[0; 5]);
        source.put(1);
        let mut done: Vec<_> = tasks.iter_mut().map(|task| task.run()).collect();
        assert_eq!((done.remove(0), source.attempts()), (Some(Ok(1)), 1), "the first, and no other");
        assert!(done.into_iter().all(|done| done.is_none()));
        // Two changes before any of the waiters runs wake two of them.
        source.put(2);
        source.put(3);
        let done: Vec<_> = tasks[1..].iter_mut().filter_map(|task| task.run()).collect();
        assert_eq!(done, [Ok(2), Ok(3)]);
        assert_eq!(
            source.attempts(),
            3,
            "what the first of them left there was for a third, if the second had not taken it"
        );
    }

    #[test]
    fn what_a_woken_waiter_leaves_wakes_the_next() {
        let (source, mut tasks) = waiting(&[0; 3]);
        source.numbers.lock().unwrap().extend([1, 2, 3]);
        source.queue.wake(Readiness::READ);
        let done: Vec<_> = tasks.iter_mut().map(|task| task.run()).collect();
        assert_eq!(done, [Some(Ok(1)), Some(Ok(2)), Some(Ok(3))]);
        assert!(source.queue.is_empty());
    }

    #[test]
    fn a_woken_waiter_that_is_interrupted_wakes_the_next() {
        let (source, mut tasks) = waiting(&[0; 3]);
        source.put(1);
        drop(tasks.remove(0));
        assert_eq!((tasks[0].run(), tasks[1].run(), source.attempts()), (Some(Ok(1)), None, 1));
    }

    #[test]
    fn a_change_that_the_woken_waiter_cannot_use_wakes_one_that_can() {
        let (source, mut tasks) = waiting(&[9, 8, 1, 1]);
        source.put(3);
        let done: Vec<_> = tasks.iter_mut().map(|task| task.run()).collect();
        assert_eq!((done, source.attempts()), (vec![None, None, Some(Ok(3)), None], 3));
        // The waiters that could not use the first number are woken again by one that they can use.
        source.put(9);
        assert_eq!(tasks[0].run(), Some(Ok(9)));
    }

    #[test]
    fn the_end_of_the_object_wakes_all_exclusive_waiters() {
        let (source, mut tasks) = waiting(&[0; 20]);
        source.numbers.lock().unwrap().extend(0..20);
        source.queue.wake(Readiness::READ | Readiness::HANGUP);
        let done: Vec<_> = tasks.iter_mut().rev().filter_map(|task| task.run()).collect();
        assert_eq!(done.len(), 20, "in whichever order they run");
    }

    #[test]
    fn a_waiter_that_is_woken_again_while_it_looks_misses_no_change() {
        let (source, mut tasks) = waiting(&[0]);
        source.queue.wake(Readiness::READ);
        source.queue.wake(Readiness::READ);
        tasks[0].waits();
        source.put(1);
        assert_eq!(tasks[0].run(), Some(Ok(1)));
    }

    #[test]
    fn a_change_wakes_only_interested_waiters_and_leaves_no_registration() {
        let shared = Arc::new((PollQueue::new(), AtomicU32::new(0)));
        let copy = shared.clone();
        let mut task = Task::new(async move {
            until_ready(&copy.0, Readiness::READ, || match copy.1.load(Ordering::SeqCst) {
                0 => Err(AttemptError::WouldBlock),
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
    fn a_dropped_waiter_is_unregistered() {
        let queue = PollQueue::new();
        let mut future =
            Box::pin(until_ready(&queue, Readiness::READ, || Err::<(), _>(AttemptError::WouldBlock)));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(&mut cx).is_pending());
        assert_eq!(queue.len(), 1);
        drop(future);
        assert!(queue.is_empty());
    }
}
