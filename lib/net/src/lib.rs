//! Ethernet frames between a client and the driver of a network interface, in memory that the two
//! share (`interfaces/net.defs`). Neither side trusts the other.
//!
//! | module | subject |
//! |---|---|
//! | [`head`] | what a frame leaves to the device, and what the device says of a frame |
//! | [`offload`] | what a client can leave to the device |
//! | [`buffers`] | the client's memory for frames |
//! | [`area`] | the shared memory: four [lanes](ring::lane), and the state of the link |
//! | [`client`] | the client's half, whose driver may end |
//! | [`driver`] | the driver's half: checked buffers, with the addresses of their memory |
//! | `interface` | how a client finds the driver, and finds it again |
//!
//! # Buffers
//!
//! The client has [`BUFFERS`] buffers of [`BUFFER`] bytes for frames to send, and as many for
//! received ones, in one pool. A frame with its [head] is in one buffer, or in several if it
//! is longer. Empty buffers go to the driver, which has the device fill them. The device reads and
//! writes the buffers in place; the driver does not have the memory. The client copies a received
//! frame out of its buffers before it looks at it, since the device could change it at any time.
//!
//! # A driver that ends
//!
//! When a driver has ended, its client attaches to the one that was started in its place, gives it
//! all its empty buffers, and the frames that were not sent yet. One of these may have been sent
//! before, and a received frame may be lost: both are allowed on an Ethernet.
#![cfg_attr(not(any(test, loom)), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod area;
pub mod buffers;
pub mod client;
pub mod driver;
pub mod head;
#[cfg(not(loom))]
pub mod interface;
pub mod offload;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
mod words;

/// How many buffers there are for frames to send, and how many for received ones.
#[cfg(not(loom))]
pub const BUFFERS: usize = 256;
/// Loom explores all interleavings, which are too many with more.
#[cfg(loom)]
pub const BUFFERS: usize = 2;
/// The size of a buffer in bytes.
pub const BUFFER: usize = if cfg!(loom) { 64 } else { 2048 };
/// The size in bytes of the memory of all buffers: those for received frames come first.
pub const POOL: u64 = 2 * (BUFFERS * BUFFER) as u64;
/// The most buffers of a frame.
pub const MOST_PIECES: usize = if cfg!(loom) { 2 } else { 33 };

/// The shortest and the longest frame in bytes, without its head: the addresses and the type, and
/// these with the longest packet of IP.
pub const SHORTEST: usize = 14;
/// The longest frame in bytes, without its head.
pub const LONGEST: usize = SHORTEST + 65535;
const _: () = assert!(cfg!(loom) || LONGEST + head::HEAD <= MOST_PIECES * BUFFER);
