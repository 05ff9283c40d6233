//! What benchmarks are made of, after L4bench: a test is set up, run and torn down at each value of
//! a parameter, which goes from a lower bound to an upper one by a step and a step function. What
//! it costs is printed as a line of JSON (docs/src/measuring.md); the unit cost by linear
//! regression is for `./mac bench` to find.
#![cfg_attr(not(test), no_std)]

use core::arch::asm;
use core::arch::x86_64::_rdtsc;
use core::fmt;
use core::hint::black_box;
use l4::{mark, println, thread};
use x2::control::{TimeControl, UNCHANGED};
use x2::{ThreadId, Time};

/// Gives a thread a timeslice of an hour: no measurement contains the end of it. An endless one
/// would be cheaper than the usual kind, since the kernel would not have to look how much of it is
/// left.
pub fn lengthen_timeslice(thread: ThreadId) {
    let hour = TimeControl::new(Some(Time::period(3_600_000_000)), None);
    thread::schedule(thread, hour.raw(), UNCHANGED, UNCHANGED, UNCHANGED).expect("this is its scheduler");
}

/// How one value of a parameter follows from the one before.
#[derive(Clone, Copy, Debug)]
enum Step {
    Add(u64),
    Multiply(u64),
}

/// The values of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    lower: u64,
    upper: u64,
    step: Step,
}

impl Range {
    /// The values from `lower` to `upper`, each by `step` more than the one before.
    pub const fn linear(lower: u64, upper: u64, step: u64) -> Self {
        assert!(step > 0, "it would not end");
        Self { lower, upper, step: Step::Add(step) }
    }

    /// The values from `lower` to `upper`, each `factor` times the one before.
    pub const fn geometric(lower: u64, upper: u64, factor: u64) -> Self {
        assert!(lower > 0 && factor > 1, "it would not end");
        Self { lower, upper, step: Step::Multiply(factor) }
    }

    /// The largest value of the parameter.
    pub const fn upper(self) -> u64 {
        self.upper
    }

    /// All values.
    pub fn values(self) -> impl Iterator<Item = u64> {
        let next = move |&value: &u64| {
            let next = match self.step {
                Step::Add(step) => value.checked_add(step),
                Step::Multiply(factor) => value.checked_mul(factor),
            };
            next.filter(|next| *next <= self.upper)
        };
        core::iter::successors(Some(self.lower).filter(|lower| *lower <= self.upper), next)
    }
}

/// The time-stamp counter.
pub fn now() -> u64 {
    // SAFETY: user programs may read it.
    unsafe { _rdtsc() }
}

/// Prints a measurement.
pub fn report(test: fmt::Arguments<'_>, parameter: u64, counter: &str, value: u64) {
    println!("{{\"test\":\"{test}\",\"parameter\":{parameter},\"counter\":\"{counter}\",\"value\":{value}}}");
}

/// Does `operation` so often. No compiler makes many copies of it, whose lines of code would be
/// counted.
#[inline(always)]
pub fn repeat(rounds: u64, mut operation: impl FnMut()) {
    for _ in 0..black_box(rounds) {
        operation();
    }
}

/// Ends what [`mark::begin`] began and names it: `operations` of `name` ran in it.
pub fn end_region(name: fmt::Arguments<'_>, operations: u64) {
    mark::end();
    println!("{{\"region\":\"{name}\",\"operations\":{operations}}}");
}

/// Lets the plugin count what `body` does: `operations` of `name`.
#[inline(always)]
pub fn region(name: fmt::Arguments<'_>, operations: u64, body: impl FnOnce()) {
    mark::begin();
    body();
    end_region(name, operations);
}

/// A test: at each value of `range` `set_up` makes what `run` needs, `run` gives what `counter`
/// says, and `tear_down` takes it away.
pub fn test<F>(
    name: &str,
    range: Range,
    counter: &str,
    set_up: impl FnMut(u64) -> F,
    mut run: impl FnMut(u64, &mut F) -> u64,
    tear_down: impl FnMut(u64, F),
) {
    let run = |parameter, fixture: &mut F| {
        report(format_args!("{name}"), parameter, counter, run(parameter, fixture));
    };
    at_each(range, set_up, run, tear_down);
}

fn at_each<F>(
    range: Range,
    mut set_up: impl FnMut(u64) -> F,
    mut run: impl FnMut(u64, &mut F),
    mut tear_down: impl FnMut(u64, F),
) {
    for parameter in range.values() {
        let mut fixture = set_up(parameter);
        run(parameter, &mut fixture);
        tear_down(parameter, fixture);
    }
}

/// The average duration of one of `rounds` operations.
#[inline(always)]
pub fn average(rounds: u64, operation: impl FnMut()) -> u64 {
    let start = now();
    repeat(rounds, operation);
    (now() - start) / rounds
}

/// What a loop of three instructions costs with that many rounds, by the time-stamp counter.
#[inline(never)]
pub fn empty_loop(rounds: u64) -> u64 {
    let (start_low, start_high, end_low, end_high): (u64, u64, u64, u64);
    // SAFETY: counts down a register and reads the time-stamp counter, which user programs may.
    unsafe {
        asm!(
            "rdtsc",
            "mov {start_low}, rax",
            "mov {start_high}, rdx",
            "jmp 3f",
            "2: dec {rounds}",
            "3: test {rounds}, {rounds}",
            "jnz 2b",
            "rdtsc",
            rounds = inout(reg) rounds => _,
            start_low = out(reg) start_low,
            start_high = out(reg) start_high,
            out("rax") end_low,
            out("rdx") end_high,
            options(nomem, nostack),
        );
    }
    (end_high << 32 | end_low) - (start_high << 32 | start_low)
}

/// Prints, as the test `number` called `id`, whether the time-stamp counter counts instructions:
/// else nothing that is measured by it means anything, and `./mac bench` refuses it. On one
/// processor only: of several it counts what all do.
pub fn check_counter(number: u32, id: &str) {
    // The loop runs once before it is measured, so that its page is there.
    let empty = empty_loop(0).min(empty_loop(0));
    let counted = [1, 10, 1000].iter().all(|&rounds| empty_loop(rounds) == empty + 3 * rounds);
    let not = if counted { "" } else { "not " };
    println!("{not}ok {number} - {id} the time-stamp counter counts instructions");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::vec::Vec;

    fn values(range: Range) -> Vec<u64> {
        range.values().collect()
    }

    #[test]
    fn ranges_go_by_their_step_up_to_the_upper_bound() {
        assert_eq!(values(Range::linear(0, 63, 1)).len(), 64);
        assert_eq!(values(Range::linear(5, 20, 6)), [5, 11, 17]);
        assert_eq!(values(Range::geometric(1, 256, 4)), [1, 4, 16, 64, 256]);
        assert_eq!(values(Range::geometric(1, 10_000, 10)), [1, 10, 100, 1000, 10_000]);
        assert_eq!(values(Range::linear(2, 1, 1)), [0; 0]);
        assert_eq!(values(Range::geometric(u64::MAX - 1, u64::MAX, 2)), [u64::MAX - 1]);
    }

    #[test]
    fn a_test_is_set_up_run_and_torn_down_at_each_value() {
        let steps = RefCell::new(Vec::new());
        let note = |what, parameter| steps.borrow_mut().push((what, parameter));
        at_each(
            Range::linear(1, 2, 1),
            |parameter| note("set up", parameter),
            |parameter, ()| note("run", parameter),
            |parameter, ()| note("tear down", parameter),
        );
        let expected = [1, 2].map(|parameter| ["set up", "run", "tear down"].map(|what| (what, parameter)));
        assert_eq!(steps.into_inner(), expected.concat());
    }

    #[test]
    fn repeat_does_it_so_often() {
        let mut done = 0;
        repeat(5, || done += 1);
        assert_eq!(done, 5);
    }
}
