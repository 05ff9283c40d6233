//! How threads share the processors (sched(7)): policies, real-time priorities, nice values, and
//! what they are for the machine.
//!
//! The machine runs the threads of the highest priority in turn, each for its time slice. Threads
//! without real time have slices by their nice values. While they wait for each other, their
//! priorities fall with what their processes use ([`crate::process::BOTTOM`]): those that compute
//! have the lowest one, and each gets its share. Real-time threads have higher priorities, which
//! do not change.

use crate::process::BOTTOM;
use core::time::Duration;

/// A scheduling policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The thread shares the processor by its nice value (SCHED_OTHER).
    #[default]
    Other,
    /// The same, for a thread that computes (SCHED_BATCH).
    Batch,
    /// The thread has the smallest share that there is (SCHED_IDLE).
    Idle,
    /// The thread has a real-time priority, and runs until it waits (SCHED_FIFO).
    Fifo,
    /// The thread has a real-time priority, and takes turns with others of it (SCHED_RR).
    RoundRobin,
}

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The policy.
    pub policy: Policy,
    /// The real-time priority, 1 (least urgent) to [`PRIORITIES`]; 0 for the other policies.
    pub priority: u8,
    /// Whether new threads and processes of the thread begin without real time and with a nice
    /// value that is not negative (SCHED_RESET_ON_FORK).
    pub is_reset: bool,
}

/// By how much the waits of a thread may be longer than their time limits, in nanoseconds, so that
/// what ends at nearly the same time ends together (PR_SET_TIMERSLACK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerSlack {
    /// The slack at this moment.
    pub now: u64,
    /// The slack with which the thread began.
    pub first: u64,
}

impl TimerSlack {
    /// The slack of the first thread.
    pub const INITIAL: TimerSlack = TimerSlack::of(50_000);

    const fn of(nanoseconds: u64) -> TimerSlack {
        TimerSlack { now: nanoseconds, first: nanoseconds }
    }

    /// The slack of a new thread of the thread.
    pub fn inherited(self) -> TimerSlack {
        TimerSlack::of(self.now)
    }
}

/// The highest real-time priority.
pub const PRIORITIES: u8 = 99;
/// How long a thread of policy SCHED_RR runs before another of its priority.
pub const ROUND_ROBIN: Duration = Duration::from_millis(100);
/// How long a thread with nice value 0 runs before another.
pub const SLICE: Duration = Duration::from_millis(10);

/// The machine's priority for threads without real time, and for the real-time priorities. The
/// server has a higher one.
const BASE: u8 = 100;
const _: () = assert!(BOTTOM < BASE);
const REAL_TIME: core::ops::RangeInclusive<u8> = 101..=118;
/// The shortest and the longest time slice. A shorter one would go by in the switch itself, and a
/// longer one would let others wait for too long.
const SLICES: core::ops::RangeInclusive<u32> = 1_000..=200_000;

impl Schedule {
    /// Whether a thread of a process with this nice value and level is scheduled as the machine
    /// schedules a new thread.
    pub fn is_usual(self, nice: i8, level: u8) -> bool {
        matches!(self.policy, Policy::Other | Policy::Batch) && nice == 0 && level == 0
    }

    /// Whether the policy is a real-time policy.
    pub fn is_real_time(self) -> bool {
        matches!(self.policy, Policy::Fifo | Policy::RoundRobin)
    }

    /// How a new thread of the thread is scheduled, and its nice value.
    pub fn inherited(self, nice: i8) -> (Schedule, i8) {
        match self.is_reset {
            true if self.is_real_time() => (Schedule::default(), 0),
            true => (Schedule { is_reset: false, ..self }, nice.max(0)),
            false => (self, nice),
        }
    }

    /// How long the thread runs before another of its priority; zero: until it waits.
    pub fn turn(self, nice: i8) -> Duration {
        match self.policy {
            Policy::Fifo => Duration::ZERO,
            Policy::RoundRobin => ROUND_ROBIN,
            Policy::Idle => Duration::from_micros((*SLICES.start()).into()),
            Policy::Other | Policy::Batch => Duration::from_micros(slice(nice).into()),
        }
    }

    /// The machine's priority for a thread of a process that has sunk by `level` levels (at most
    /// [`BOTTOM`]), and the time slice in microseconds; 0 for one without end.
    pub fn for_machine(self, nice: i8, level: u8) -> (u8, u32) {
        let priority = match self.is_real_time() {
            true => {
                let (lowest, span) = (*REAL_TIME.start(), REAL_TIME.end() - REAL_TIME.start());
                lowest + (u16::from(self.priority - 1) * u16::from(span) / u16::from(PRIORITIES - 1)) as u8
            }
            false => BASE - level.min(BOTTOM),
        };
        (priority, self.turn(nice).as_micros() as u32)
    }
}

/// The time slice for a nice value, in microseconds: a step is a fourth more, or a fifth less.
fn slice(nice: i8) -> u32 {
    let mut slice = SLICE.as_micros() as u32;
    for _ in 0..nice.unsigned_abs() {
        slice = if nice < 0 { slice * 5 / 4 } else { slice * 4 / 5 };
    }
    slice.clamp(*SLICES.start(), *SLICES.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_nice_value_has_a_longer_slice() {
        let slices: Vec<u32> = (-20..20).map(slice).collect();
        assert!(slices.windows(2).all(|pair| pair[0] >= pair[1]));
        assert_eq!((slices[0], slices[20], slices[39]), (200_000, 10_000, 1_000));
        assert_eq!((slice(-1), slice(1), slice(10)), (12_500, 8_000, 1_072));
    }

    #[test]
    fn real_time_priorities_are_above_all_nice_values() {
        let machine = |policy, priority| Schedule { policy, priority, is_reset: false }.for_machine(-20, 0);
        assert_eq!(machine(Policy::Other, 0), (100, 200_000));
        assert_eq!(machine(Policy::Idle, 0), (100, 1_000));
        assert_eq!(machine(Policy::Fifo, 1), (101, 0));
        assert_eq!(machine(Policy::RoundRobin, 99), (118, 100_000));
        assert_eq!(machine(Policy::Fifo, 50), (109, 0));
    }

    #[test]
    fn use_lowers_all_but_real_time_threads() {
        let machine =
            |policy, priority, level| Schedule { policy, priority, is_reset: false }.for_machine(0, level).0;
        assert_eq!([0, 3, BOTTOM, u8::MAX].map(|level| machine(Policy::Other, 0, level)), [100, 97, 90, 90]);
        assert_eq!([0, BOTTOM].map(|level| machine(Policy::RoundRobin, 1, level)), [101, 101]);
        let other = Schedule::default();
        assert!(other.is_usual(0, 0) && !other.is_usual(0, 1) && !other.is_usual(1, 0));
    }

    #[test]
    fn real_time_is_not_inherited_if_that_is_asked_for() {
        let fifo = Schedule { policy: Policy::Fifo, priority: 3, is_reset: false };
        assert_eq!(fifo.inherited(-5), (fifo, -5));
        assert_eq!(Schedule { is_reset: true, ..fifo }.inherited(-5), (Schedule::default(), 0));
        let batch = Schedule { policy: Policy::Batch, priority: 0, is_reset: true };
        assert_eq!(batch.inherited(-5), (Schedule { is_reset: false, ..batch }, 0));
        assert_eq!(batch.inherited(5).1, 5);
    }
}
