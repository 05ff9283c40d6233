//! Input events of keyboards: what a driver passes to its client, and what keys stand for.
//!
//! | module | subject |
//! |---|---|
//! | [`event`] | an event, with the numbers of Linux' input events |
//! | [`code`] | the codes of keys |
//! | [`area`] | the memory that driver and client share |
//! | [`events`] | the driver's end of it |
//! | [`keyboard`] | a keyboard as its driver sees it: keys that are held, and the client |
//! | [`client`] | the client's end |
//! | [`keymap`] | the bytes and actions for which keys stand, as on Linux' console |
//! | [`layout`] | the characters that are printed on the keys |
//!
//! `interfaces/input.defs` is the interface between a driver and its client.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

pub mod area;
pub mod client;
pub mod code;
pub mod event;
pub mod events;
pub mod keyboard;
pub mod keymap;
pub mod layout;
