//! The interface to what the Unix core needs from the server: time and randomness.

use crate::BoxFuture;
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

/// The source of time and randomness. One instance serves the whole Unix server; tests use one with
/// a clock that they move.
pub trait Environment: Send + Sync {
    /// The time of the wall clock (CLOCK_REALTIME).
    fn realtime(&self) -> Timestamp;

    /// Time since boot, which never steps (CLOCK_MONOTONIC).
    fn monotonic(&self) -> Duration;

    /// Fills `bytes` from the system's random source; never blocks.
    fn fill_random(&self, bytes: &mut [u8]);

    /// Completes when [`Environment::monotonic`] has reached `deadline`. Dropping the future
    /// cancels the timer.
    fn sleep_until(&self, deadline: Duration) -> BoxFuture<'static, ()>;
}
