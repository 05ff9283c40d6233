//! Counts the time for which a worker's processor was free for programs.

use core::sync::atomic::{AtomicU64, Ordering};

/// The bits of a sum. It has one bit less than the time-stamp counter, which never gets that far.
const TIME: u64 = u64::MAX >> 1;

/// The ticks of the time-stamp counter for which a worker has waited. The worker writes it, all
/// workers read it. It is a single word, so that no reader counts the present wait twice or not at
/// all.
///
/// Bit 0 says whether the worker is waiting. The other bits are the sum if it is not; if it is,
/// they are the number to subtract from the counter to get the sum.
#[derive(Debug, Default)]
pub(crate) struct IdleTime(AtomicU64);

impl IdleTime {
    /// Records that the worker begins to wait.
    #[inline]
    pub(crate) fn begin(&self, now: u64) {
        // Relaxed: a reader that sees the new value late is wrong only by the time by which it is
        // late.
        let word = self.0.load(Ordering::Relaxed);
        if word & 1 == 0 {
            self.0.store(now.wrapping_sub(word >> 1) << 1 | 1, Ordering::Relaxed);
        }
    }

    /// Records that the worker begins to work.
    #[inline]
    pub(crate) fn end(&self, now: u64) {
        let word = self.0.load(Ordering::Relaxed);
        if word & 1 == 1 {
            self.0.store(now.wrapping_sub(word >> 1) << 1, Ordering::Relaxed);
        }
    }

    /// Whether the worker is waiting.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.0.load(Ordering::Relaxed) & 1 == 1
    }

    /// The ticks for which the worker has waited until `now`.
    #[inline]
    pub(crate) fn until(&self, now: u64) -> u64 {
        let word = self.0.load(Ordering::Relaxed);
        match word & 1 {
            0 => word >> 1,
            _ => now.wrapping_sub(word >> 1) & TIME,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_the_sum_of_all_waits_with_the_present_one() {
        for start in [0, 1000, TIME - 50, u64::MAX - 50] {
            let at = |time: u64| start.wrapping_add(time);
            let idle = IdleTime::default();
            assert_eq!(idle.until(at(10)), 0);
            idle.begin(at(10));
            assert_eq!(idle.until(at(30)), 20);
            idle.begin(at(30));
            idle.end(at(60));
            assert_eq!(idle.until(at(90)), 50);
            idle.end(at(95));
            idle.begin(at(100));
            assert_eq!(idle.until(at(107)), 57);
            idle.end(at(200));
            assert_eq!(idle.until(at(1000)), 150);
        }
    }
}
