//! The end of a driver in the middle of its work, for tests of its clients.
//!
//! With the argument `end-after=COUNT` a driver ends at the step of this number, again and again,
//! five times, or as often as the argument `end-times=COUNT` says. The next one stays.
//!
//! A server that takes another's place may need more steps than that to get to where the other was.
//! If it ended at one of them each time, its clients would wait for ever. So steps of the start
//! count in one server of four ([`step_of_start`]).

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rt::root::{self, servers};
use rt::start_page;

/// How often a driver ends that is not told so. Root starts a server with `restart yes` again as
/// often.
const TIMES: u64 = 5;

/// How many steps are left; 0: the driver does not end.
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Whether steps of the start count.
static STARTS: AtomicBool = AtomicBool::new(false);

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
        LEFT.store(count, Ordering::Relaxed);
        STARTS.store(server.restarts.is_multiple_of(4), Ordering::Relaxed);
    }
}

/// A step by which the driver gets to where the one before it was. It ends here, if it is to and
/// such steps count.
pub fn step_of_start() {
    if STARTS.load(Ordering::Relaxed) {
        step();
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
