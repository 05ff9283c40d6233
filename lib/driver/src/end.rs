//! The end of a driver in the middle of its work, for tests of its clients.
//!
//! With the argument `end-after=COUNT` a driver ends at the step of this number, again and again,
//! five times, or as often as the argument `end-times=COUNT` says. The next one stays. With
//! `end-later=COUNT` the second of so many ends takes twice as many steps, the third three times,
//! and so on: a driver whose start takes many steps does not end within them each time.

use core::sync::atomic::{AtomicU64, Ordering};
use rt::root::{self, servers};
use rt::start_page;

/// How often a driver ends that is not told so. Root starts a server with `restart yes` again as
/// often.
const TIMES: u64 = 5;

/// How many steps are left; 0: the driver does not end.
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Reads the driver's arguments.
///
/// # Panics
/// If a number is none.
pub fn prepare() {
    let Some((name, arguments)) = start_page::read() else { return };
    let number = |name: &str| {
        let value = arguments.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        value.map(|value| value.parse().unwrap_or_else(|_| panic!("the argument {name} is a number")))
    };
    let Some(count) = number("end-after") else { return };
    let times = number("end-times").unwrap_or(TIMES);
    let mut all = (0..).map_while(|index| servers::describe(index).ok());
    let own = all.find(|server| server.name == name.as_bytes());
    if let Some(server) = own.filter(|server| server.restarts < times) {
        let later = number("end-later").unwrap_or(1).max(1);
        LEFT.store(count * (1 + server.restarts % later), Ordering::Relaxed);
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
