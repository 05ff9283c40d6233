//! The console: a serial port as a terminal. The driver is the program of this package, an ordinary
//! server of root's (ARCHITECTURE U9); [`client`] is how another server uses it, without ever
//! waiting for it (U6).
//!
//! The two share an [`Area`](area::Area) with a [`ring`] of bytes each way. Who has put something
//! into a ring, or taken something out of one whose writer waits, notifies the other.
//! `interfaces/console.defs` is the interface.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

pub mod area;
pub mod client;
pub mod ring;
pub mod uart;
