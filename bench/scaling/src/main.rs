//! How cost and memory grow: with threads of consecutive and of sparse ids, with spaces, with timeouts, with threads that
//! are ready, with the pages and the mappings of an Unmap. In the end the longest operations, whose stretches without a look
//! for interrupts the plugin measures.
//!
//! `bytes` are those of kernel memory in use beyond what was in use before; `instructions` are from user level to user
//! level. What should not grow is measured with nobody else there and with many.
#![cfg_attr(target_os = "none", no_std, no_main)]

mod cost;
mod latency;
mod memory;
mod unmap;
mod world;

use core::arch::x86_64::_rdtsc;
use l4::println;

l4::program!(run);

/// Rounds over which a cost is averaged.
const AVERAGED: u64 = 64;

fn report(test: &str, parameter: u64, counter: &str, value: u64) {
    println!("{{\"test\":\"{test}\",\"parameter\":{parameter},\"counter\":\"{counter}\",\"value\":{value}}}");
}

/// Reports what one of `rounds` operations takes.
fn time(test: &str, parameter: u64, rounds: u64, mut operation: impl FnMut(u64)) {
    // SAFETY: user programs may read the time-stamp counter.
    let now = || unsafe { _rdtsc() };
    let start = now();
    for round in 0..rounds {
        operation(round);
    }
    report(test, parameter, "instructions", (now() - start) / rounds);
}

fn run() -> ! {
    println!("1..2");
    world::prepare();
    memory::run();
    cost::run();
    unmap::run();
    latency::run();
    println!("ok 1 - BSCA0001 every operation succeeded");
    match memory::lost() {
        0 => println!("ok 2 - BSCA0002 what has been in use once is enough for the same again"),
        lost => {
            println!("not ok 2 - BSCA0002 what has been in use once is enough for the same again");
            println!("# {lost} bytes are lost");
        }
    }
    l4::start::halt()
}
