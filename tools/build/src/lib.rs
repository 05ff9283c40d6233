//! Builds what boots: the kernel and the native programs, the programs in C, those of Linux, and a
//! boot loader. It also has what every other part of `./mac` needs: where things are, and how
//! programs are started.
#![forbid(unsafe_code)]

pub mod build;
pub mod command;
pub mod guests;
pub mod kickstart;
pub mod packages;
pub mod programs_c;
pub mod scratch;
pub mod toolchain;
pub mod tree;
