//! A cell of the screen: a character, its colours and its style.

use bitflags::bitflags;

/// A colour of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// The one that the terminal has unless a program chooses another.
    #[default]
    Default,
    /// A colour of the palette; from 16 on, of the fixed cube and the greys of 256 colours.
    Indexed(u8),
    /// Red, green and blue.
    Rgb(u8, u8, u8),
}

bitflags! {
    /// How a character is shown, in addition to its colours.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Style: u8 {
        /// In the bright form of its colour.
        const BOLD = 1;
        /// In dark grey.
        const FAINT = 2;
        /// With a line below.
        const UNDERLINE = 4;
        /// On the bright form of the colour of its background.
        const BLINK = 8;
        /// With the two colours exchanged.
        const REVERSE = 16;
    }
}

/// A cell of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What is shown. A character of two columns has a blank in the cell after its own.
    pub character: char,
    /// The colour of the character.
    pub ink: Colour,
    /// The colour of the background.
    pub paper: Colour,
    /// How the character is shown.
    pub style: Style,
}

/// The colours of the palette that the default ones stand for: light grey on black.
const INK: u8 = 7;
const PAPER: u8 = 0;
/// The colour of faint characters: dark grey.
const FAINT: u8 = 8;
/// The distance in the palette from a colour to its bright form.
const BRIGHT: u8 = 8;

impl Cell {
    /// A blank cell.
    pub const BLANK: Cell =
        Cell { character: ' ', ink: Colour::Default, paper: Colour::Default, style: Style::empty() };

    /// The colours of the character and the background as they are shown, none of them
    /// [`Colour::Default`]. `reversed`: all colours of the screen are exchanged.
    pub fn colours(&self, reversed: bool) -> (Colour, Colour) {
        let bright = |colour, is_bright| match colour {
            Colour::Indexed(number @ 0..8) if is_bright => Colour::Indexed(number + BRIGHT),
            colour => colour,
        };
        let chosen = |colour, default| match colour {
            Colour::Default => Colour::Indexed(default),
            colour => colour,
        };
        let mut ink = bright(chosen(self.ink, INK), self.style.contains(Style::BOLD));
        if self.style.contains(Style::FAINT) {
            ink = Colour::Indexed(FAINT);
        }
        let paper = bright(chosen(self.paper, PAPER), self.style.contains(Style::BLINK));
        if self.style.contains(Style::REVERSE) != reversed { (paper, ink) } else { (ink, paper) }
    }
}
