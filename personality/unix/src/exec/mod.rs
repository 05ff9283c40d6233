//! Programs: what a file is ([`image`], [`script`]) in which format ([`elf`]), where its parts go
//! ([`layout`]), what it finds on its stack ([`arguments`], [`stack`]). execve(2), elf(5).
//!
//! Everything here is computed from bytes, without touching a process, so that a bad file is
//! refused before the old program is gone.

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
