//! The locks that this library uses.

/// A lock for short sections without await (U6: bounded, no IPC inside).
pub type SpinLock<T> = spin::Mutex<T>;
