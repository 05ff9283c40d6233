//! The leak check: what the kernel has in use must be the same after a test as before.

use super::failure;
use core::sync::atomic::{AtomicBool, Ordering};
use l4::console::kernel_statistic;
use x2::kdebug::statistic;

const COUNTED: [(u64, &str); 4] = [
    (statistic::FRAMES, "frames"),
    (statistic::THREADS, "threads"),
    (statistic::SPACES, "spaces"),
    (statistic::MAP_NODES, "map nodes"),
];

/// Whether the kernel's operations for tests may be used: without its boot option they raise
/// exceptions.
static ENABLED: AtomicBool = AtomicBool::new(false);

/// Called when the command line asks for the leak check.
pub(crate) fn enable() {
    ENABLED.store(true, Ordering::Relaxed);
}

/// Skips the test unless the kernel's operations for tests may be used.
pub(crate) fn require() {
    if !ENABLED.load(Ordering::Relaxed) {
        failure::skip("needs leak-check, and the kernel's boot option kdb=test");
    }
}

/// What the kernel has in use.
#[derive(Clone, Copy)]
pub(crate) struct InUse([u64; COUNTED.len()]);

impl InUse {
    /// What the kernel has in use now. Panics if the kernel does not give programs these numbers.
    pub(crate) fn now() -> Self {
        Self(COUNTED.map(|(which, _)| {
            kernel_statistic(which).expect("leak-check needs the kernel's boot option kdb=test")
        }))
    }

    /// The first kind of object of which there are more now, and how many more.
    pub(crate) fn leaked(self, after: Self) -> Option<(&'static str, u64)> {
        let pairs = self.0.into_iter().zip(after.0);
        pairs
            .zip(COUNTED)
            .find(|&((before, after), _)| after > before)
            .map(|((before, after), (_, name))| (name, after - before))
    }
}
