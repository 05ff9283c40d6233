//! The locks that this library uses: [`SpinLock`] for short sections without await, [`Mutex`] across awaits; and
//! [`give_turn`] for work whose length a program decides.

pub use macadamia_sync::{Mutex, SpinLock, Turns, give_turn};
