//! The part of `root` that decides, apart from the part that talks to the kernel: it is tested on
//! the host.
//!
//! `root` is the X.2 root task and the only privileged space (docs/src/architecture.md). It reads
//! the boot [`configuration`], starts the servers that it names, and gives them threads
//! ([`thread_numbers`]), [`spaces`], address ranges ([`ranges`]: memory, device memory, I/O ports,
//! interrupts) within their [`quota`]s. Its interface is `interfaces/root.defs`.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod chunks;
pub mod configuration;
pub mod executable;
pub mod pages;
pub mod pci;
pub mod quota;
pub mod ranges;
pub mod spaces;
pub mod thread_numbers;
