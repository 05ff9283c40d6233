//! User-level bindings of the L4 X.2 interface for native programs in Rust. The C bindings are
//! `include/l4/*.h`.
//!
//! A program is
//!
//! ```ignore
//! #![cfg_attr(target_os = "none", no_std, no_main)]
//! l4::program!(run);
//! fn run() -> ! { ... }
//! ```
//!
//! | module | subject |
//! |---|---|
//! | [`kernel_interface`] | finding and reading the kernel interface page |
//! | [`syscall`] | every system call with its exact register contract |
//! | [`utcb`] | message registers, buffer registers and control registers of the calling thread |
//! | [`ipc`] | send, receive, call, reply-and-wait; messages |
//! | [`direct`] | this thread's IPC for the stubs that `mig` writes |
//! | [`registers`] | the same for messages of up to seven words, without touching memory |
//! | [`thread`], [`space`] | threads and address spaces |
//! | [`extension`] | ownership, thread state, notification |
//! | [`sigma0`] | asking sigma0 for memory and I/O ports |
//! | [`boot_info`] | what the boot loader has told |
//! | [`port`] | using I/O ports |
//! | [`console`] | printing through the kernel debugger |
//! | [`mark`] | what the counting plugin counts |
//! | [`start`] | entry, stack and panic of a program |
//!
//! What can break a running program (where a thread goes on, what the memory contains) is `unsafe`;
//! what can only fail, block or fault is not.
#![no_std]

pub mod boot_info;
pub mod console;
pub mod direct;
pub mod extension;
pub mod ipc;
pub mod kernel_interface;
pub mod mark;
pub mod port;
pub mod registers;
pub mod sigma0;
pub mod space;
pub mod start;
pub mod syscall;
pub mod thread;
pub mod utcb;

pub use kernel_interface::kip;
pub use x2;
