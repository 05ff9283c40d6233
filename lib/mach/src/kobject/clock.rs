//! The time of day: the machine's time with an offset that programs set and correct.

/// How many microseconds pass while a gradual correction moves the clock by one.
const CORRECTION_RATE: u64 = 200;

/// The clock of the time of day. All times are in microseconds.
pub(super) struct Clock {
    /// The time of day when the machine started, since 1970.
    offset: u64,
    /// A gradual correction that is in progress, and the machine's time at which it began.
    correction: Option<(i64, u64)>,
}

impl Clock {
    pub(super) fn new(offset: u64) -> Self {
        Self { offset, correction: None }
    }

    /// How much of the correction has been done until `now`, the machine's time.
    fn corrected(&self, now: u64) -> i64 {
        let Some((total, began)) = self.correction else { return 0 };
        let done = i64::try_from(now.saturating_sub(began) / CORRECTION_RATE).unwrap_or(i64::MAX);
        if total < 0 { (-done).max(total) } else { done.min(total) }
    }

    /// The time of day.
    pub(super) fn time(&self, now: u64) -> u64 {
        self.offset.wrapping_add(now).wrapping_add_signed(self.corrected(now))
    }

    /// Sets the time of day, and ends a correction.
    pub(super) fn set(&mut self, now: u64, time: u64) {
        *self = Self::new(time.wrapping_sub(now));
    }

    /// Begins a correction by `total`. Returns what was left of the one before.
    pub(super) fn adjust(&mut self, now: u64, total: i64) -> i64 {
        let done = self.corrected(now);
        let left = self.correction.map_or(0, |(total, _)| total - done);
        self.offset = self.offset.wrapping_add_signed(done);
        self.correction = Some((total, now));
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_is_gradual_and_another_one_replaces_it() {
        let mut clock = Clock::new(1000);
        assert_eq!(clock.time(5), 1005);
        assert_eq!(clock.adjust(0, -10), 0);
        assert_eq!([clock.time(200), clock.time(1000), clock.time(1_000_000)], [1199, 1995, 1_000_990]);
        assert_eq!(clock.adjust(1000, 7), -5);
        assert_eq!([clock.time(1000), clock.time(10_000)], [1995, 11_002]);
        clock.set(10_000, 42);
        assert_eq!(clock.time(10_001), 43);
    }
}
