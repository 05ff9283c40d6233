//! What the kernel's operations cost in instructions, from user level to user level: kernel, stubs, partner and the
//! measuring loop included.
//!
//! A result with the name of an operation as its test and `rounds` as its parameter is to be read by its fit: the cost of
//! one operation is the cost per round. Results over registers or pages give the cost of one operation at each value.
//!
//! With two processors it is what goes from one to another, and with four how that grows, in the plugin's counts alone: one
//! time-stamp counter says nothing of what several processors do. With three it is what a trace is made of.
#![cfg_attr(target_os = "none", no_std, no_main)]

mod calls;
mod crossing;
mod extensions;
mod fixture;
mod interrupts;
mod ipc;
mod phases;
mod processors;

use core::arch::x86_64::_rdtsc;
use core::fmt;
use l4::{kip, mark, println};

l4::program!(run);

/// Rounds of an operation whose cost does not depend on anything.
const ROUNDS: [u64; 3] = [32, 64, 128];
/// Rounds over which operations with a parameter are averaged.
const AVERAGED: u64 = 64;

/// Operations that wait for something, of which an average is taken.
const PHASES: u64 = 1024;

fn now() -> u64 {
    // SAFETY: user programs may read the time-stamp counter.
    unsafe { _rdtsc() }
}

fn report(test: &str, parameter: u64, cost: u64) {
    println!(
        "{{\"test\":\"{test}\",\"parameter\":{parameter},\"counter\":\"instructions\",\"value\":{cost}}}"
    );
}

/// Ends what [`mark::begin`] began and names it: `operations` of `name` ran in it.
fn end_region(name: fmt::Arguments<'_>, operations: u64) {
    mark::end();
    println!("{{\"region\":\"{name}\",\"operations\":{operations}}}");
}

/// Lets the plugin count an operation, of which the time-stamp counter says nothing.
fn count(test: &str, mut operation: impl FnMut()) {
    // Whatever is made at the first use is there then.
    operation();
    mark::begin();
    for _ in 0..AVERAGED {
        operation();
    }
    end_region(format_args!("{test}"), AVERAGED);
}

/// As [`count`], for an operation that waits for a timer or a device. What it costs depends on when in the tick of a clock it begins:
/// each of many begins at another instant, so that their average depends little on what was measured before.
fn count_over_phases(test: &str, mut operation: impl FnMut()) {
    operation();
    mark::begin();
    for phase in 0..PHASES {
        mark::pause();
        // Ticks last about a thousand instructions; a round is three, and 7919 a prime.
        crossing::pause(1 + phase * 7919 % 1024);
        mark::go_on();
        operation();
    }
    end_region(format_args!("{test}"), PHASES);
}

/// Measures an operation by numbers of rounds.
fn measure(test: &str, mut operation: impl FnMut()) {
    count(test, &mut operation);
    for rounds in ROUNDS {
        let start = now();
        for _ in 0..rounds {
            operation();
        }
        report(test, rounds, now() - start);
    }
}

/// Measures an operation at one value of its parameter, by its average; `share` operations are in one round. At the
/// smallest values the plugin counts, too.
fn measure_at(test: &str, parameter: u64, share: u64, mut operation: impl FnMut()) {
    operation();
    if parameter <= 1 {
        mark::begin();
        for _ in 0..AVERAGED {
            operation();
        }
        end_region(format_args!("{test} at {parameter}"), AVERAGED * share);
    }
    let start = now();
    for _ in 0..AVERAGED {
        operation();
    }
    report(test, parameter, (now() - start) / (AVERAGED * share));
}

fn run() -> ! {
    println!("1..1");
    fixture::prepare();
    match kip().processor_info().processors {
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
    l4::start::halt()
}
