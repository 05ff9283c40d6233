//! Whether a processor that has nothing to do lets another act in its place.

#[cfg(not(loom))]
use core::hint::spin_loop;
#[cfg(not(loom))]
use core::sync::atomic::{AtomicU8, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU8, Ordering};
#[cfg(loom)]
use loom::thread::yield_now as spin_loop;

/// The processor does something, or may begin to.
const BUSY: u8 = 0;
/// The processor touches no object.
const IDLE: u8 = 1;
/// The processor touches none of its objects, and another processor may touch those that are
/// located at it.
const CLAIMED: u8 = 2;

/// A processor's word about itself. While it is idle it touches none of its objects. Another
/// processor that has [claimed](Idle::claim) it may touch them, as if it were that processor, until
/// the claim goes. A claim is held for a bounded time, in which nothing is waited for.
#[derive(Debug)]
pub struct Idle {
    state: AtomicU8,
}

/// The right to touch what is located at an idle processor.
#[derive(Debug)]
#[must_use]
pub struct Claim<'a>(&'a Idle);

impl Idle {
    /// A processor that does something.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { state: AtomicU8::new(BUSY) }
    }

    /// A processor that does something.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { state: AtomicU8::new(BUSY) }
    }

    /// The processor, which is busy, touches no object from now on.
    pub fn begin(&self) {
        // Release: a claim finds its objects as it has left them.
        self.state.store(IDLE, Ordering::Release);
    }

    /// The processor, which is idle, is busy again, and no other has a claim. Spins until the
    /// present claim has gone.
    pub fn end(&self) {
        // Acquire: it finds its objects as the last claim has left them.
        while self.state.compare_exchange(IDLE, BUSY, Ordering::Acquire, Ordering::Relaxed).is_err() {
            spin_loop();
        }
    }

    /// Claims the processor for another one, if it is idle and not claimed.
    pub fn claim(&self) -> Option<Claim<'_>> {
        // Acquire: see `begin`, and `drop` for the claim before this.
        let claimed = self.state.compare_exchange(IDLE, CLAIMED, Ordering::Acquire, Ordering::Relaxed);
        claimed.ok().map(|_| Claim(self))
    }
}

impl Default for Idle {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // Release: the processor, or the next claim, finds what was done.
        self.0.state.store(IDLE, Ordering::Release);
    }
}
