//! Fault injection: the n-th allocation of kernel memory from now on fails.
//!
//! Tests fail each allocation of an operation in turn and compare the state before and after (K4). A test-only
//! debugger operation reaches this; it is off otherwise and then costs one load and a branch.
use core::sync::atomic::{AtomicU64, Ordering};

use super::OutOfMemory;

/// Allocations to go until one fails; 0 = none will.
static COUNTDOWN: AtomicU64 = AtomicU64::new(0);

/// Makes the `nth` allocation from now (1 = the next) fail, once. 0 cancels.
pub fn fail_nth(nth: u64) {
    COUNTDOWN.store(nth, Ordering::Relaxed);
}

/// Whether the failure that was asked for is still to come. Cancels it.
pub fn cancel() -> bool {
    COUNTDOWN.swap(0, Ordering::Relaxed) != 0
}

/// Called by every allocation, before it changes anything.
#[inline]
pub(super) fn check() -> Result<(), OutOfMemory> {
    // Relaxed: a counter for tests; processors that race for it only decide which of them fails.
    let left = COUNTDOWN.load(Ordering::Relaxed);
    if left == 0 { Ok(()) } else { count_down(left) }
}

#[cold]
fn count_down(left: u64) -> Result<(), OutOfMemory> {
    COUNTDOWN.store(left - 1, Ordering::Relaxed);
    if left == 1 { Err(OutOfMemory) } else { Ok(()) }
}
