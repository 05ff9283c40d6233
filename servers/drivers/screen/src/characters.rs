//! A screen in the VGA's text mode.

use crate::memory::ScreenMemory;
use crate::shown::{Display, Shown};
use l4::x2::boot_info::Screen;
use terminal::text_mode;

/// A screen in the text mode that shows cells: two bytes for each, the character and its colours.
#[derive(Debug)]
pub struct Characters<'a> {
    memory: ScreenMemory<'a>,
    screen: Screen,
}

impl<'a> Characters<'a> {
    /// The screen whose characters are in `memory`. Nothing is drawn.
    pub fn new(memory: ScreenMemory<'a>, screen: Screen) -> Characters<'a> {
        Characters { memory, screen }
    }
}

/// A colour's number as the VGA has it, which counts red and blue the other way round.
fn attribute(number: u8) -> u8 {
    number & 0b1010 | (number & 1) << 2 | number >> 2 & 1
}

impl Display for Characters<'_> {
    fn size(&self) -> (usize, usize) {
        (self.screen.width as usize, self.screen.height as usize)
    }

    fn draw(&mut self, row: usize, column: usize, cell: &Shown) {
        let (ink, paper) = cell.numbers;
        // The mode has no line below a character: it is bright instead. The highest bit of the
        // colours would make it blink.
        let ink = if cell.underlined { ink | 8 } else { ink };
        let at = row * self.screen.pitch as usize + column * 2;
        self.memory.write(at, text_mode::number(cell.character));
        self.memory.write(at + 1, attribute(ink) | (attribute(paper) & 7) << 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_a_character_and_an_attribute() {
        let mut bytes = [0; 12];
        let screen = Screen { pitch: 6, width: 3, height: 2, ..Screen::TEXT };
        let mut characters = Characters::new(ScreenMemory::of(&mut bytes), screen);
        let cell =
            Shown { character: '─', ink: [0; 3], paper: [0; 3], numbers: (9, 12), underlined: false };
        characters.draw(1, 2, &cell);
        characters.draw(0, 1, &Shown { character: 'x', numbers: (3, 0), underlined: true, ..cell });
        characters.draw(9, 9, &cell);
        // Bright red on blue, bright brown on black.
        assert_eq!(bytes, [0, 0, b'x', 0x0e, 0, 0, 0, 0, 0, 0, 0xc4, 0x1c]);
    }
}
