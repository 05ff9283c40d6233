//! Waiting with an end: by time, or by `thread_abort`.

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
    /// The thread's wait is to end.
    Interrupted,
}

/// What ends the waits of one thread early, as Mach's `thread_abort` does.
#[derive(Default)]
pub struct Interruption(SpinLock<State>);

impl Interruption {
    /// Of a thread that does not wait.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the wait of the thread for a message or for room in a queue; false if it is in none.
    /// Nothing that has begun to be sent or received is undone.
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

    /// Waits for a result until the time, in microseconds of the machine, or an interruption.
    ///
    /// # Errors
    /// What has ended the wait.
    pub(super) async fn wait<M: Machine, T>(
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

/// Why a wait ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    TimedOut,
    Interrupted,
}

/// The thread does not wait any more, however its wait has ended.
struct Idle<'a>(&'a Interruption);

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        let before = core::mem::take(&mut *self.0.0.lock());
        drop(before);
    }
}
