//! Whether an allocation goes the usual way: one byte that each of them asks, whatever may be
//! unusual.
use core::sync::atomic::{AtomicU8, Ordering};

/// An allocation is going to fail for a test (see [`super::injection`]).
pub(super) const INJECTION: u8 = 1 << 0;
/// Memory has several nodes (see [`super::node`]).
pub(super) const NODES: u8 = 1 << 1;

static DETOURS: AtomicU8 = AtomicU8::new(0);

// Relaxed: nodes are settled at boot, and injection is a means of tests that says when it takes
// effect by nothing else.

/// Whether allocations take the usual path.
#[inline(always)]
pub(super) fn none() -> bool {
    DETOURS.load(Ordering::Relaxed) == 0
}

/// This is.
#[inline(always)]
pub(super) fn is_set(detour: u8) -> bool {
    DETOURS.load(Ordering::Relaxed) & detour != 0
}

/// Notes that the condition holds, or holds no more.
pub(super) fn set(detour: u8, on: bool) {
    if on {
        DETOURS.fetch_or(detour, Ordering::Relaxed);
    } else {
        DETOURS.fetch_and(!detour, Ordering::Relaxed);
    }
}
