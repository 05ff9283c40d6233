//! A virtio network device. The driver is the program of this package, an ordinary server of
//! root's; another server uses it through `lib/net`. `interfaces/net.defs` is the interface.
//!
//! This library has what does not need the device: its features, and what its configuration says.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod configuration;
