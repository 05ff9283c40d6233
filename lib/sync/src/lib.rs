//! Asynchronous synchronisation primitives for servers (section U6 of `docs/src/architecture.md`):
//! a blocked request is a future, not a stack.
//!
//! | module | what it gives |
//! |---|---|
//! | [`spin`] | [`SpinLock`]: short sections without an await, for state that processors share |
//! | [`wait`] | [`WaitQueue`]: wait until a condition holds; the other primitives are built on it |
//! | [`mutex`] | [`Mutex`]: exclusive access across awaits, first come, first served |
//! | [`rwlock`] | [`RwLock`]: shared or exclusive access across awaits, first come, first served |
//! | [`event`] | [`Event`]: a flag that wakes all waiting tasks when it is set |
//! | [`oneshot`] | one value from one sender to one receiver |
//! | [`channel`] | a bounded queue of values between any number of senders and receivers |
//! | [`attempt`] | [`poll_once`]: a future is polled once, without a task |
//! | [`turn`] | [`give_turn`]: long work lets others run in between |
//!
//! These properties hold for all primitives:
//!
//! - Every future may be dropped at any await point: its place in the queue is given up, and a
//!   wake-up (or a lock) that it had been given but not used passes to the next in line. Nothing is
//!   lost and nothing leaks.
//! - The uncontended path neither allocates nor takes a spin lock longer than a few instructions;
//!   only a waiter that must really wait allocates its place in the queue.
//! - Types are `Send` and `Sync` where their contents allow it, so tasks may move between workers.
//!   No waker is called with a spin lock held.
//! - There is no dependency on L4, threads or an executor. Built with `cfg(loom)`, the locks and
//!   wait queues take loom's atomics, for models of what is built on them.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod attempt;
pub mod channel;
pub mod event;
pub mod mutex;
pub mod oneshot;
pub mod rwlock;
pub mod spin;
#[cfg(test)]
mod testing;
pub mod turn;
pub mod wait;

pub use attempt::{is_attempt, poll_once};
pub use event::Event;
pub use mutex::{Mutex, MutexGuard};
pub use rwlock::{ReadGuard, RwLock, WriteGuard};
pub use spin::{OwnedSpinGuard, SpinGuard, SpinLock};
pub use turn::{Turns, give_turn};
pub use wait::WaitQueue;
