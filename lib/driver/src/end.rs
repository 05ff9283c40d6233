//! The end of a driver in the middle of its work, for tests of its clients.
//!
//! With the argument `end-after=COUNT` a driver ends at the step of this number, again and again,
//! as often as root starts it again. The last one of these stays.

use core::sync::atomic::{AtomicU64, Ordering};
use rt::root::{self, servers};
use rt::start_page;

/// How often root starts a server again.
const RESTARTS: u64 = 5;

/// How many steps are left; 0: the driver does not end.
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Reads the driver's arguments.
///
/// # Panics
/// If the number is none.
pub fn prepare() {
    let Some((name, arguments)) = start_page::read() else { return };
    let Some(count) = arguments.split_whitespace().find_map(|word| word.strip_prefix("end-after=")) else {
        return;
    };
    let count = count.parse().expect("the argument end-after is a number");
    let mut all = (0..).map_while(|index| servers::describe(index).ok());
    let own = all.find(|server| server.name == name.as_bytes());
    if own.is_some_and(|server| server.restarts < RESTARTS) {
        LEFT.store(count, Ordering::Relaxed);
    }
}

/// A step of the driver's work. It ends here, if it is to.
pub fn step() {
    // Relaxed ordering: a driver has one thread.
    let left = LEFT.load(Ordering::Relaxed);
    if left > 0 {
        LEFT.store(left - 1, Ordering::Relaxed);
        if left == 1 {
            root::exit(1);
        }
    }
}
