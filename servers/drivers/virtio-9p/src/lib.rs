//! A channel of messages of the file protocol 9P: a virtio 9P device. The driver is the program of
//! this package, an ordinary server of root's. Another server uses it through [`client`], which
//! does not wait for the driver after the start. `interfaces/file_channel.defs` is the interface.
//! The driver does not look into the messages.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

pub mod area;
pub mod client;
pub mod disk_slot;
