//! The locks that this library uses: [`SpinLock`] for short sections without await, [`Mutex`]
//! across awaits; and [`give_turn`] for work whose length a program decides.

pub use macadamia_sync::{Mutex, SpinLock, Turns, give_turn};

/// A place between a look at what workers share and what follows from it. A test has another's
/// doing come here (`crate::testing::meanwhile`); it is nothing else.
#[inline(always)]
pub fn delay(place: &'static str) {
    #[cfg(any(test, feature = "testing"))]
    crate::testing::delayed(place);
    let _ = place;
}
