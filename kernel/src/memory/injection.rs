//! Fault injection: the n-th allocation of kernel memory from now on fails.
//!
//! Tests fail each allocation of an operation in turn and compare the state before and after (K4).
//! A test-only debugger operation reaches this.
use core::sync::atomic::{AtomicU64, Ordering};

use super::{OutOfMemory, detour};

/// Allocations to go until one fails; 0 = none will.
static COUNTDOWN: AtomicU64 = AtomicU64::new(0);

/// Makes the `nth` allocation from now (1 = the next) fail, once. 0 cancels.
pub fn fail_nth(nth: u64) {
    COUNTDOWN.store(nth, Ordering::Relaxed);
    detour::set(detour::INJECTION, nth != 0);
}

/// Whether the failure that was asked for is still to come. Cancels it.
pub fn cancel() -> bool {
    detour::set(detour::INJECTION, false);
    COUNTDOWN.swap(0, Ordering::Relaxed) != 0
}

/// Asked by every allocation that goes a [`detour`], before it changes anything.
pub(super) fn check() -> Result<(), OutOfMemory> {
    // Relaxed: a counter for tests; processors that race for it only decide which of them fails.
    let left = COUNTDOWN.load(Ordering::Relaxed);
    if left == 0 {
        return Ok(());
    }
    COUNTDOWN.store(left - 1, Ordering::Relaxed);
    if left > 1 {
        return Ok(());
    }
    detour::set(detour::INJECTION, false);
    Err(OutOfMemory)
}
