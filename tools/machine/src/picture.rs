//! The text on the screen of an emulated machine, read from a picture of it.
//!
//! A picture of pixels is read cell by cell, by the font of the kernel and of the screen's server.
//! In the VGA's text mode the characters are read from the machine's memory, since the picture has
//! the firmware's font.

use crate::monitor::Monitor;
use anyhow::{Context, Result, bail};
use std::path::Path;
use terminal::{Font, HEIGHT, WIDTH, text_mode};

/// The size of the picture of the text mode with 80 columns and 25 rows.
const TEXT_MODE: (usize, usize) = (720, 400);
const COLUMNS: usize = 80;
const ROWS: usize = 25;
/// What stands for a cell that shows no character of the font.
const UNKNOWN: char = '\u{fffd}';

/// A picture: pixels of three bytes, line by line.
struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

/// The rows of text on the machine's screen, without blanks at their ends. `scratch` is a directory
/// for the picture.
///
/// # Errors
/// QEMU makes no picture, because the machine has no screen.
pub fn text(monitor: &mut Monitor, scratch: &Path) -> Result<Vec<String>> {
    let file = scratch.join("screen.ppm");
    let _ = std::fs::remove_file(&file);
    // A blank within the quotes of the monitor's command is no separator.
    let said = monitor.ask(&format!("screendump \"{}\"", file.display()))?;
    let bytes = std::fs::read(&file).with_context(|| format!("QEMU made no picture: {said}"))?;
    let picture = Picture::parse(&bytes).context("QEMU's picture is not a portable pixmap")?;
    if (picture.width, picture.height) == TEXT_MODE {
        return characters(&monitor.ask(&format!("xp /{}xh 0xb8000", COLUMNS * ROWS))?);
    }
    Ok(picture.text(&Font::new()))
}

/// The rows of the text mode from what QEMU prints of its memory: addresses and numbers of 16 bits.
fn characters(memory: &str) -> Result<Vec<String>> {
    let words =
        memory.lines().filter_map(|line| line.split_once(": ")).flat_map(|(_, words)| words.split(' '));
    let characters = words.map(|word| {
        let word = word.trim_start_matches("0x");
        u16::from_str_radix(word, 16).map(|word| text_mode::character(word as u8))
    });
    let characters: Vec<char> =
        characters.collect::<Result<_, _>>().context("reading the text mode's memory")?;
    if characters.len() != COLUMNS * ROWS {
        bail!("QEMU prints {} characters of the text mode", characters.len());
    }
    Ok(characters.chunks(COLUMNS).map(row).collect())
}

fn row(characters: &[char]) -> String {
    characters.iter().collect::<String>().trim_end().to_string()
}

impl Picture {
    /// Reads a portable pixmap (P6): three numbers as text, then the pixels.
    fn parse(bytes: &[u8]) -> Option<Picture> {
        let mut rest = bytes.strip_prefix(b"P6")?;
        let mut number = || {
            let start = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
            let length = rest[start..].iter().position(u8::is_ascii_whitespace)?;
            let (word, after) = rest[start..].split_at(length);
            rest = &after[1..];
            std::str::from_utf8(word).ok()?.parse::<usize>().ok()
        };
        let (width, height, depth) = (number()?, number()?, number()?);
        let pixels = rest.to_vec();
        (depth == 255 && pixels.len() >= width * height * 3).then_some(Picture { width, height, pixels })
    }

    fn text(&self, font: &Font) -> Vec<String> {
        let columns = self.width / WIDTH;
        let cells = |y| (0..columns).map(|x| self.cell(font, x, y)).collect::<Vec<_>>();
        (0..self.height / HEIGHT).map(|y| row(&cells(y))).collect()
    }

    /// The character in a cell, on whatever of its two colours: that of a cursor is exchanged.
    fn cell(&self, font: &Font, column: usize, line: usize) -> char {
        let pixel = |x, y| {
            let at = ((line * HEIGHT + y) * self.width + column * WIDTH + x) * 3;
            &self.pixels[at..at + 3]
        };
        let first = pixel(0, 0);
        let mut rows = [0u8; HEIGHT];
        for (y, row) in rows.iter_mut().enumerate() {
            *row = (0..WIDTH).fold(0, |bits, x| bits << 1 | u8::from(pixel(x, y) != first));
        }
        let exchanged = rows.map(|row| !row);
        font.character(&rows).or_else(|| font.character(&exchanged)).unwrap_or(UNKNOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_back_from_pixels_of_any_colours() {
        let font = Font::new();
        let lines = ["a g│", "─█?Z"];
        let mut picture = Picture { width: 4 * WIDTH, height: 2 * HEIGHT + 5, pixels: Vec::new() };
        picture.pixels = vec![7; picture.width * picture.height * 3];
        for (line, text) in lines.iter().enumerate() {
            for (column, character) in text.chars().enumerate() {
                for (y, bits) in font.glyph(character).iter().enumerate() {
                    for x in 0..WIDTH {
                        let at = ((line * HEIGHT + y) * picture.width + column * WIDTH + x) * 3;
                        let is_lit = bits & 0x80 >> x != 0;
                        // The cell in the second column of the first row has the cursor.
                        let colour =
                            if is_lit == (line == 0 && column == 1) { [9, 9, column as u8] } else { [80; 3] };
                        picture.pixels[at..at + 3].copy_from_slice(&colour);
                    }
                }
            }
        }
        let file =
            [format!("P6\n{} {}\n255\n", picture.width, picture.height).as_bytes(), &picture.pixels].concat();
        let read = Picture::parse(&file).unwrap().text(&font);
        // A cell that is lit all over looks like a blank one with the cursor.
        assert_eq!(read, ["a g│", "─ ?Z"]);
        assert!(Picture::parse(&file[..60]).is_none() && Picture::parse(b"P5\n1 1\n255\nx").is_none());
    }

    #[test]
    fn the_text_mode_is_read_from_memory() {
        let line = |address: usize, word: &str| format!("{address:016x}: {}\n", [word; 8].join(" "));
        let memory: String = (0..250)
            .map(|index| line(0xb8000 + 16 * index, if index < 10 { "0x0741" } else { "0x0720" }))
            .collect();
        let rows = characters(&memory).unwrap();
        assert_eq!((rows.len(), rows[0].as_str(), rows[1].as_str()), (25, "A".repeat(80).as_str(), ""));
        assert!(characters("no memory").is_err());
    }
}
