//! The tests, by subject.

mod hostile;
mod memory;
mod paging;
mod threads;

use crate::report::Test;

pub(crate) const ALL: &[&[Test]] = &[memory::TESTS, threads::TESTS, paging::TESTS, hostile::TESTS];

/// Lets others run for a moment.
pub(crate) async fn pause(system: &crate::system::System) {
    use mach::machine::Machine;
    system.machine.sleep_until(system.machine.now() + 500).await;
}
