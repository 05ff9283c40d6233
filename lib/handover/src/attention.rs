//! Whether a processor must be interrupted to look at its request queue ([`crate::RequestQueue`]):
//! not while it polls.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicBool, Ordering, fence};
#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering, fence};

/// The state of an idle processor that others can see.
#[derive(Debug)]
pub struct Attention {
    polling: AtomicBool,
}

impl Attention {
    /// A processor that does not poll.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { polling: AtomicBool::new(false) }
    }

    /// A processor that does not poll.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { polling: AtomicBool::new(false) }
    }

    /// From now on the processor looks at its request queues by itself, until
    /// [`Attention::stop_polling`].
    pub fn start_polling(&self) {
        self.polling.store(true, Ordering::Relaxed);
    }

    /// The processor is about to sleep, or to do something else. Afterwards, before it does, it
    /// looks once more.
    pub fn stop_polling(&self) {
        self.polling.store(false, Ordering::Relaxed);
        // The store comes before the look at the queue. A sender posts, then reads this word: one
        // sees the other.
        fence(Ordering::SeqCst);
    }

    /// Whether a sender whose [`crate::RequestQueue::post`] found the queue empty must interrupt
    /// the processor.
    pub fn is_needed(&self) -> bool {
        // The load comes after the post: see `stop_polling`.
        fence(Ordering::SeqCst);
        !self.polling.load(Ordering::Relaxed)
    }
}

impl Default for Attention {
    fn default() -> Self {
        Self::new()
    }
}
