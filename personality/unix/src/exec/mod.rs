//! The computations of execve(2): what a program file describes ([`image`], [`script`]) in which
//! format ([`elf`]), where its parts are placed ([`layout`]), and what the program finds on its
//! stack ([`arguments`], [`stack`]).
//!
//! Everything here is computed from bytes, without touching a process, so that a bad file is
//! refused before the process has lost its old program.

pub mod arguments;
pub mod elf;
pub mod image;
pub mod layout;
pub mod script;
pub mod stack;

pub use arguments::Arguments;
pub use elf::Elf;
pub use image::{Image, ImageFormat, Rights};
pub use layout::{Layout, Placement};
