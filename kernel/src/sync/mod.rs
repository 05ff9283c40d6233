//! Locks. Everything else that processors share is atomics with a written ordering argument at the
//! access.

/// Whether there can be several processors. Not in the kernel of `./mac bench uniprocessor`: it
/// shows what they cost, and what only they need is left out of it where that is on the way of
/// frequent operations.
pub const SEVERAL: bool = !cfg!(feature = "uniprocessor");

pub mod delay;
mod inner_lock;
mod shared;
mod shoot_down;
mod spin_lock;
mod walks;

pub use inner_lock::{InnerLock, InnerLockGuard};
pub use shared::{SharedByte, SharedFlag, SharedHalf, SharedRef, SharedWord};
pub use shoot_down::{ActiveRoot, Requested, ShootDown};
pub use spin_lock::{BelowGuard, SpinLock, SpinLockGuard};
pub use walks::Walks;
