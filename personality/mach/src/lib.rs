//! The front end of native Mach programs: what a program of GNU Mach's 64-bit interface finds when
//! it enters the kernel there.
//!
//! | module | what it holds |
//! |---|---|
//! | [`trap`] | the table of traps |
//! | `calls` | what each trap does |
//! | `thread` | the loop that serves a thread |
//! | [`image`] | static ELF programs |
//! | [`script`] | the command lines of boot modules |
//! | [`start`] | the first tasks of a system |
//! | [`System`] | the whole, over the services of a server |
//!
//! A server that runs native programs implements [`Services`] and starts boot modules with
//! [`System::start`]. Everything else comes from the programs.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod calls;
pub mod image;
mod native;
pub mod script;
pub mod start;
mod system;
#[cfg(test)]
mod tests;
mod thread;
pub mod trap;

pub use native::{Native, NativeTask, NativeThread};
pub use system::{Services, System};
