//! The locks that this library uses: [`SpinLock`] for short sections without await, [`Mutex`] across awaits.

pub use macadamia_sync::{Mutex, SpinLock};
