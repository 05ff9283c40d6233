//! The tests by subject.

mod hostile;
mod memory;
mod paging;
mod threads;

use crate::report::Test;

pub(crate) const ALL: &[&[Test]] = &[memory::TESTS, threads::TESTS, paging::TESTS, hostile::TESTS];

/// Lets other tasks run for a short time.
pub(crate) async fn pause(system: &crate::system::System) {
    sleep(system, 500).await;
}

/// Lets programs run for this number of microseconds.
pub(crate) async fn sleep(system: &crate::system::System, micros: u64) {
    use mach::machine::Machine;
    system.machine.sleep_until(system.machine.now() + micros).await;
}
