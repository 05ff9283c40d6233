//! Waits of a thread that a time or `thread_abort` can end.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Poll, Waker};

use macadamia_sync::SpinLock;

use crate::machine::Machine;

#[derive(Default)]
enum State {
    /// The thread does not wait.
    #[default]
    Idle,
    Waiting(Waker),
    /// `interrupt` was called, and the wait has not ended yet.
    Interrupted,
}

/// Ends waits of one thread early, as Mach's `thread_abort` does. Each thread has one value.
#[derive(Default)]
pub struct Interruption(SpinLock<State>);

impl Interruption {
    /// An interruption for a thread that does not wait.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the thread's wait for a message or for room in a queue, and returns true; returns false
    /// if the thread is not in such a wait. Nothing that the thread has begun to send or receive is
    /// undone. Never blocks.
    pub fn interrupt(&self) -> bool {
        let before = {
            let mut state = self.0.lock();
            match &*state {
                State::Waiting(_) => core::mem::replace(&mut *state, State::Interrupted),
                _ => return false,
            }
        };
        if let State::Waiting(waker) = before {
            waker.wake();
        }
        true
    }

    /// Waits for `result` until the time `until`, in microseconds of the machine, or until an
    /// interruption. With `None` only an interruption ends the wait early.
    ///
    /// # Errors
    /// The time or the interruption that ended the wait.
    pub(crate) async fn wait<M: Machine, T>(
        &self,
        machine: &M,
        until: Option<u64>,
        result: impl Future<Output = T>,
    ) -> Result<T, Ended> {
        let mut result = pin!(result);
        let mut timer = pin!(async {
            match until {
                Some(until) => machine.sleep_until(until).await,
                None => core::future::pending().await,
            }
        });
        let _idle = Idle(self);
        poll_fn(|context| {
            if let Poll::Ready(value) = result.as_mut().poll(context) {
                return Poll::Ready(Ok(value));
            }
            let interrupted = {
                let mut state = self.0.lock();
                let before = core::mem::replace(&mut *state, State::Waiting(context.waker().clone()));
                matches!(before, State::Interrupted)
            };
            if interrupted {
                return Poll::Ready(Err(Ended::Interrupted));
            }
            timer.as_mut().poll(context).map(|()| Err(Ended::TimedOut))
        })
        .await
    }
}

/// What ended a wait that has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    TimedOut,
    Interrupted,
}

/// Records, when it is dropped, that the thread waits no more. It does so too if the thread's
/// future is dropped in the middle of the wait.
struct Idle<'a>(&'a Interruption);

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        let before = core::mem::take(&mut *self.0.0.lock());
        drop(before);
    }
}
