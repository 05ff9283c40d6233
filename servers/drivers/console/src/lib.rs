//! Consoles. The program of this package drives a serial port as a console, and is an ordinary
//! server of root's; another server uses it through [`client`], which does not wait for the driver
//! after the start (docs/src/architecture.md). The driver of a screen has several consoles, and
//! serves each in the same way, by [`attached`].
//!
//! The two share an [`Area`](area::Area) with a [`ring`] of bytes each way. A side that has put
//! something into a ring notifies the other, and so does a side that has taken something out of a
//! ring whose writer waits. `interfaces/console.defs` is the interface.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod area;
pub mod attached;
pub mod client;
pub mod uart;
