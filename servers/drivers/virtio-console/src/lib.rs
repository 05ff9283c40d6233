//! Streams of bytes between this machine and its host: a virtio console device with several ports
//! (Virtual I/O Device Version 1.1, chapter 5.3). The driver is the program of this package, an
//! ordinary server of root's. Another server uses a port through [`client`], which does not wait
//! for the driver after the start. `interfaces/streams.defs` is the interface.
//!
//! | module | subject |
//! |---|---|
//! | [`area`] | the memory that driver and client share |
//! | [`client`] | the client's side |
//! | [`control`] | messages between device and driver about ports |
//! | [`notes`] | what a driver notes for the one that is started in its place |
//! | [`pieces`] | which pieces of memory the device has |
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

pub mod area;
pub mod client;
pub mod control;
pub mod notes;
pub mod pieces;
