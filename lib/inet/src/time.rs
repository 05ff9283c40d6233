//! Moments, as the caller's clock counts them.

use core::ops::{Add, Sub};
use core::time::Duration;

/// A moment, in microseconds since a start that the caller chose. The caller's clock must not go
/// back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(u64);

impl Instant {
    /// The moment `micros` microseconds after the start of the caller's clock.
    pub const fn from_micros(micros: u64) -> Instant {
        Instant(micros)
    }

    /// Microseconds since the start of the caller's clock.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Milliseconds modulo 2^32: the unit of TCP's time stamps.
    pub(crate) const fn stamp(self) -> u32 {
        (self.0 / 1000) as u32
    }

    /// The time since `earlier`; nothing if that moment is still to come.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, time: Duration) -> Instant {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_add(micros))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, time: Duration) -> Instant {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_sub(micros))
    }
}
