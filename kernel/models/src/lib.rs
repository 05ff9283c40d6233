//! Models of what processors share in the kernel: each file of the kernel that is named here is
//! compiled once more, with loom's atomics in place of the processor's, and the tests explore every
//! interleaving that the memory model allows.
//!
//! Built as anything else than `cfg(loom)`, this is empty. See "Model checking" in
//! `docs/src/testing.md`.
#![cfg(loom)]

pub mod arch;
#[path = "../../src/memory/counters.rs"]
pub mod counters;
#[path = "../../src/space/redirector_word.rs"]
pub mod redirector_word;
#[path = "../../src/trace/ring.rs"]
pub mod ring;
#[path = "../../src/sync/shoot_down.rs"]
pub mod shoot_down;
#[path = "../../src/sync/spin_lock.rs"]
pub mod spin_lock;
#[path = "../../src/sync/walks.rs"]
pub mod walks;

/// Models have several processors, as the kernel has by default.
pub const SEVERAL: bool = true;

/// The lock under the path by which [`shoot_down`] imports it in the kernel.
use spin_lock::SpinLock;

#[cfg(test)]
mod tests;
