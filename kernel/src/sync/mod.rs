//! Locks. Everything else that processors share is atomics with a written ordering argument at the
//! access.

/// Whether there can be several processors. The kernel of `./mac bench uniprocessor` is built for
/// one: it shows what several processors cost. It leaves out what only they need, where frequent
/// operations would execute it.
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
