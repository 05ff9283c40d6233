//! The leak check: the kernel must have the same objects in use after a test as before.

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

/// Whether the kernel's operations for tests may be used. They raise exceptions unless the kernel
/// has its boot option.
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

/// How many objects of each kind the kernel has in use.
#[derive(Clone, Copy)]
pub(crate) struct InUse([u64; COUNTED.len()]);

impl InUse {
    /// Reads how many objects are in use now. Panics if the kernel does not give programs these
    /// numbers.
    pub(crate) fn now() -> Self {
        Self(COUNTED.map(|(which, _)| {
            kernel_statistic(which).expect("leak-check needs the kernel's boot option kdb=test")
        }))
    }

    /// The first kind of object of which more are in use in `after`, and how many more.
    pub(crate) fn leaked(self, after: Self) -> Option<(&'static str, u64)> {
        let pairs = self.0.into_iter().zip(after.0);
        pairs
            .zip(COUNTED)
            .find(|&((before, after), _)| after > before)
            .map(|((before, after), (_, name))| (name, after - before))
    }
}
