//! Scheduling: policies, the 32 levels of Mach, and ageing by use.
//!
//! The machine schedules threads by fixed priorities; threads of one priority run in turn.
//! Time-sharing is built on that by changing a thread's priority with its use of the processor.
//! This is done once a second at most, by the processor time that the machine has counted, so the
//! server needs no clock ticks. A thread that has not run since the last time costs one comparison.

/// Levels of priority; 0 is the most urgent.
pub const LEVELS: u8 = 32;
/// The level of a time-sharing thread that has used nothing, unless another base is set.
pub const BASE_LEVEL: u8 = 12;
/// How often threads are aged, in microseconds.
pub const AGE_INTERVAL: u64 = 1_000_000;
/// The decayed processor time in microseconds that lowers a thread by a level. A thread that always
/// runs has 8/3 seconds in the long run, and is 19 levels lower: from the base to the last level.
const LEVEL_COST: u64 = 140_000;

/// A scheduling policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The priority falls from the base as the thread uses the processor.
    TimeSharing,
    /// The priority is always the base. After its time slice the thread gives way to others of its
    /// level.
    FixedPriority {
        /// The time slice in microseconds; 0: the thread runs until it blocks.
        slice: u32,
    },
}

/// The range of the machine's priorities to which Mach's levels are mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityRange {
    /// The machine's priority for level 31.
    pub lowest: u8,
    /// The machine's priority for level 0.
    pub highest: u8,
}

impl Default for PriorityRange {
    fn default() -> Self {
        Self { lowest: 32, highest: 94 }
    }
}

impl PriorityRange {
    /// The machine's priority for a level.
    pub fn priority(self, level: u8) -> u8 {
        let span = u16::from(self.highest.saturating_sub(self.lowest));
        self.highest - (span * u16::from(level.min(LEVELS - 1)) / u16::from(LEVELS - 1)) as u8
    }
}

/// The recent use of the processor by a thread. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentUse {
    /// The processor time used, multiplied by 5/8 in each interval.
    decayed: u64,
    /// The thread's total processor time at the last reading.
    seen: u64,
    /// Until when the use has decayed.
    at: u64,
}

impl RecentUse {
    /// The use by a thread that starts now and has used `time` before.
    pub fn starting(now: u64, time: u64) -> Self {
        Self { decayed: 0, seen: time, at: now }
    }

    /// The use with which a thread begins that this one makes now, and that has used no time.
    pub fn inherited(&self) -> Self {
        Self { seen: 0, ..*self }
    }

    /// Adds the processor time that was used until `now`. `time` is the total since the start. How
    /// often this is called makes no difference to how the use decays.
    pub fn age(&mut self, now: u64, time: u64) {
        let intervals = now.saturating_sub(self.at) / AGE_INTERVAL;
        for _ in 0..intervals.min(64) {
            self.decayed = self.decayed * 5 / 8;
        }
        self.at += intervals * AGE_INTERVAL;
        self.decayed += time.saturating_sub(self.seen);
        self.seen = time;
    }

    /// Makes the use at least that of `other`, which has decayed until the same time.
    pub fn raise_to(&mut self, other: &Self) {
        self.decayed = self.decayed.max(other.decayed);
    }

    /// The level of a time-sharing thread with this base level.
    pub fn level(&self, base: u8) -> u8 {
        let sunk = (self.decayed / LEVEL_COST).min(u64::from(LEVELS));
        (u64::from(base) + sunk).min(u64::from(LEVELS - 1)) as u8
    }

    /// The share of a processor that was used lately, in per cent.
    pub(super) fn percent(&self) -> u8 {
        (self.decayed * 3 / 8 * 100 / AGE_INTERVAL).min(100) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_always_runs_sinks_to_the_end_and_rises_when_it_rests() {
        let mut usage = RecentUse::starting(0, 0);
        let mut levels = Vec::new();
        for second in 1..=20 {
            usage.age(second * AGE_INTERVAL, second * AGE_INTERVAL);
            levels.push(usage.level(BASE_LEVEL));
        }
        assert!(levels.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!((levels[0], levels[19]), (BASE_LEVEL + 7, LEVELS - 1));
        assert!(usage.percent() >= 99);
        usage.age(40 * AGE_INTERVAL, 20 * AGE_INTERVAL);
        assert_eq!(usage.level(BASE_LEVEL), BASE_LEVEL);
    }

    #[test]
    fn half_the_processor_is_a_level_between() {
        let mut usage = RecentUse::starting(0, 0);
        (1..=30).for_each(|second| usage.age(second * AGE_INTERVAL, second * AGE_INTERVAL / 2));
        assert_eq!(usage.level(BASE_LEVEL), BASE_LEVEL + 9);
        assert!((48..=51).contains(&usage.percent()));
    }

    #[test]
    fn frequent_readings_do_not_change_how_use_decays() {
        let (mut often, mut seldom) = (RecentUse::starting(0, 0), RecentUse::starting(0, 0));
        // The readings end just before and just after the end of an interval.
        for tenth in 1..=109 {
            often.age(tenth * AGE_INTERVAL / 10, tenth * AGE_INTERVAL / 10);
        }
        (1..=11).for_each(|second| seldom.age(second * AGE_INTERVAL, second * AGE_INTERVAL));
        assert!(often.decayed.abs_diff(seldom.decayed) <= AGE_INTERVAL / 8, "{often:?} {seldom:?}");
    }

    #[test]
    fn levels_map_to_the_whole_range_of_priorities() {
        let range = PriorityRange { lowest: 10, highest: 250 };
        assert_eq!((range.priority(0), range.priority(31), range.priority(200)), (250, 10, 10));
        assert!((1..LEVELS).all(|level| range.priority(level) < range.priority(level - 1)));
        assert_eq!(PriorityRange { lowest: 7, highest: 7 }.priority(3), 7);
    }
}
