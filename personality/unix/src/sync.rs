//! The locks that this library uses: [`SpinLock`] for short sections without await, [`Mutex`]
//! across awaits; [`give_turn`] for work whose length a program decides; and [`poll_once`] for
//! attempts to do something without a task.

pub(crate) use macadamia_sync::SpinGuard;
pub use macadamia_sync::{Mutex, SpinLock, Turns, give_turn, poll_once};

/// A place between a look at state that workers share and the step that follows from it. A test can
/// make another worker's step happen here (`crate::testing::meanwhile`); otherwise this does
/// nothing.
#[inline(always)]
pub fn delay(place: &'static str) {
    #[cfg(any(test, feature = "testing"))]
    crate::testing::delayed(place);
    let _ = place;
}
