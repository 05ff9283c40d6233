//! A virtio block device. The driver is the program of this package, an ordinary server of root's;
//! another server uses it through `lib/block`. `interfaces/block.defs` is the interface.
//!
//! This library has what does not need the device: what its configuration says.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod configuration;
