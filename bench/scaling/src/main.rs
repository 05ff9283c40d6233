//! How cost and memory grow: with threads of consecutive and of sparse ids, with spaces, with
//! timeouts, with threads that are ready, with the pages and the mappings of an Unmap. In the end
//! the longest operations, whose stretches without a look for interrupts the plugin measures.
//!
//! `bytes` are those of kernel memory in use beyond what was in use before; `instructions` are from
//! user level to user level. What should not grow is measured without other threads and with many.
#![cfg_attr(target_os = "none", no_std, no_main)]

mod cost;
mod latency;
mod memory;
mod unmap;
mod world;

use bench_framework::{average, check_counter};
use l4::println;

l4::program!(run);

/// Rounds over which a cost is averaged.
const AVERAGED: u64 = 64;

fn report(test: &str, parameter: u64, counter: &str, value: u64) {
    bench_framework::report(format_args!("{test}"), parameter, counter, value);
}

/// Reports what one of `rounds` operations takes.
fn time(test: &str, parameter: u64, rounds: u64, operation: impl FnMut()) {
    report(test, parameter, "instructions", average(rounds, operation));
}

fn run() -> ! {
    println!("1..3");
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
    check_counter(3, "BSCA0003");
    l4::start::halt()
}
