//! A model of the machine for tests on the host: physical memory is an arena, translations are looked up by a
//! simulated TLB, interrupts are pending when a test says so.
//!
//! The kernel's statics exist once per process, so a test that uses them makes a [`Machine`] first: it waits for the
//! other tests' machines to go away, and resets everything.
mod interrupts;
mod machine;

pub use interrupts::interrupt_pending;
pub use machine::{Machine, kernel_half, machine, phys_to_virt, virt_to_phys};
