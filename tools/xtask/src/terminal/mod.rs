//! A terminal as a person sees it: what programs write becomes a screen, and a screen a picture.

mod picture;
mod screen;

pub(crate) use picture::svg;
pub(crate) use screen::Screen;
