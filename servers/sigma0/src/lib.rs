//! The part of sigma0 that decides, without the machine: which thread owns which physical memory
//! and which I/O ports ([`pool`]), what the kernel interface page says about them ([`memory_map`]),
//! and how messages are answered ([`server`]).
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod memory_map;
pub mod pool;
pub mod server;
