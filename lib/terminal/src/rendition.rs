//! The colours and the style of the characters that come (SGR).

use crate::cell::{Cell, Colour, Style};
use vte::Params;

/// Changes the rendition that `cell` has, whose character does not matter.
pub(crate) fn select(cell: &mut Cell, parameters: &Params) {
    let mut all = parameters.iter();
    while let Some(parameter) = all.next() {
        let number = parameter.first().copied().unwrap_or(0);
        match number {
            0 => *cell = Cell::BLANK,
            1 => cell.style |= Style::BOLD,
            2 => cell.style |= Style::FAINT,
            4 if parameter.get(1) == Some(&0) => cell.style -= Style::UNDERLINE,
            4 | 21 => cell.style |= Style::UNDERLINE,
            5 => cell.style |= Style::BLINK,
            7 => cell.style |= Style::REVERSE,
            22 => cell.style -= Style::BOLD | Style::FAINT,
            24 => cell.style -= Style::UNDERLINE,
            25 => cell.style -= Style::BLINK,
            27 => cell.style -= Style::REVERSE,
            30..=37 => cell.ink = Colour::Indexed(number as u8 - 30),
            40..=47 => cell.paper = Colour::Indexed(number as u8 - 40),
            90..=97 => cell.ink = Colour::Indexed(number as u8 - 90 + 8),
            100..=107 => cell.paper = Colour::Indexed(number as u8 - 100 + 8),
            39 => cell.ink = Colour::Default,
            49 => cell.paper = Colour::Default,
            38 | 48 => {
                let colour = match parameter.len() {
                    // The parts of the colour are parameters of their own, or parts of this one.
                    1 => extended(|| all.next().and_then(|next| next.first().copied())),
                    _ => {
                        let mut parts = parameter[1..].iter().copied();
                        // With all parts there is room for a colour space before red.
                        let skip = parameter.len() > 5;
                        let kind = parts.next();
                        if skip {
                            parts.next();
                        }
                        let mut parts = kind.into_iter().chain(parts);
                        extended(|| parts.next())
                    }
                };
                match (number, colour) {
                    (38, Some(colour)) => cell.ink = colour,
                    (_, Some(colour)) => cell.paper = colour,
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// The colour whose parts follow: 5 and a number, or 2 and red, green and blue.
fn extended(mut next: impl FnMut() -> Option<u16>) -> Option<Colour> {
    match next()? {
        5 => u8::try_from(next()?).ok().map(Colour::Indexed),
        2 => {
            let mut part = || next().and_then(|part| u8::try_from(part).ok());
            let (red, green, blue) = (part(), part(), part());
            Some(Colour::Rgb(red?, green?, blue?))
        }
        _ => None,
    }
}
