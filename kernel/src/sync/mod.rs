//! Locks. Everything else that processors share is atomics with a written ordering argument at the access.

pub mod delay;
mod shared;
mod spin_lock;

pub use shared::{SharedByte, SharedFlag, SharedHalf, SharedRef, SharedWord};
pub use spin_lock::{SpinLock, SpinLockGuard};
