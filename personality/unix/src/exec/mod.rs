//! Programs: what a file is ([`elf`], [`script`]), where its parts go ([`layout`]), what it finds
//! on its stack ([`arguments`], [`stack`]). execve(2), elf(5).
//!
//! Everything here is computed from bytes, without touching a process, so that a bad file is
//! refused before the old program is gone.

pub mod arguments;
pub mod elf;
pub mod layout;
pub mod script;
pub mod stack;

pub use arguments::Arguments;
pub use elf::Image;
pub use layout::{Layout, Placement};
