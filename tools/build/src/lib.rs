//! Builds the files that boot: the kernel, the native programs in Rust and C, Linux programs, and a
//! boot loader. It also has what the other crates of `./mac` share: the paths of the tree, and how
//! programs are started.
#![forbid(unsafe_code)]

pub mod build;
pub mod command;
pub mod guests;
pub mod kickstart;
mod mach_programs;
pub mod packages;
pub mod programs_c;
pub mod scratch;
pub mod toolchain;
pub mod tree;
