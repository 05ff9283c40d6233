//! A source of random bytes: a virtio entropy device. The driver is the program of this package, an
//! ordinary server of root's. Another server uses it through [`client`], which does not wait for
//! the driver after the start. `interfaces/entropy.defs` is the interface.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

pub mod area;
pub mod client;
