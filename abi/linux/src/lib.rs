//! The x86-64 Linux system-call interface over the Unix library; neither leaks into the other.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod errno;
pub mod layout;
mod names;

pub use names::name;
