//! Mach as a library: tasks, threads and virtual memory over a small [`Machine`] trait
//! (docs/src/architecture.md).
//!
//! | module | what it holds |
//! |---|---|
//! | [`machine`] | what the library asks of the hardware or microkernel below; with `simulated`, a machine for tests |
//! | [`vm`] | maps, objects, copy-on-write, paging; its page has an example |
//! | [`ipc`] | ports, rights, messages |
//! | [`kobject`] | tasks, threads, hosts as ports: the calls that programs make by messages |
//! | [`task`], [`thread`] | tasks and threads: create, suspend, resume, terminate, state, exceptions, scheduling |
//! | [`personality`] | what a system keeps in its tasks and threads |
//! | [`host`], [`processor_set`] | all tasks of a machine; processors in groups |
//! | [`error`] | Mach's return codes |
//!
//! The library does not know L4 and has no `unsafe` code: it accesses pages only through the
//! machine.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod error;
pub mod host;
pub mod ipc;
pub mod kobject;
pub mod machine;
pub mod personality;
pub mod processor_set;
pub mod task;
pub mod thread;
pub mod vm;

pub use error::{KernError, KernResult};
pub use host::Host;
pub use machine::Machine;
pub use personality::Personality;
pub use processor_set::ProcessorSet;
pub use task::Task;
pub use thread::Thread;
