//! Futures that concern time: sleeping, deadlines, and yielding to other tasks.

use super::timers::TimerId;
use super::{Executor, Instant, Platform};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// The future of [`Executor::sleep_until`]. It is never ready before its deadline. Dropping it
/// disarms the timer.
pub struct SleepUntil<P: Platform> {
    executor: Executor<P>,
    worker: usize,
    deadline: Instant,
    timer: Option<TimerId>,
}

impl<P: Platform> SleepUntil<P> {
    pub(super) fn new(executor: Executor<P>, worker: usize, deadline: Instant) -> Self {
        SleepUntil { executor, worker, deadline, timer: None }
    }
}

impl<P: Platform> Future for SleepUntil<P> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let group = &this.executor.0;
        let shared = &group.workers[this.worker];
        if group.platform.now() >= this.deadline {
            return Poll::Ready(());
        }
        match this.timer {
            Some(timer) => shared.timers.rearm(timer, context.waker()),
            None => match shared.timers.arm(this.deadline, context.waker()) {
                Ok((timer, earliest)) => {
                    this.timer = Some(timer);
                    if earliest && shared.queue.rouse() {
                        group.platform.notify(this.worker);
                    }
                }
                // There is no memory for a timer, so the task is polled repeatedly until its time
                // has come. That is slow, but correct.
                Err(_) => context.waker().wake_by_ref(),
            },
        }
        Poll::Pending
    }
}

impl<P: Platform> Drop for SleepUntil<P> {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            self.executor.0.workers[self.worker].timers.cancel(timer);
        }
    }
}

/// A future that is ready at its second poll: the worker's other ready tasks run first.
#[derive(Debug, Default)]
pub struct YieldNow {
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if core::mem::replace(&mut self.yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
