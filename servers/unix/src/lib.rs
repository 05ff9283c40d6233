//! `unix` as a library: everything of the Unix server that does not depend on the machine
//! (docs/src/architecture.md).
//!
//! Each thread of a program has a task in the server (`thread`). The task resumes the thread, waits
//! until it stops (for a system call, a page fault, an exception or a recall), serves that event
//! through a front end and [`unix`], and resumes the thread again. The trait [`Driver`] says what
//! the task needs of the machine; tests implement it with scripted threads.
//!
//! | module | what it holds |
//! |---|---|
//! | `thread` | the loop of one thread; processor exceptions as signals |
//! | [`front_ends`] | the systems whose programs run: Linux |
//! | [`server`] | the [`unix::thread::Host`]; how threads are made and started |
//! | [`start`] | from an empty system to the first program, and its end |
//! | [`options`] | the server's arguments |
//! | [`elf_object`] | writes the shared object that programs find in their memory |
//! | [`console`] | the terminal that output goes to |
//! | [`random`] | the random source |
//! | [`streams`] | bytes between the host and a command |
//! | `telnet` | commands on the console's line |
//! | [`trace`] | system calls in the log |
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod console;
pub mod elf_object;
pub mod front_ends;
pub mod options;
pub mod random;
pub mod server;
pub mod start;
pub mod streams;
mod telnet;
mod thread;
pub mod trace;

pub use server::{Driver, Server};
