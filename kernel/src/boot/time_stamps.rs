//! One time for all processors: their time-stamp counters are compared when they have started, and
//! set forward where they lag. No counter is ever set back.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The time-stamp counter of the calling processor.
pub trait Counter {
    /// The counter's value, read after everything that comes before in the program.
    fn read(&self) -> u64;

    /// Sets the counter forward.
    fn advance(&self, ticks: u64);
}

/// By how many ticks one counter lags another, at least. It can be more: a reading of one processor
/// becomes known to another only later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Differences {
    /// The largest difference that was found at first.
    pub found: u64,
    /// The largest difference that is left after the adjustment.
    pub left: u64,
}

/// Comparisons before counters that cannot be set are left as they are.
const ROUNDS: usize = 6;
/// Readings of each processor in a comparison.
const READINGS: u32 = 1000;

/// The data that the processors share during the comparison.
pub struct Comparison {
    /// The latest time that any processor has read.
    latest: AtomicU64,
    /// How many times processors have arrived at a point where all of them meet.
    arrivals: AtomicU32,
    /// The most that any counter lagged, in each round.
    behind: [AtomicU64; ROUNDS],
}

impl Comparison {
    /// Before the first round.
    #[expect(clippy::new_without_default, reason = "a default is no constant")]
    pub const fn new() -> Self {
        Self {
            latest: AtomicU64::new(0),
            arrivals: AtomicU32::new(0),
            behind: [const { AtomicU64::new(0) }; ROUNDS],
        }
    }

    /// Makes the counters agree. Each of `processors` calls this once, with its own counter, and
    /// none returns before all have come to the end.
    pub fn take_part(&self, processors: u32, counter: &impl Counter) -> Differences {
        let mut meetings = 0;
        let mut meet = || {
            meetings += 1;
            // AcqRel and Acquire: what each did before, all see afterwards.
            self.arrivals.fetch_add(1, Ordering::AcqRel);
            while self.arrivals.load(Ordering::Acquire) < meetings * processors {
                spin_loop();
            }
        };
        let mut differences = Differences { found: 0, left: 0 };
        for (round, behind) in self.behind.iter().enumerate() {
            meet();
            // Each has a reading of every other before it compares, even if it is so late that the
            // others have made all of theirs, or so early that they have made none.
            self.latest.fetch_max(counter.read(), Ordering::AcqRel);
            meet();
            let own = self.own_difference(counter);
            behind.fetch_max(own, Ordering::Relaxed);
            meet();
            differences.left = behind.load(Ordering::Relaxed);
            if round == 0 {
                differences.found = differences.left;
            }
            if differences.left == 0 {
                break;
            }
            if own > 0 && round < ROUNDS - 1 {
                counter.advance(own);
            }
        }
        differences
    }

    /// By how much this counter lagged the readings of other processors, while all of them read in
    /// turn.
    fn own_difference(&self, counter: &impl Counter) -> u64 {
        let mut behind = 0;
        for _ in 0..READINGS {
            let latest = self.latest.load(Ordering::Acquire);
            let now = counter.read();
            self.latest.fetch_max(now, Ordering::AcqRel);
            behind = behind.max(latest.saturating_sub(now));
            spin_loop();
        }
        behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// A counter of a processor: what all have in common, and how far this one is from it.
    struct Simulated<'a> {
        time: &'a AtomicU64,
        ahead: AtomicU64,
        can_be_set: bool,
    }

    impl Counter for Simulated<'_> {
        fn read(&self) -> u64 {
            // The test's threads yield, so that processors get on even where there are fewer of
            // them.
            thread::yield_now();
            self.time.fetch_add(1, Ordering::SeqCst) + self.ahead.load(Ordering::Relaxed)
        }

        fn advance(&self, ticks: u64) {
            if self.can_be_set {
                self.ahead.fetch_add(ticks, Ordering::Relaxed);
            }
        }
    }

    /// The counters' lead in the end and what the processors found, if the counters were `ahead` at
    /// first.
    fn compared(ahead: &[u64], can_be_set: bool) -> (Vec<u64>, Differences) {
        let (time, comparison) = (AtomicU64::new(1), Comparison::new());
        let counter = |&ahead| Simulated { time: &time, ahead: AtomicU64::new(ahead), can_be_set };
        let counters: Vec<_> = ahead.iter().map(counter).collect();
        let said: Vec<_> = thread::scope(|scope| {
            let take_part = |counter| comparison.take_part(ahead.len() as u32, counter);
            let threads: Vec<_> =
                counters.iter().map(|counter| scope.spawn(move || take_part(counter))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(said.iter().all(|differences| *differences == said[0]), "all say the same");
        (counters.into_iter().map(|counter| counter.ahead.into_inner()).collect(), said[0])
    }

    const FAR: u64 = 1 << 40;
    /// More ticks than pass during all readings together.
    const NEAR: u64 = 1 << 20;

    #[test]
    fn counters_that_agree_are_left_alone() {
        assert_eq!(compared(&[7, 7, 7], true), (vec![7, 7, 7], Differences { found: 0, left: 0 }));
    }

    #[test]
    fn those_that_are_behind_are_set_forward() {
        let (ahead, differences) = compared(&[FAR, 0, FAR / 2], true);
        assert_eq!(ahead[0], FAR, "no other is ahead of it");
        assert!(ahead[1..].iter().all(|&ahead| ahead > FAR - NEAR && ahead <= FAR), "{ahead:?}");
        assert!(differences.found > FAR - NEAR && differences.found <= FAR, "{differences:?}");
        assert_eq!(differences.left, 0);
    }

    #[test]
    fn the_first_processor_can_be_the_one_that_is_behind() {
        let (ahead, differences) = compared(&[0, FAR], true);
        assert!(
            ahead[0] > FAR - NEAR && ahead[1] == FAR && differences.left == 0,
            "{ahead:?} {differences:?}"
        );
    }

    #[test]
    fn what_cannot_be_set_is_told() {
        let (ahead, differences) = compared(&[0, FAR], false);
        assert_eq!(ahead, [0, FAR]);
        assert!(differences.left > FAR - NEAR);
    }
}
