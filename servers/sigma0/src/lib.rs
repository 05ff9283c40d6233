//! What sigma0 decides, apart from the machine it runs on: which thread owns which physical memory
//! and which IO ports ([`pool`]), what the kernel interface page says about them ([`memory_map`]),
//! and what a message asks for ([`server`]).
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod memory_map;
pub mod pool;
pub mod server;
