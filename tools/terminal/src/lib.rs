//! A terminal as a person sees it: what programs write becomes a screen, and a screen a picture.

#![forbid(unsafe_code)]

mod picture;
mod screen;

pub use picture::svg;
pub use screen::Screen;
