//! A screen of pixels.

use crate::memory::ScreenMemory;
use crate::shown::{Display, Shown};
use alloc::format;
use alloc::string::String;
use l4::x2::boot_info::Screen;
use terminal::{Font, HEIGHT, Rgb, WIDTH};

/// The row of a cell's pixels in which underlined characters have their line.
const LINE: usize = 14;

/// A screen of pixels that shows cells.
#[derive(Debug)]
pub struct Framebuffer<'a> {
    memory: ScreenMemory<'a>,
    screen: Screen,
    font: Font,
}

impl<'a> Framebuffer<'a> {
    /// The screen whose pixels are in `memory`. Nothing is drawn.
    ///
    /// # Errors
    /// A text: pixels have no such form, or no character fits on the screen.
    pub fn new(memory: ScreenMemory<'a>, screen: Screen) -> Result<Framebuffer<'a>, String> {
        let bytes = screen.bits.div_ceil(8);
        let framebuffer = Framebuffer { memory, screen, font: Font::new() };
        let (columns, rows) = framebuffer.size();
        if !(2..=4).contains(&bytes) || columns == 0 || rows == 0 {
            let Screen { width, height, bits, .. } = screen;
            return Err(format!("the screen has {width} by {height} pixels of {bits} bits"));
        }
        Ok(framebuffer)
    }

    /// The word of a pixel of this colour.
    fn pixel(&self, colour: Rgb) -> u32 {
        let places = self.screen.colours.to_le_bytes();
        let parts = colour.iter().zip(places.chunks_exact(2)).map(|(part, place)| {
            let (shift, bits) = (u32::from(place[0]), u32::from(place[1]).min(8));
            // The highest bits are kept if a pixel has fewer.
            (u32::from(*part) >> (8 - bits)).checked_shl(shift).unwrap_or(0)
        });
        parts.fold(0, |word, part| word | part)
    }
}

impl Display for Framebuffer<'_> {
    fn size(&self) -> (usize, usize) {
        (self.screen.width as usize / WIDTH, self.screen.height as usize / HEIGHT)
    }

    fn draw(&mut self, row: usize, column: usize, cell: &Shown) {
        let bytes = self.screen.bits.div_ceil(8) as usize;
        let (ink, paper) = (self.pixel(cell.ink).to_le_bytes(), self.pixel(cell.paper).to_le_bytes());
        for (y, bits) in self.font.glyph(cell.character).iter().enumerate() {
            let bits = if cell.underlined && y == LINE { 0xff } else { *bits };
            let line = (row * HEIGHT + y) * self.screen.pitch as usize + column * WIDTH * bytes;
            for x in 0..WIDTH {
                let colour = if bits & 0x80 >> x == 0 { paper } else { ink };
                let at = line + x * bytes;
                if bytes == 4 {
                    self.memory.write_word(at, colour);
                } else {
                    (0..bytes).for_each(|part| self.memory.write(at + part, colour[part]));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: Shown = Shown {
        character: 'g',
        ink: [0xff, 0x80, 0x40],
        paper: [0, 0, 0xff],
        numbers: (0, 0),
        underlined: true,
    };

    fn drawn(bits: u64, colours: u64) -> (Vec<u8>, usize) {
        let pitch = 20 * bits.div_ceil(8) + 4;
        let screen = Screen { physical: 0, pitch, width: 20, height: 35, bits, colours };
        let mut bytes = alloc::vec![0x55; screen.size() as usize];
        let mut framebuffer = Framebuffer::new(ScreenMemory::of(&mut bytes), screen).unwrap();
        assert_eq!(framebuffer.size(), (2, 2));
        framebuffer.draw(1, 1, &CELL);
        (bytes, pitch as usize)
    }

    #[test]
    fn a_cell_is_drawn_in_pixels_of_each_form() {
        let of = |red: u64, green: u64, blue: u64| red | green << 16 | blue << 32;
        for (bits, colours, ink, paper) in [
            (32, of(0x810, 0x808, 0x800), 0xff_8040, 0xff),
            (24, of(0x800, 0x808, 0x810), 0x40_80ff, 0xff_0000),
            (16, of(0x50b, 0x605, 0x500), 0xfc08, 0x1f),
            (15, of(0x50a, 0x505, 0x500), 0x7e08, 0x1f),
        ] {
            let (screen, pitch) = drawn(bits, colours);
            let bytes = bits.div_ceil(8) as usize;
            let pixel = |x: usize, y: usize| {
                let part = |part| usize::from(screen[y * pitch + x * bytes + part]) << (8 * part);
                (0..bytes).map(part).sum::<usize>()
            };
            let untouched = (0..bytes).map(|part| 0x55 << (8 * part)).sum::<usize>();
            for (x, y) in (0..20).flat_map(|x| (0..35).map(move |y| (x, y))) {
                if !(8..16).contains(&x) || !(16..32).contains(&y) {
                    assert_eq!(pixel(x, y), untouched);
                    continue;
                }
                let is_lit = y - 16 == LINE || Font::new().glyph('g')[y - 16] & 0x80 >> (x - 8) != 0;
                assert_eq!(pixel(x, y), if is_lit { ink } else { paper }, "{bits} {x} {y}");
            }
        }
    }

    #[test]
    fn a_screen_of_another_kind_is_refused_and_one_that_lies_is_harmless() {
        let mut bytes = [0; 64];
        let screen = Screen { physical: 0, pitch: 4096, width: 1024, height: 768, bits: 32, colours: !0 };
        for (width, bits) in [(1024, 0), (1024, 8), (1024, 64), (7, 32)] {
            assert!(
                Framebuffer::new(ScreenMemory::of(&mut bytes), Screen { width, bits, ..screen }).is_err()
            );
        }
        let mut framebuffer = Framebuffer::new(ScreenMemory::of(&mut bytes), screen).unwrap();
        (0..40).for_each(|row| framebuffer.draw(row, 100, &CELL));
    }
}
