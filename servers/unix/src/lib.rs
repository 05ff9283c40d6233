//! `unix` as a library: everything of the Unix server but the machine below
//! (docs/src/architecture.md).
//!
//! A thread of a program is a task of the server: it lets the thread run, waits until it comes back
//! (a system call, a page fault, an exception, a recall), serves that through a front end
//! and [`unix`], and lets it run again (`thread`). What the machine has to offer for that is
//! [`Driver`]; tests drive scripted threads.
//!
//! | module | what it holds |
//! |---|---|
//! | `thread` | the loop of one thread; processor exceptions as signals |
//! | [`front_ends`] | the systems whose programs run: Linux |
//! | [`server`] | the [`unix::thread::Host`]; how threads are made and started |
//! | [`start`] | from an empty system to the first program, and its end |
//! | [`options`] | the server's arguments |
//! | [`console`] | the terminal that output goes to |
//! | [`random`] | the random source |
//! | `telnet` | commands on the console's line |
//! | [`trace`] | system calls in the log |
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod console;
pub mod front_ends;
pub mod options;
pub mod random;
pub mod server;
pub mod start;
mod telnet;
mod thread;
pub mod trace;

pub use server::{Driver, Server};
