//! A terminal emulator: it turns the output of programs into a screen, and a screen into a picture.

#![forbid(unsafe_code)]

mod picture;
mod screen;

pub use picture::svg;
pub use screen::Screen;
