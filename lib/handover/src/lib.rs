//! How a kernel object changes from one processor to another (K6, K12).
//!
//! An object has a [`Location`]: the processor that may touch its state, alone and without locks.
//! That processor gives it away by [`Location::hand_over`] and then [`RequestQueue::post`]; the
//! next one takes its whole request queue and confirms each object with [`Location::arrive`].
//! Nothing else changes a location, except the holder of a [`Claim`] on an idle processor, in its
//! place. So a processor that finds an object *here* keeps it for as long as it wants, and a
//! location that names another processor is only a hint of where to ask next.
//!
//! | what happens at the same time | how it is resolved |
//! |---|---|
//! | two want the same object | both go to its location; the second finds what the first has left |
//! | one wants it, it moves away | the one follows it; it stays in one queue until it has arrived |
//! | a message comes while it is cancelled or deleted | both act where it is, in turn |
//! | one posts to a processor that goes to sleep | [`Attention`]: one sees the other |
//! | something happens again to an object on its way back | [`Again`]: one sees the other |
//! | its processor is idle, and another one acts there | [`Idle`]: one of the two at a time |
//! | it is looked up while its memory is reused | [`Identity`], read before the location |
#![cfg_attr(not(any(test, loom)), no_std)]

mod again;
mod attention;
mod identity;
mod idle;
#[cfg(all(test, loom))]
mod models;
mod request_queue;

pub use again::Again;
pub use attention::Attention;
pub use identity::Identity;
pub use idle::{Claim, Idle};
pub use request_queue::{Node, RequestQueue, Requests};

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU16, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU16, Ordering};

/// Marks a location as that of an object under way.
const IN_TRANSIT: u16 = 1 << 15;

/// Where an object is: the number of the processor that owns it, or that will when it has arrived.
#[derive(Debug)]
#[repr(transparent)]
pub struct Location(AtomicU16);

impl Location {
    /// An object at `processor`, which is below 2^15.
    #[cfg(not(loom))]
    pub const fn new(processor: u16) -> Self {
        Self(AtomicU16::new(processor))
    }

    /// An object at `processor`.
    #[cfg(loom)]
    pub fn new(processor: u16) -> Self {
        Self(AtomicU16::new(processor))
    }

    /// Whether the object is at `processor`, the executing one or one that it has [claimed](Claim).
    /// If so it stays until that processor sends it away.
    #[inline]
    pub fn is_at(&self, processor: u16) -> bool {
        // Relaxed: that the answer is yes was written by this processor itself.
        self.0.load(Ordering::Relaxed) == processor
    }

    /// Whether the object is at `processor`, for an object that others [assign](Self::assign) to
    /// it: their work on it is seen.
    #[inline]
    pub fn has_come_to(&self, processor: u16) -> bool {
        self.0.load(Ordering::Acquire) == processor
    }

    /// The processor that has the object, or gets it: a hint, for others.
    #[inline]
    pub fn processor(&self) -> u16 {
        self.0.load(Ordering::Relaxed) & !IN_TRANSIT
    }

    /// The owner gives the object away: only its node may be touched from now on, by
    /// [`RequestQueue::post`]. The holder of a [`Claim`] gives an object of the idle processor to
    /// that processor, so that that processor learns of it.
    pub fn hand_over(&self, to: u16) {
        // Relaxed: the request queue publishes the object; a thread that reads this early waits at
        // `to` for it.
        self.0.store(to | IN_TRANSIT, Ordering::Relaxed);
    }

    /// The object has been taken out of the request queue of `processor`, the executing one, which
    /// owns it from now on.
    pub fn arrive(&self, processor: u16) {
        self.0.store(processor, Ordering::Relaxed);
    }

    /// The owner, or the creator of an object that has not been published yet, gives an idle object
    /// to `processor`, which learns of it in another way that orders what was done before.
    pub fn assign(&self, processor: u16) {
        // Release: for a processor that finds the object by this.
        self.0.store(processor, Ordering::Release);
    }
}
