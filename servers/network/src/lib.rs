//! The internet protocols as a server: a stack ([`inet`]) with its sockets, interfaces and timers,
//! in a task of its own. Its one client is the Unix server, which has the files that sockets are.
//!
//! | module | subject |
//! |---|---|
//! | [`client`] | the client's way to the server, as [`inet::placement`] wants it |
//! | [`service`] | the server's side: its client, and the requests to the stack |
//! | [`card`] | frames between the stack and the driver of a network interface |
//! | [`frames`] | what a frame leaves to the device |
//!
//! The server never waits for its client: it answers a request, and otherwise notifies the client
//! that sockets have become ready, once until the client has asked which.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod card;
pub mod client;
pub mod frames;
pub mod service;

/// The name of the server in the configuration.
pub const NAME: &str = "network";
