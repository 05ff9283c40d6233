//! A terminal as Linux' console is one (`TERM=linux`): what programs write becomes [cells](Cell) of
//! characters and colours, of which a driver shows those that have changed. There are colours, a
//! scroll region, insertion and deletion, line drawing, reports to the program, a palette, and
//! lines that have left the screen at its top. A [font] and the characters of the VGA's [text
//! mode](text_mode) are here as well.
//!
//! Escape sequences are read by crate `vte`. No sequence of bytes panics, and what a terminal
//! allocates does not depend on them.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod cell;
mod control;
mod description;
mod font;
mod grid;
mod palette;
mod rendition;
mod screen;
mod sequences;
pub mod text_mode;

pub use cell::{Cell, Colour, Style};
pub use font::{Font, HEIGHT, WIDTH};
pub use palette::{Palette, Rgb};
pub use screen::Modes;
pub use sequences::Terminal;

#[cfg(test)]
mod tests;
