//! The part that the tests and the benchmark of the Mach library on L4 share: a program that
//! carries out commands, and the server's side of it.
#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

pub mod code;
pub mod servant;
