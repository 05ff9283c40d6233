//! The kernel's operations on real hardware, in cycles of the time-stamp counter: what
//! `./mac image --bench` boots. The report goes to the kernel's console, which is the serial port,
//! and to the screen.
//!
//! The same operations as those of `bench-kernel`, each the best and the median of some samples.
//! Before and after them the time-stamp counter is compared with SystemClock and the interval
//! timer: if they disagree, the figures mean nothing.
#![cfg_attr(target_os = "none", no_std, no_main)]

mod calls;
mod clocks;
mod extensions;
mod fixture;
mod ipc;
mod screen;

use bench_framework::{now, repeat};
use core::cell::RefCell;
use core::fmt;
use l4::println;

l4::program!(run);

/// How many operations a sample has.
const AVERAGED: u64 = 64;
/// Samples of an operation whose cost does not depend on anything, and of one at a value of its
/// parameter.
const SAMPLES: usize = 21;
const SAMPLES_AT: usize = 5;
/// The most measurements that are kept.
const ROWS: usize = 512;

/// A measurement, in cycles an operation.
#[derive(Clone, Copy)]
struct Row {
    test: &'static str,
    /// What was varied, if anything.
    parameter: Option<u64>,
    best: u64,
    median: u64,
}

/// All measurements. The first thread alone uses them.
struct Rows(RefCell<(usize, [Row; ROWS])>);

// SAFETY: only the program's first thread measures and reports.
unsafe impl Sync for Rows {}

static RESULTS: Rows = Rows(RefCell::new((0, [Row { test: "", parameter: None, best: 0, median: 0 }; ROWS])));

fn record(row: Row) {
    let mut results = RESULTS.0.borrow_mut();
    let (count, rows) = &mut *results;
    if let Some(place) = rows.get_mut(*count) {
        *place = row;
        *count += 1;
    }
    screen::progress(*count, row.test);
}

fn report(test: &'static str, parameter: u64, cost: u64) {
    record(Row { test, parameter: Some(parameter), best: cost, median: cost });
}

/// Runs `body` once: on hardware, regions are not counted.
fn region(_name: fmt::Arguments<'_>, _operations: u64, body: impl FnOnce()) {
    body();
}

/// The best and the median of `COUNT` samples.
fn sample<const COUNT: usize>(mut operation: impl FnMut()) -> (u64, u64) {
    let mut samples = [0; COUNT];
    for sample in &mut samples {
        let start = now();
        repeat(AVERAGED, &mut operation);
        *sample = (now() - start) / AVERAGED;
    }
    samples.sort_unstable();
    (samples[0], samples[COUNT / 2])
}

/// Counts an operation whose duration does not depend on the processor.
fn count_over_phases(test: &'static str, operation: impl FnMut()) {
    measure(test, operation);
}

fn measure(test: &'static str, mut operation: impl FnMut()) {
    operation();
    let (best, median) = sample::<SAMPLES>(operation);
    record(Row { test, parameter: None, best, median });
}

/// Measures `operation`, which does the measured work `share` times.
fn measure_at(test: &'static str, parameter: u64, share: u64, mut operation: impl FnMut()) {
    operation();
    let (best, median) = sample::<SAMPLES_AT>(operation);
    record(Row { test, parameter: Some(parameter), best: best / share, median: median / share });
}

/// Prints what a check of the clocks found, as a test.
fn judge(number: u32, when: &str, rates: &clocks::Rates) {
    println!("# kHz {when}: {rates}");
    let not = if rates.agree() { "" } else { "not " };
    println!(
        "{not}ok {number} - BHWR000{number} {when} the time-stamp counter, SystemClock and the interval timer agree"
    );
}

fn run() -> ! {
    println!("1..3");
    clocks::describe_processor();
    screen::clear();
    clocks::prepare();
    fixture::prepare();
    let before = clocks::Rates::measure();
    judge(1, "before", &before);
    ipc::run();
    calls::run();
    extensions::run();
    let after = clocks::Rates::measure();
    judge(2, "after", &after);
    let reliable = before.agree() && after.agree();
    let results = RESULTS.0.borrow();
    let rows = &results.1[..results.0];
    println!("# {:42} {:>9} {:>9} {:>9} {:>9}", "operation", "at", "best", "median", "ns");
    for row in rows {
        let ns = row.median * 1_000_000 / before.khz().max(1);
        print_parameter(row);
        println!(" {:>9} {:>9} {ns:>9}", row.best, row.median);
    }
    // The same results in the form that programs read.
    for row in rows {
        let (test, parameter) = (format_args!("{}", row.test), row.parameter.unwrap_or(0));
        bench_framework::report(test, parameter, "cycles", row.median);
    }
    screen::show(rows, before.khz(), reliable);
    println!("ok 3 - BHWR0003 every operation succeeded");
    l4::start::halt()
}

fn print_parameter(row: &Row) {
    match row.parameter {
        Some(parameter) => l4::print!("# {:42} {parameter:>9}", row.test),
        None => l4::print!("# {:42} {:>9}", row.test, ""),
    }
}
