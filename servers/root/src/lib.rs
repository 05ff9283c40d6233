//! The part of `root` that decides, apart from the part that talks to the kernel: it is tested on
//! the development host.
//!
//! `root` is the X.2 root task and the only privileged space (docs/src/architecture.md). It reads
//! the boot [`configuration`], starts the servers that it names, and gives them threads
//! ([`thread_numbers`]), [`spaces`], address ranges ([`ranges`]: memory, device memory, I/O ports,
//! interrupts) within their [`quota`]s. Its interface is `interfaces/root.defs`.
//!
//! [`system`] has all that root knows. Its module [`requests`] reads a message there, and the
//! result is a value: an answer, or a [`work_item`] that the program does in [`step`]s. Root calls
//! the kernel, sigma0 and devices only through the trait [`machine::Machine`].
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod address_space;
pub mod chunks;
pub mod configuration;
pub mod devices;
mod dma;
mod end;
pub mod executable;
mod fill;
pub mod frames;
mod functions;
mod iommu;
pub mod machine;
pub mod modules;
mod names;
mod owned;
pub mod pages;
pub mod pci;
mod pools;
pub mod quota;
pub mod ranges;
pub mod requests;
mod resources;
mod server;
mod shares;
pub mod spaces;
pub mod step;
pub mod system;
#[cfg(test)]
mod tests;
pub mod thread_numbers;
pub mod work_item;
pub mod work_queue;
