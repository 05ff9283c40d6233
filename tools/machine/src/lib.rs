//! The emulated machine: the command line of QEMU, the systems that boot on it, and the suites that
//! are booted and judged.
#![forbid(unsafe_code)]

pub mod boots;
pub mod devices;
pub mod grub;
pub mod hub;
pub mod image;
mod keys;
mod mapped;
pub mod monitor;
pub mod network;
pub mod parallel;
pub mod patience;
pub mod picture;
pub mod qemu;
pub mod shares;
pub mod suites;
pub mod symbolise;
pub mod systems;
pub mod tap;
pub mod window;
