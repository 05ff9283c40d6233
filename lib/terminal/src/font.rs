//! The font: Spleen by Frederic Cambus, 8 by 16 pixels, of crate `spleen-font`.

use alloc::vec::Vec;
use spleen_font::FONT_8X16;

/// Pixels of a character from left to right.
pub const WIDTH: usize = 8;
/// Pixels of a character from top to bottom.
pub const HEIGHT: usize = 16;

/// The file has a header of 4 bytes: two bytes that name the format (PC Screen Font, version 1), a
/// byte whose bit 0 says that there are 512 glyphs, and the height. The glyphs follow, a byte for
/// each row, then for each glyph a list of the characters that it shows, as 16-bit numbers. A list
/// ends with `END`.
const HEADER: usize = 4;
const GLYPHS: usize = 512;
const END: u16 = 0xffff;
const _: () =
    assert!(FONT_8X16[0] == 0x36 && FONT_8X16[1] == 4 && FONT_8X16[2] & 1 == 1 && FONT_8X16[3] == 16);

/// The font, with an index by character.
#[derive(Debug)]
pub struct Font {
    /// The characters with the numbers of their glyphs, sorted.
    index: Vec<(u16, u16)>,
}

impl Default for Font {
    fn default() -> Font {
        Font::new()
    }
}

impl Font {
    /// Makes the index. Allocates about 3 KiB.
    pub fn new() -> Font {
        let mut index = Vec::new();
        let mut glyph = 0;
        for character in FONT_8X16[HEADER + GLYPHS * HEIGHT..].chunks_exact(2) {
            match u16::from_le_bytes([character[0], character[1]]) {
                END => glyph += 1,
                character => index.push((character, glyph)),
            }
        }
        index.sort_unstable();
        index.dedup_by_key(|&mut (character, _)| character);
        Font { index }
    }

    /// The rows of a character from top to bottom; the leftmost pixel is the highest bit. A
    /// character that the font has not is shown as U+FFFD.
    pub fn glyph(&self, character: char) -> &'static [u8; HEIGHT] {
        let number = self.number(character).or_else(|| self.number('\u{fffd}')).unwrap_or(0);
        let glyph = FONT_8X16[HEADER + number * HEIGHT..].first_chunk();
        glyph.expect("the index has numbers of glyphs")
    }

    fn number(&self, character: char) -> Option<usize> {
        let character = u16::try_from(u32::from(character)).ok()?;
        let at = self.index.binary_search_by_key(&character, |&(character, _)| character).ok()?;
        Some(usize::from(self.index[at].1))
    }

    /// The character that has these rows: the first one of those that look the same.
    pub fn character(&self, rows: &[u8; HEIGHT]) -> Option<char> {
        let mut characters = self.index.iter().filter_map(|&(character, _)| char::from_u32(character.into()));
        characters.find(|&character| self.glyph(character) == rows)
    }
}
