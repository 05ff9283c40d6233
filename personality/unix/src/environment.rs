//! The interface to what the Unix core needs from the server: time and randomness.

use crate::hardware_clock::HardwareClock;
use crate::poll::{PollQueue, Readiness, until_ready};
use crate::{AttemptError, BoxFuture, Error, Result};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

/// A time of the wall clock: seconds since 1970-01-01 00:00:00 UTC and nanoseconds (below
/// 1,000,000,000) after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970-01-01 00:00:00 UTC.
    pub seconds: i64,
    /// Nanoseconds after the second, 0..1,000,000,000.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// The time that is so much earlier.
    pub fn before(self, age: Duration) -> Timestamp {
        let nanoseconds = i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanoseconds);
        let earlier = nanoseconds - age.as_nanos() as i128;
        Timestamp {
            seconds: earlier.div_euclid(1_000_000_000) as i64,
            nanoseconds: earlier.rem_euclid(1_000_000_000) as u32,
        }
    }
}

/// The source of time and randomness. One instance serves the whole Unix server; tests use one with
/// a clock that they move.
pub trait Environment: Send + Sync {
    /// The time of the wall clock (CLOCK_REALTIME).
    fn realtime(&self) -> Timestamp;

    /// Says what time it is at least: the clock that [`Environment::realtime`] reads steps forward
    /// if it is late. It never steps back. A system whose clock is right by itself need not
    /// listen.
    fn advance_to(&self, _least: Timestamp) {}

    /// Sets the wall clock, also back. [`advance_to`](Environment::advance_to) has no effect any
    /// more, since the administrator knows better. Sleeps and timers that have begun keep their
    /// ends.
    ///
    /// # Errors
    /// `EPERM`: the clock cannot be set. `EINVAL`: the system was started after this time, as that
    /// is counted from 1970, or the clock cannot reach it.
    fn set_realtime(&self, _time: Timestamp) -> Result<()> {
        Err(Error::EPERM)
    }

    /// The clock that runs while the machine is off, if there is one.
    fn hardware_clock(&self) -> Option<&dyn HardwareClock> {
        None
    }

    /// Time since boot, which never steps (CLOCK_MONOTONIC).
    fn monotonic(&self) -> Duration;

    /// Fills `bytes` from the system's random source; never blocks.
    fn fill_random(&self, bytes: &mut [u8]);

    /// Mixes bytes into the random source, which a program may know or not. What the source had
    /// before is not lost. Never blocks.
    fn stir(&self, bytes: &[u8]);

    /// The seeding of the random source, if it may not have ended yet. Until then the bytes of
    /// [`fill_random`](Environment::fill_random) might be guessed.
    fn seeding(&self) -> Option<&Seeding> {
        None
    }

    /// Completes when [`Environment::monotonic`] has reached `deadline`. Dropping the future
    /// cancels the timer.
    fn sleep_until(&self, deadline: Duration) -> BoxFuture<'static, ()>;
}

/// Whether the random source has been seeded, and the tasks that wait for that.
#[derive(Default)]
pub struct Seeding {
    is_seeded: AtomicBool,
    queue: PollQueue,
}

impl Seeding {
    /// Whether the random source has been seeded.
    pub fn is_seeded(&self) -> bool {
        self.is_seeded.load(Ordering::Acquire)
    }

    /// Says that the random source has been seeded, and wakes the tasks that wait for that.
    pub fn finish(&self) {
        self.is_seeded.store(true, Ordering::Release);
        self.queue.wake(Readiness::READ);
    }

    /// Waits until the random source has been seeded.
    pub async fn finished(&self) {
        let attempt = || self.is_seeded().then_some(()).ok_or(AttemptError::WouldBlock);
        // The attempt has no error but that it would block, after which it is repeated.
        let _ = until_ready(&self.queue, Readiness::READ, attempt).await;
    }

    /// The tasks that wait.
    pub fn queue(&self) -> &PollQueue {
        &self.queue
    }
}
