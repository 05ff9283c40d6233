//! The conformance suite of the X.2 interface: a root task that runs named tests, one after the
//! other, and reports each as a line of TAP on the kernel's console.
//!
//! Its command line names the chapters or tests (`FST0001`) to run, all if it names none, and may
//! contain `leak-check`: then the kernel's counts of frames, threads, spaces and map nodes must be
//! the same after each test as before (needs the kernel's boot option `kdb=test`). With `regions`
//! each chapter is a region for the counting plugin.
//!
//! * `framework` runs the tests: [`framework::runner`] is the root task's first thread, which
//!   supervises one test at a time and pages every thread; a test is a function that runs in a
//!   thread of its own and makes threads, spaces and memory with [`framework::fixture`]. The
//!   framework deletes those that still exist when the test ends.
//! * `chapters` are the tests, one file for each chapter of the interface.
#![cfg_attr(target_os = "none", no_std, no_main)]

mod chapters;
mod framework;

l4::program!(run);

fn run() -> ! {
    framework::runner::run(chapters::ALL)
}
