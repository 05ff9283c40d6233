//! The machine's screen and keyboards as virtual consoles. The program of this package is an
//! ordinary server of root's, which the configuration gives the screen (`screen yes`). Its clients
//! are those of `interfaces/console.defs`, one for each console; its keyboards are the servers
//! whose names are its arguments (`interfaces/input.defs`).
//!
//! A console is a [`terminal`]. One of them is visible. What it shows is compared with what the
//! [screen shows](shown), and the cells that differ are drawn, as [pixels](framebuffer) or as
//! characters of the VGA's [text mode](characters). What consoles show is [saved], for a server
//! that is started in place of this one.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod characters;
pub mod framebuffer;
pub mod memory;
pub mod saved;
pub mod shown;
