//! Tests of tasks and threads of the Mach library on L4. Small programs have the memory, threads
//! and exceptions of the library, and are served by a worker on each processor. The tests are async
//! tasks of the first worker. The results are printed as TAP.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod report;
mod system;
mod tests;

use mach_tests::{code, servant};
use rt::root;

l4::program!(run, kip = rt::start_page::KIP);

rt::heap!(256 << 10, grow = grow_heap);

fn run() -> ! {
    root::report_panics();
    let system = system::System::start(grow_heap);
    let machine = system.machine.clone();
    machine.spawn(0, report::run(system, tests::ALL)).expect("memory for a task");
    machine.serve(0, &mut |_bits| {})
}
