//! Yielding: lets other tasks run in the middle of long work.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// Yields: the executor's other tasks run once before the future is ready.
pub fn give_turn() -> Turn {
    Turn(false)
}

/// The future of [`give_turn`]: ready when it is polled a second time.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Turn(bool);

impl Future for Turn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if core::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// A counter of steps, for work whose length a program decides. After each few steps it lets other
/// tasks run.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    every: u32,
    left: u32,
}

impl Turns {
    /// A counter that yields after each `every` steps.
    pub const fn every(every: u32) -> Turns {
        Turns { every, left: every }
    }

    /// Counts a step. Yields to other tasks after each few steps.
    pub async fn step(&mut self) {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => {
                self.left = self.every;
                give_turn().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use core::task::Waker;

    #[test]
    fn others_run_after_each_few_steps() {
        let mut work = Box::pin(async {
            let mut turns = Turns::every(3);
            for _ in 0..10 {
                turns.step().await;
            }
        });
        let mut context = Context::from_waker(Waker::noop());
        let polls = (1..).find(|_| work.as_mut().poll(&mut context).is_ready());
        assert_eq!(polls, Some(3));
    }
}
