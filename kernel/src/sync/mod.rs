//! Locks. Everything else that processors share is atomics with a written ordering argument at the access.

mod spin_lock;

pub use spin_lock::{SpinLock, SpinLockGuard};
