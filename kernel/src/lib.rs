//! The Macadamia microkernel: L4 X.2 threads, address spaces, IPC, mapping and scheduling. Nothing
//! else.
//!
//! The library holds every module; `main.rs` only links it into the bootable image. Built for the
//! host (`cargo test -p macadamia-kernel`), `arch` is a model of the machine, so that everything
//! which is not the processor itself is tested as ordinary Rust.
#![cfg_attr(target_os = "none", no_std)]

pub mod arch;
pub mod boot;
pub mod boot_cell;
pub mod boot_info;
pub mod config;
pub mod console;
pub mod dispatch;
pub mod elf;
pub mod initial_servers;
pub mod interrupt;
pub mod kdb;
pub mod kip;
pub mod log;
pub mod mapping;
pub mod memory;
pub mod panic;
pub mod processor;
pub mod scheduler;
pub mod screen;
pub mod space;
#[cfg(target_os = "none")]
pub mod start;
pub mod sync;
pub mod syscall;
pub mod thread;
pub mod trace;
