//! What the kernel's operations cost in instructions, from user level to user level: kernel, stubs,
//! partner and the measuring loop included.
//!
//! A result with the name of an operation as its test and `rounds` as its parameter is to be read
//! by its fit: the cost of one operation is the cost per round. Results over registers or pages
//! give the cost of one operation at each value.
//!
//! With two processors it is what goes from one to another, and with four how that grows, in the
//! plugin's counts alone: one time-stamp counter says nothing of what several processors do. With
//! three it is what a trace is made of.
#![cfg_attr(target_os = "none", no_std, no_main)]

mod calls;
mod crossing;
mod extensions;
mod fixture;
mod interrupts;
mod ipc;
mod phases;
mod processors;

use bench_framework::{Range, average, check_counter, now, region, repeat};
use l4::{kip, mark, println};

l4::program!(run);

/// Rounds of an operation whose cost does not depend on anything.
const ROUNDS: Range = Range::geometric(32, 128, 2);
/// Rounds over which operations with a parameter are averaged.
const AVERAGED: u64 = 64;

/// Operations that wait for something, of which an average is taken.
const PHASES: u64 = 1024;

fn report(test: &str, parameter: u64, cost: u64) {
    bench_framework::report(format_args!("{test}"), parameter, "instructions", cost);
}

/// Lets the plugin count an operation, of which the time-stamp counter says nothing.
fn count(test: &str, mut operation: impl FnMut()) {
    // The first run makes whatever is made at the first use.
    operation();
    region(format_args!("{test}"), AVERAGED, || repeat(AVERAGED, operation));
}

/// Counts as [`count`] does, for an operation that waits for a timer or a device. Its cost depends
/// on when in the tick of a clock it begins. So each of many runs begins at another instant, and
/// their average depends little on what was measured before.
fn count_over_phases(test: &str, mut operation: impl FnMut()) {
    operation();
    region(format_args!("{test}"), PHASES, || {
        for phase in 0..PHASES {
            mark::pause();
            // Ticks last about a thousand instructions; a round is three, and 7919 a prime.
            crossing::pause(1 + phase * 7919 % 1024);
            mark::go_on();
            operation();
        }
    });
}

/// Measures an operation by numbers of rounds.
fn measure(test: &str, mut operation: impl FnMut()) {
    count(test, &mut operation);
    for rounds in ROUNDS.values() {
        let start = now();
        repeat(rounds, &mut operation);
        report(test, rounds, now() - start);
    }
}

/// Measures an operation at one value of its parameter, by its average; `share` operations are in
/// one round. At the smallest values the plugin counts, too.
fn measure_at(test: &str, parameter: u64, share: u64, mut operation: impl FnMut()) {
    operation();
    if parameter <= 1 {
        let name = format_args!("{test} at {parameter}");
        region(name, AVERAGED * share, || repeat(AVERAGED, &mut operation));
    }
    report(test, parameter, average(AVERAGED, operation) / share);
}

fn run() -> ! {
    let processors = kip().processor_info().processors;
    println!("1..{}", if processors == 1 { 2 } else { 1 });
    fixture::prepare();
    match processors {
        1 => {
            ipc::run();
            calls::run();
            extensions::run();
            interrupts::run();
        }
        2 => processors::run(),
        3 => phases::run(),
        more => crossing::run(more.into()),
    }
    println!("ok 1 - BKER0001 every operation succeeded");
    if processors == 1 {
        check_counter(2, "BKER0002");
    }
    l4::start::halt()
}
