//! A keyboard at a PC's keyboard controller. The driver is the program of this package, an ordinary
//! server of root's. Another server uses it through `input::client`.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod controller;
pub mod decoder;
pub mod lights;
