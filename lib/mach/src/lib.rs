//! Mach as a library: tasks, threads and virtual memory over a small [`Machine`] trait (ARCHITECTURE U3).
//!
//! | module | what it holds |
//! |---|---|
//! | [`machine`] | what the library asks of the hardware or microkernel below; with `simulated`, a machine for tests |
//! | [`vm`] | maps, objects, copy-on-write, paging; its page has an example |
//! | [`error`] | Mach's return codes |
//!
//! There is no L4 here and no `unsafe`: pages are touched through the machine only.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod error;
pub mod machine;
pub mod vm;

pub use error::{KernError, KernResult};
pub use machine::Machine;
