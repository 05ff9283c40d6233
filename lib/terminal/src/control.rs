//! What escape sequences do.

use crate::rendition;
use crate::screen::{Modes, Pen, Screen};
use alloc::format;
use vte::{Params, Perform};

/// The answer to a program that asks which terminal this is: a VT102.
const IDENTITY: &[u8] = b"\x1b[?6c";

impl Perform for Screen {
    fn print(&mut self, character: char) {
        Screen::print(self, character);
    }

    fn execute(&mut self, byte: u8) {
        self.control(byte);
    }

    fn csi_dispatch(&mut self, parameters: &Params, intermediates: &[u8], ignore: bool, action: char) {
        if ignore {
            return;
        }
        let of = |index: usize| parameters.iter().nth(index).and_then(|parts| parts.first()).copied();
        match (intermediates, action) {
            (b"", 'm') => rendition::select(&mut self.pen.cell, parameters),
            (b"", 'h' | 'l') => self.choose_all(parameters, ansi_mode, action == 'h'),
            (b"?", 'h' | 'l') => self.choose_all(parameters, private_mode, action == 'h'),
            (b"", 'A'..='H' | '`' | 'a' | 'd' | 'e' | 'f') => self.move_cursor(action, of(0), of(1)),
            (b"", 'J') => self.erase_display(of(0).unwrap_or(0)),
            (b"", 'K') => self.erase_line(of(0).unwrap_or(0)),
            (b"", 'r') => self.set_region(of(0), of(1)),
            (b"", _) => self.edit(action, of(0).unwrap_or(0)),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], ignore: bool, byte: u8) {
        if ignore {
            return;
        }
        match (intermediates, byte) {
            (b"", b'c') => self.reset(),
            (b"", b'D') => self.line_feed(),
            (b"", b'E') => {
                self.line_feed();
                self.pen.column = 0;
            }
            (b"", b'M') => self.reverse_line_feed(),
            (b"", b'H') => self.set_tab(self.pen.column, true),
            (b"", b'Z') => self.answer(IDENTITY),
            (b"", b'7') => self.saved = self.pen,
            (b"", b'8') => self.pen = self.saved,
            (b"", b'=') => self.modes |= Modes::APPLICATION_KEYPAD,
            (b"", b'>') => self.modes -= Modes::APPLICATION_KEYPAD,
            (b"#", b'8') => self.fill_with_letter(),
            (b"(", set) => self.pen.draws[0] = set == b'0',
            (b")", set) => self.pen.draws[1] = set == b'0',
            _ => {}
        }
    }

    /// Changes the palette: `P`, a digit for the colour and six for red, green and blue, all
    /// hexadecimal; or `R` for the one that was there at first.
    fn osc_dispatch(&mut self, parameters: &[&[u8]], _: bool) {
        match parameters.first() {
            Some([b'R']) => self.reset_palette(),
            Some([b'P', digits @ ..]) if digits.len() == 7 => {
                let digits = core::str::from_utf8(digits).ok();
                if let Some(word) = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
                    let [number, colour @ ..] = word.to_be_bytes();
                    self.palette.set(number, colour);
                    self.grid.change_all();
                }
            }
            _ => {}
        }
    }
}

/// The mode of a number without a question mark.
fn ansi_mode(number: u16) -> Modes {
    match number {
        4 => Modes::INSERT,
        20 => Modes::NEW_LINE,
        _ => Modes::empty(),
    }
}

/// The mode of a number after a question mark.
fn private_mode(number: u16) -> Modes {
    match number {
        1 => Modes::APPLICATION_CURSOR,
        5 => Modes::REVERSED,
        6 => Modes::ORIGIN,
        7 => Modes::WRAP,
        25 => Modes::CURSOR,
        _ => Modes::empty(),
    }
}

/// A parameter that counts: 0 and none stand for 1.
fn count(parameter: Option<u16>) -> usize {
    usize::from(parameter.unwrap_or(1).max(1))
}

impl Screen {
    fn choose_all(&mut self, parameters: &Params, mode: fn(u16) -> Modes, on: bool) {
        for number in parameters.iter().filter_map(|parts| parts.first()) {
            let mode = mode(*number);
            self.modes.set(mode, on);
            match mode {
                Modes::ORIGIN => self.address(0, 0),
                Modes::REVERSED => self.grid.change_all(),
                _ => {}
            }
        }
    }

    /// Obeys the sequences that move the cursor.
    fn move_cursor(&mut self, action: char, first: Option<u16>, second: Option<u16>) {
        let Pen { row, column, .. } = self.pen;
        let distance = count(first);
        match action {
            'A' => self.go(row.saturating_sub(distance), column),
            'B' | 'e' => self.go(row + distance, column),
            'C' | 'a' => self.go(row, column + distance),
            'D' => self.go(row, column.saturating_sub(distance)),
            'E' => self.go(row + distance, 0),
            'F' => self.go(row.saturating_sub(distance), 0),
            'G' | '`' => self.go(row, distance - 1),
            'd' => self.address(distance - 1, column),
            _ => self.address(distance - 1, count(second) - 1),
        }
    }

    /// Obeys the sequences that insert, delete, scroll, save and ask.
    fn edit(&mut self, action: char, parameter: u16) {
        let (blank, distance) = (self.blank(), count(Some(parameter)));
        let Pen { row, column, .. } = self.pen;
        match action {
            '@' => self.insert(distance),
            'P' => self.delete(distance),
            'X' => {
                let end = (column + distance).min(self.grid.columns());
                self.grid.fill(row, column..end, blank);
                self.pen.wraps = false;
            }
            'L' if row < self.bottom => self.grid.scroll_down(row..self.bottom, distance, blank),
            // Deleted lines have not left the screen, even if they are its first.
            'M' if row < self.bottom => self.grid.remove(row..self.bottom, distance, blank),
            'S' => self.grid.scroll_up(self.top..self.bottom, distance, blank),
            'T' => self.grid.scroll_down(self.top..self.bottom, distance, blank),
            'b' => self.repeat(distance),
            's' => self.saved = self.pen,
            'u' => self.pen = self.saved,
            'c' if parameter == 0 => self.answer(IDENTITY),
            'n' if parameter == 5 => self.answer(b"\x1b[0n"),
            'n' if parameter == 6 => {
                let first = if self.modes.contains(Modes::ORIGIN) { self.top } else { 0 };
                self.answer(format!("\x1b[{};{}R", row - first.min(row) + 1, column + 1).as_bytes());
            }
            'g' if parameter == 0 => self.set_tab(column, false),
            'g' if parameter == 3 => self.clear_tabs(),
            _ => {}
        }
    }

    fn erase_display(&mut self, what: u16) {
        let (blank, rows, columns) = (self.blank(), self.grid.rows(), self.grid.columns());
        let Pen { row, column, .. } = self.pen;
        self.pen.wraps = false;
        match what {
            0 => {
                self.grid.fill(row, column..columns, blank);
                self.grid.fill_lines(row + 1..rows, blank);
            }
            1 => {
                self.grid.fill_lines(0..row, blank);
                self.grid.fill(row, 0..column + 1, blank);
            }
            2 => self.grid.fill_lines(0..rows, blank),
            3 => {
                self.grid.fill_lines(0..rows, blank);
                self.grid.forget_history();
            }
            _ => {}
        }
    }

    fn erase_line(&mut self, what: u16) {
        let (blank, columns) = (self.blank(), self.grid.columns());
        let Pen { row, column, .. } = self.pen;
        self.pen.wraps = false;
        match what {
            0 => self.grid.fill(row, column..columns, blank),
            1 => self.grid.fill(row, 0..column + 1, blank),
            2 => self.grid.fill(row, 0..columns, blank),
            _ => {}
        }
    }

    /// Sets the scroll region, given by its first and its last row from 1 on, and moves the cursor
    /// to its start. One that is not two rows or more within the screen is ignored.
    fn set_region(&mut self, first: Option<u16>, last: Option<u16>) {
        let top = count(first) - 1;
        let bottom = match last {
            None | Some(0) => self.grid.rows(),
            Some(last) => last.into(),
        };
        if top + 1 < bottom && bottom <= self.grid.rows() {
            (self.top, self.bottom) = (top, bottom);
            self.address(0, 0);
        }
    }
}
