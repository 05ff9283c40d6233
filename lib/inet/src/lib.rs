//! The internet protocols without input and output: Ethernet, ARP, IPv4, IPv6 with neighbour
//! discovery, ICMP, UDP and TCP, with the sockets above them. A [`Stack`] is given the frames that
//! arrive and the time, and answers frames to be sent and the moment when it wants to be called
//! again. Packets to the system's own addresses never leave it.
//!
//! No call blocks: a request that would have to wait answers [`Error::WouldBlock`], and
//! [`Stack::ready`] names the sockets whose [`Readiness`] may have changed. What a stack allocates
//! is bounded by its [`Limits`], whatever arrives.
//!
//! Formats of packets are those of `smoltcp::wire`; the state machines are of this library.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod addresses;
mod changes;
mod checksum;
mod dhcp;
mod discovery;
mod error;
pub mod filter;
mod flow;
mod fragment;
mod hash;
mod neighbour;
mod net;
mod output;
mod path;
pub mod placement;
mod ring;
mod slab;
mod socket;
mod stack;
mod table;
mod tcp;
mod time;
mod types;
mod wire;

pub use error::{Error, Result};
pub use placement::Internet;
pub use stack::Stack;
pub use time::Instant;
pub use types::*;

#[cfg(test)]
mod tests;
