//! A terminal with its screen: what programs write becomes a screen, and a screen becomes a
//! picture.

#![forbid(unsafe_code)]

mod picture;
mod screen;

pub use picture::svg;
pub use screen::Screen;
