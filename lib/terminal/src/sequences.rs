//! A terminal: the reader of bytes, and the screen that they change.

use crate::cell::Cell;
use crate::description::Tail;
use crate::palette::Palette;
use crate::screen::{Modes, Screen};
use alloc::vec::Vec;
use vte::Parser;

/// A terminal.
pub struct Terminal {
    parser: Parser,
    screen: Screen,
    colours: ColourSequence,
    /// Whether the last byte may be within a character.
    is_partial: bool,
    /// How many lines of the history are seen.
    back: usize,
    tail: Tail,
}

/// Where the bytes are in a sequence that changes the palette. Unlike other strings for the
/// terminal it has no end of its own: after `ESC ] R` and after the seven digits of `ESC ] P` the
/// next byte is text again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ColourSequence {
    #[default]
    Outside,
    /// After ESC.
    Escape,
    /// After `ESC ]`.
    String,
    /// After `P`, with so many digits to come.
    Digits(u8),
}

const ESCAPE: u8 = 0x1b;
/// The byte that ends a string for the terminal.
const BELL: u8 = 7;

impl Terminal {
    /// A blank terminal of at least one row and column that keeps `history` lines which leave it at
    /// its top.
    pub fn new(columns: usize, rows: usize, history: usize) -> Terminal {
        Terminal {
            parser: Parser::new(),
            screen: Screen::new(columns, rows, history),
            colours: ColourSequence::default(),
            is_partial: false,
            back: 0,
            tail: Tail::default(),
        }
    }

    /// The bytes that make a blank terminal of this size like this one, except for the history: it
    /// then shows the same, and obeys what comes in the same way.
    pub fn describe(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.screen.describe(&mut bytes);
        bytes.extend_from_slice(self.tail.bytes());
        bytes
    }

    /// Reads what a program writes. The screen is seen again if the history was.
    pub fn write(&mut self, mut bytes: &[u8]) {
        self.see(0);
        self.tail.take(bytes);
        while !bytes.is_empty() {
            let length = match self.colours {
                // The reader loses text that follows the rest of a character in the same piece.
                _ if self.is_partial => 1,
                ColourSequence::Outside => {
                    let escape = bytes.iter().position(|&byte| byte == ESCAPE);
                    escape.map_or(bytes.len(), |at| at + 1)
                }
                _ => 1,
            };
            let (now, rest) = bytes.split_at(length);
            self.read(now);
            self.is_partial = now.last().is_some_and(|byte| !byte.is_ascii());
            bytes = rest;
        }
    }

    /// Reads bytes of which only the last can be an ESC, one byte within a sequence.
    fn read(&mut self, bytes: &[u8]) {
        let last = bytes.last().copied().unwrap_or(0);
        let (next, ends) = match (self.colours, last) {
            (ColourSequence::Escape, b']') => (ColourSequence::String, false),
            (ColourSequence::String, b'R') => (ColourSequence::Outside, true),
            (ColourSequence::String, b'P') => (ColourSequence::Digits(7), false),
            (ColourSequence::Digits(left), digit) if digit.is_ascii_hexdigit() => match left {
                1 => (ColourSequence::Outside, true),
                _ => (ColourSequence::Digits(left - 1), false),
            },
            (ColourSequence::Digits(_), _) => {
                // What has been read so far is no colour, and the byte is none of its.
                self.parser.advance(&mut self.screen, &[BELL]);
                (if last == ESCAPE { ColourSequence::Escape } else { ColourSequence::Outside }, false)
            }
            (_, ESCAPE) => (ColourSequence::Escape, false),
            _ => (ColourSequence::Outside, false),
        };
        self.parser.advance(&mut self.screen, bytes);
        if ends {
            self.parser.advance(&mut self.screen, &[BELL]);
        }
        self.colours = next;
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.screen.grid.columns()
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.screen.grid.rows()
    }

    /// The cells of a row that is seen: of the screen, or of the history.
    pub fn row(&self, row: usize) -> &[Cell] {
        self.screen.grid.line(row, self.back)
    }

    /// Row and column of the cursor, if it is seen.
    pub fn cursor(&self) -> Option<(usize, usize)> {
        let row = self.screen.pen.row + self.back;
        let is_seen = self.screen.modes.contains(Modes::CURSOR) && row < self.rows();
        is_seen.then_some((row, self.screen.pen.column))
    }

    /// The palette.
    pub fn palette(&self) -> &Palette {
        &self.screen.palette
    }

    /// What the program has chosen.
    pub fn modes(&self) -> Modes {
        self.screen.modes
    }

    /// Takes what the terminal answers to questions of the program: it is to be typed.
    pub fn take_answers(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.screen.answers)
    }

    /// Moves what is seen by so many lines into the history, or, if negative, back from it.
    pub fn scroll(&mut self, lines: isize) {
        self.see(self.back.saturating_add_signed(lines).min(self.screen.grid.history()));
    }

    /// Lets so many lines of the history be seen.
    fn see(&mut self, back: usize) {
        if self.back != back {
            self.back = back;
            self.screen.grid.change_all();
        }
    }

    /// Whether a row that is seen may have changed since this was asked last. The cursor does not
    /// count.
    pub fn take_change(&mut self, row: usize) -> bool {
        self.screen.grid.take_change(row)
    }

    /// The text of a row that is seen, without blanks at its end.
    pub fn text(&self, row: usize) -> alloc::string::String {
        let text: alloc::string::String = self.row(row).iter().map(|cell| cell.character).collect();
        text.trim_end().into()
    }
}

impl core::fmt::Debug for Terminal {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_struct("Terminal").field("pen", &self.screen.pen).finish_non_exhaustive()
    }
}
