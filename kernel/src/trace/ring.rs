//! What processors share of the trace buffer: the set of wanted events, and where one processor's
//! ring has its memory. Model-checked with loom.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The events that are recorded, a bit for each. Any processor may change it, when every ring has
/// its memory.
#[derive(Debug)]
pub struct Wanted(AtomicU64);

impl Wanted {
    /// No event is wanted.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// No event is wanted.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The set.
    #[inline]
    pub fn get(&self) -> u64 {
        // Acquire: a reader that finds an event wanted finds its ring's memory too.
        self.0.load(Ordering::Acquire)
    }

    /// Replaces the set of events that are recorded.
    pub fn set(&self, events: u64) {
        // Release: see `get`.
        self.0.store(events, Ordering::Release);
    }
}

impl Default for Wanted {
    fn default() -> Self {
        Self::new()
    }
}

/// One processor's ring over `FRAMES` frames. Only that processor adds to it, with interrupts off.
#[derive(Debug)]
pub struct Ring<const FRAMES: usize> {
    /// Frame numbers, set once; 0 = no memory yet.
    frames: [AtomicU32; FRAMES],
    /// How many events were recorded.
    count: AtomicU64,
}

impl<const FRAMES: usize> Ring<FRAMES> {
    /// A ring without memory.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { frames: [const { AtomicU32::new(0) }; FRAMES], count: AtomicU64::new(0) }
    }

    /// A ring without memory.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { frames: core::array::from_fn(|_| AtomicU32::new(0)), count: AtomicU64::new(0) }
    }

    /// Whether the ring has its memory.
    pub fn has_memory(&self) -> bool {
        self.frame(0) != 0
    }

    /// Frame number `index` of the ring. Relaxed: `Wanted` orders it.
    #[inline]
    pub fn frame(&self, index: usize) -> u32 {
        self.frames[index].load(Ordering::Relaxed)
    }

    /// Gives the ring its memory. Before that no event is wanted.
    pub fn set_frames(&self, frames: [u32; FRAMES]) {
        for (place, frame) in self.frames.iter().zip(frames) {
            place.store(frame, Ordering::Relaxed);
        }
    }

    /// Event number `count` has been written. By the ring's own processor.
    #[inline]
    pub fn advance(&self) {
        self.count.store(self.count() + 1, Ordering::Relaxed);
    }

    /// How many events were recorded.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Forgets the ring's memory and its events.
    #[cfg(test)]
    pub fn reset(&self) {
        self.set_frames([0; FRAMES]);
        self.count.store(0, Ordering::Relaxed);
    }
}

impl<const FRAMES: usize> Default for Ring<FRAMES> {
    fn default() -> Self {
        Self::new()
    }
}
