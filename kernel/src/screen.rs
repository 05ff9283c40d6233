//! The machine's screen as the kernel writes on it: white characters on black. The kernel's lines
//! are there until a program gets the screen, and again when the kernel panics.
//!
//! Nothing here takes a lock or can fail: a panic may come at any time, in the middle of a line,
//! too. If several processors write, their characters mix, as on the serial line.
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use x2::boot_info::Screen;

use crate::boot_cell::BootCell;

/// Pixels of a character.
const WIDTH: u32 = 8;
const HEIGHT: u32 = 16;
/// The rows of the characters from `FIRST` on, 16 bytes for each; the leftmost pixel is the highest
/// bit.
static FONT: &[u8; 95 * HEIGHT as usize] = include_bytes!(concat!(env!("OUT_DIR"), "/font"));
const FIRST: u8 = b' ';
/// What is shown for a byte that is no character of ASCII.
const UNKNOWN: u8 = b'?';
/// The attribute of characters in the text mode: light grey on black.
const ATTRIBUTE: u8 = 7;
/// Rows of text that are used at most, so that little of a large screen has to be mapped.
const MOST_ROWS: u32 = 50;

static WINDOW: BootCell<Option<Window>> = BootCell::new(None);
/// Whether what the kernel says is shown.
static SHOWS: AtomicBool = AtomicBool::new(false);
/// Whether the screen has been cleared for the kernel's first line.
static BEGUN: AtomicBool = AtomicBool::new(false);
static ROW: AtomicU32 = AtomicU32::new(0);
static COLUMN: AtomicU32 = AtomicU32::new(0);

/// The screen's memory, and what lies where in it.
pub struct Window {
    start: *mut u8,
    /// Bytes from a line of pixels, or of characters in the text mode, to the next.
    pitch: usize,
    /// Bytes of a pixel; 0 in the text mode.
    pixel: usize,
    columns: u32,
    rows: u32,
}

// SAFETY: the memory is written by any processor, and is not read.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

/// Bytes of a screen's memory that [`Window`] uses.
pub fn used(screen: &Screen) -> u64 {
    let lines = if screen.is_text() { MOST_ROWS } else { MOST_ROWS * HEIGHT };
    screen.pitch * screen.height.min(lines.into())
}

/// Shows from now on what the kernel says on this screen. If it was shown elsewhere before, in the
/// same memory at another address, the next line follows the last.
///
/// # Safety
/// Boot only: nothing else runs. At `start` the first [`used`] bytes of the screen are mapped.
pub unsafe fn show_at(start: *mut u8, screen: &Screen) {
    // SAFETY: the caller promises that the memory is there.
    let Some(window) = (unsafe { Window::new(start, screen) }) else { return };
    // SAFETY: the caller promises that nothing else runs.
    unsafe { *WINDOW.get_mut() = Some(window) }
    SHOWS.store(true, Ordering::Relaxed);
    if !BEGUN.swap(true, Ordering::Relaxed) {
        clear();
    }
}

/// Shows nothing until [`show_at`] is called again: the screen's memory will be somewhere else.
///
/// # Safety
/// Boot only: nothing else runs.
pub unsafe fn forget() {
    leave();
    // SAFETY: the caller promises that nothing else runs.
    unsafe { *WINDOW.get_mut() = None }
}

/// Shows nothing any more: a program gets the screen, or what comes is too long for it.
pub fn leave() {
    SHOWS.store(false, Ordering::Relaxed);
}

/// Clears the screen, if there is one, and shows again what the kernel says, unless that is shown
/// already.
#[cold]
pub fn take_back() {
    if WINDOW.get().is_some() && !SHOWS.swap(true, Ordering::Relaxed) {
        clear();
    }
}

fn clear() {
    if let Some(window) = WINDOW.get() {
        (0..window.rows).for_each(|row| window.clear(row));
    }
    ROW.store(0, Ordering::Relaxed);
    COLUMN.store(0, Ordering::Relaxed);
}

/// Shows a byte of text. After the last row the first is next, whose text is lost.
pub fn write_byte(byte: u8) {
    if SHOWS.load(Ordering::Relaxed)
        && let Some(window) = WINDOW.get()
    {
        let (row, column) = window.write(ROW.load(Ordering::Relaxed), COLUMN.load(Ordering::Relaxed), byte);
        ROW.store(row, Ordering::Relaxed);
        COLUMN.store(column, Ordering::Relaxed);
    }
}

impl Window {
    /// The window on a screen, unless not even one character fits on it.
    ///
    /// # Safety
    /// At `start` the first [`used`] bytes of the screen are mapped, as long as the window is used.
    unsafe fn new(start: *mut u8, screen: &Screen) -> Option<Window> {
        let (width, height) = if screen.is_text() { (1, 1) } else { (WIDTH, HEIGHT) };
        let window = Window {
            start,
            pitch: screen.pitch as usize,
            pixel: screen.bits.div_ceil(8) as usize,
            columns: (screen.width / u64::from(width)) as u32,
            rows: ((screen.height / u64::from(height)) as u32).min(MOST_ROWS),
        };
        (window.columns > 0 && window.rows > 0).then_some(window)
    }

    /// Writes a byte at a place. Returns the place of the next.
    fn write(&self, row: u32, column: u32, byte: u8) -> (u32, u32) {
        let (mut row, mut column) = (row, column);
        if byte == b'\r' {
            return (row, column);
        }
        if byte == b'\n' || column >= self.columns {
            (row, column) = ((row + 1) % self.rows, 0);
            self.clear(row);
        }
        if byte != b'\n' {
            self.draw(row, column, byte);
            column += 1;
        }
        (row, column)
    }

    /// Writes bytes at a place, counted in bytes from the start.
    fn put<const SIZE: usize>(&self, at: usize, bytes: [u8; SIZE]) {
        for (offset, byte) in bytes.into_iter().enumerate() {
            // SAFETY: the place is in the used part of the screen, which is mapped as long as there
            // is a window.
            unsafe { self.start.add(at + offset).write_volatile(byte) }
        }
    }

    fn draw(&self, row: u32, column: u32, byte: u8) {
        if self.pixel == 0 {
            return self.put(row as usize * self.pitch + column as usize * 2, [byte, ATTRIBUTE]);
        }
        let known = if (FIRST..=b'~').contains(&byte) { byte } else { UNKNOWN };
        let glyph = usize::from(known - FIRST) * HEIGHT as usize;
        for line in 0..HEIGHT {
            let bits = FONT[glyph + line as usize];
            for x in 0..WIDTH {
                let at = self.line(row, line) + (column * WIDTH + x) as usize * self.pixel;
                let colour = if bits & 0x80 >> x == 0 { 0 } else { 0xff };
                (0..self.pixel).for_each(|part| self.put(at + part, [colour]));
            }
        }
    }

    /// The place of a line of pixels of a row of text.
    fn line(&self, row: u32, line: u32) -> usize {
        (row * HEIGHT + line) as usize * self.pitch
    }

    fn clear(&self, row: u32) {
        if self.pixel == 0 {
            return (0..self.columns).for_each(|column| self.draw(row, column, b' '));
        }
        for line in 0..HEIGHT {
            let bytes = (self.columns * WIDTH) as usize * self.pixel;
            // SAFETY: as in `put`.
            unsafe { self.start.add(self.line(row, line)).write_bytes(0, bytes) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(width: u64, height: u64, bits: u64) -> (Screen, Vec<u8>) {
        let pitch = if bits == 0 { width * 2 } else { width * bits.div_ceil(8) + 8 };
        let screen = Screen { physical: 0, pitch, width, height, bits, colours: 0 };
        (screen, vec![0x55; screen.size() as usize])
    }

    fn write(screen: &Screen, memory: &mut [u8], text: &str) {
        // SAFETY: the memory has the screen's size.
        let window = unsafe { Window::new(memory.as_mut_ptr(), screen) }.unwrap();
        (0..window.rows).for_each(|row| window.clear(row));
        text.bytes().fold((0, 0), |(row, column), byte| window.write(row, column, byte));
    }

    #[test]
    fn text_is_drawn_in_pixels_of_each_size_and_in_characters() {
        let (text, mut memory) = screen(4, 2, 0);
        write(&text, &mut memory, "abcdef\nx");
        assert_eq!(memory, *b"x\x07 \x07 \x07 \x07e\x07f\x07 \x07 \x07");
        for bits in [15, 16, 24, 32] {
            let (pixels, mut memory) = screen(3 * 8 + 5, 2 * 16 + 3, bits);
            write(&pixels, &mut memory, "lost\nab\r\u{1}c");
            let bytes = bits.div_ceil(8) as usize;
            let is_lit = |row: usize, column: usize, y: usize, x: usize| {
                let at = (row * 16 + y) * pixels.pitch as usize + (column * 8 + x) * bytes;
                let pixel = &memory[at..at + bytes];
                assert!(pixel.iter().all(|&part| part == 0) || pixel.iter().all(|&part| part == 0xff));
                pixel[0] != 0
            };
            for (row, line) in ["ab?", "c  "].into_iter().enumerate() {
                for (column, byte) in line.bytes().enumerate() {
                    let glyph = &FONT[usize::from(byte - FIRST) * 16..][..16];
                    for (y, bits) in glyph.iter().enumerate() {
                        let shown = (0..8).fold(0, |bits, x| bits << 1 | u8::from(is_lit(row, column, y, x)));
                        assert_eq!(shown, *bits, "{row} {column} {y}");
                    }
                }
            }
            // What is not a whole cell stays as it was.
            assert!(memory[(2 * 16) * pixels.pitch as usize..].iter().all(|&byte| byte == 0x55));
        }
    }

    #[test]
    fn little_of_a_large_screen_is_used() {
        let (pixels, _) = screen(640, 4000, 32);
        assert_eq!(used(&pixels), pixels.pitch * 800);
        assert_eq!(used(&screen(80, 25, 0).0), 160 * 25);
    }
}
