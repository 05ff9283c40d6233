//! A terminal as the bytes that make a blank one like it: what a program that keeps them needs to
//! show the terminal again after its end.

use crate::cell::{Cell, Colour, Style};
use crate::screen::{Modes, Pen, Screen};
use alloc::vec::Vec;
use core::fmt::Write;
use unicode_width::UnicodeWidthChar;

/// The most bytes of a sequence that has begun which are kept.
const LONGEST: usize = 256;
const ESCAPE: u8 = 0x1b;
/// The control characters that end a sequence without effect.
const CANCEL: [u8; 2] = [0x18, 0x1a];

/// The bytes at the end of what was written that are the beginning of a sequence or of a character.
#[derive(Debug, Default)]
pub(crate) struct Tail(Vec<u8>);

impl Tail {
    /// Takes bytes that were written.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        // What is longer than that is no sequence that matters.
        let bytes = &bytes[bytes.len().saturating_sub(LONGEST)..];
        self.0.extend_from_slice(bytes);
        let open = unfinished(&self.0).min(LONGEST);
        let done = self.0.len() - open;
        self.0.drain(..done);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// How many bytes at the end belong to a sequence or a character that has not ended.
fn unfinished(bytes: &[u8]) -> usize {
    if let Some(at) = bytes.iter().rposition(|&byte| byte == ESCAPE)
        && !has_ended(&bytes[at + 1..])
    {
        return bytes.len() - at;
    }
    let most = bytes.len().min(3);
    let needs = |byte: u8| match byte {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 0,
    };
    let starts = |&count: &usize| needs(bytes[bytes.len() - count]) > count;
    (1..=most).find(starts).unwrap_or(0)
}

/// Whether the sequence whose bytes after ESC these are has ended.
fn has_ended(bytes: &[u8]) -> bool {
    if bytes.iter().any(|byte| CANCEL.contains(byte)) {
        return true;
    }
    match bytes {
        [] => false,
        [b'[', rest @ ..] => rest.iter().any(|byte| (0x40..=0x7e).contains(byte)),
        [b']', b'R', ..] => true,
        [b']', b'P', digits @ ..] => digits.len() >= 7 || !digits.iter().all(u8::is_ascii_hexdigit),
        [b']', rest @ ..] => rest.contains(&7),
        [b'P' | b'X' | b'^' | b'_', ..] => false,
        [first, rest @ ..] => {
            !(0x20..=0x2f).contains(first) || rest.iter().any(|byte| (0x30..=0x7e).contains(byte))
        }
    }
}

/// Text that grows without errors.
struct Text<'a>(&'a mut Vec<u8>);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Adds formatted text, which cannot fail.
macro_rules! put {
    ($text:expr, $($format:tt)*) => {{
        let _ = write!($text, $($format)*);
    }};
}

impl Screen {
    /// Appends the bytes that make a screen of the same size like this one, except for the history.
    /// A character of two columns that the edge of the screen has cut becomes a blank.
    pub(crate) fn describe(&self, bytes: &mut Vec<u8>) {
        let mut text = Text(bytes);
        text.0.extend_from_slice(b"\x1bc");
        for number in 0..16u8 {
            let [red, green, blue] = self.palette.rgb(Colour::Indexed(number));
            put!(text, "\x1b]P{number:x}{red:02x}{green:02x}{blue:02x}");
        }
        let mut cell = Cell::BLANK;
        for row in 0..self.grid.rows() {
            self.describe_row(&mut text, row, &mut cell);
        }
        put!(text, "\x1b[3g");
        for column in self.tabs() {
            put!(text, "\x1b[1;{}H\x1bH", column + 1);
        }
        put!(text, "\x1b[{};{}r", self.top + 1, self.bottom);
        self.describe_pen(&mut text, &self.saved, 0);
        put!(text, "\x1b7");
        let first = if self.modes.contains(Modes::ORIGIN) { self.top } else { 0 };
        if self.modes.contains(Modes::ORIGIN) {
            put!(text, "\x1b[?6h");
        }
        // The sets of characters of the saved position do not hold while a cell is drawn again.
        put!(text, "\x1b(B\x1b)B\x0f");
        self.describe_pen(&mut text, &self.pen, first);
        for (mode, on, off) in [
            (Modes::APPLICATION_CURSOR, "\x1b[?1h", ""),
            (Modes::APPLICATION_KEYPAD, "\x1b=", ""),
            (Modes::NEW_LINE, "\x1b[20h", ""),
            (Modes::WRAP, "", "\x1b[?7l"),
            (Modes::INSERT, "\x1b[4h", ""),
            (Modes::CURSOR, "", "\x1b[?25l"),
            (Modes::REVERSED, "\x1b[?5h", ""),
        ] {
            put!(text, "{}", if self.modes.contains(mode) { on } else { off });
        }
    }

    /// The cells of a row that are not blank. `last` is the rendition that is in use.
    fn describe_row(&self, text: &mut Text<'_>, row: usize, last: &mut Cell) {
        let cells = self.grid.line(row, 0);
        let Some(end) = cells.iter().rposition(|cell| *cell != Cell::BLANK) else { return };
        let mut is_there = false;
        for (column, cell) in cells[..=end].iter().enumerate() {
            let before = column.checked_sub(1).map(|column| &cells[column]);
            let blank = Cell { character: ' ', ..*cell };
            let width = cell.character.width().unwrap_or(1);
            // The second column of a character has come with the first.
            if *cell == blank
                && before.is_some_and(|before| {
                    before.character.width() == Some(2) && Cell { character: ' ', ..*before } == blank
                })
            {
                is_there = false;
                continue;
            }
            if !is_there || before.is_some_and(|before| before.character.width() == Some(2)) {
                put!(text, "\x1b[{};{}H", row + 1, column + 1);
            }
            select(text, cell, last);
            let is_cut = column + width > cells.len();
            put!(text, "{}", if is_cut { ' ' } else { cell.character });
            is_there = width == 1;
        }
    }

    /// A position, with its rendition and sets of characters. `first` is the row from which rows
    /// are counted.
    fn describe_pen(&self, text: &mut Text<'_>, pen: &Pen, first: usize) {
        let row = pen.row.saturating_sub(first) + 1;
        if pen.wraps {
            let cells = self.grid.line(pen.row, 0);
            let wide = cells.len().checked_sub(2).filter(|&at| cells[at].character.width() == Some(2));
            let at = wide.unwrap_or(cells.len() - 1);
            put!(text, "\x1b[{row};{}H", at + 1);
            select(text, &cells[at], &mut Cell { style: Style::all(), ..Cell::BLANK });
            put!(text, "{}", cells[at].character);
        } else {
            put!(text, "\x1b[{row};{}H", pen.column + 1);
        }
        select(text, &pen.cell, &mut Cell { style: Style::all(), ..Cell::BLANK });
        for (set, name) in pen.draws.into_iter().zip(['(', ')']) {
            put!(text, "\x1b{name}{}", if set { '0' } else { 'B' });
        }
        put!(text, "{}", if pen.set == 1 { '\x0e' } else { '\x0f' });
    }
}

/// Selects the rendition of a cell, if it is not that of `last`.
fn select(text: &mut Text<'_>, cell: &Cell, last: &mut Cell) {
    if (cell.ink, cell.paper, cell.style) == (last.ink, last.paper, last.style) {
        return;
    }
    put!(text, "\x1b[0");
    for (style, number) in
        [(Style::BOLD, 1), (Style::FAINT, 2), (Style::UNDERLINE, 4), (Style::BLINK, 5), (Style::REVERSE, 7)]
    {
        if cell.style.contains(style) {
            put!(text, ";{number}");
        }
    }
    for (colour, first) in [(cell.ink, 30), (cell.paper, 40)] {
        match colour {
            Colour::Default => {}
            Colour::Indexed(number @ 0..8) => put!(text, ";{}", first + u32::from(number)),
            Colour::Indexed(number) => put!(text, ";{};5;{number}", first + 8),
            Colour::Rgb(red, green, blue) => put!(text, ";{};2;{red};{green};{blue}", first + 8),
        }
    }
    put!(text, "m");
    *last = *cell;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Terminal;
    use proptest::prelude::*;

    #[test]
    fn the_beginning_of_a_sequence_or_a_character_is_found() {
        for (bytes, open) in [
            (&b"text"[..], 0),
            (b"a\x1b", 1),
            (b"a\x1b[12;3", 6),
            (b"\x1b[12;3Hab", 0),
            (b"\x1b]P12", 5),
            (b"\x1b]P1234567", 0),
            (b"\x1b]0;title", 9),
            (b"\x1b]0;title\x07", 0),
            (b"\x1b(", 2),
            (b"\x1b(0", 0),
            (b"\x1b[12\x18", 0),
            ("a─".as_bytes(), 0),
            (&"a─".as_bytes()[..3], 2),
            (&"a─".as_bytes()[..2], 1),
        ] {
            assert_eq!(unfinished(bytes), open, "{:?}", bytes.escape_ascii().to_string());
        }
    }

    /// Pieces of what programs write.
    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let fixed = [
            "\x1b7",
            "\x1b8",
            "\x1b[?6h",
            "\x1b[?6l",
            "\x1b[?7l",
            "\x1b[?7h",
            "\x1b[4h",
            "\x1b[4l",
            "\x1b[20h",
            "\x1b[?25l",
            "\x1b[?5h",
            "\x1b=",
            "\x1b(0",
            "\x1b(B",
            "\x1b)0",
            "\x0e",
            "\x0f",
            "\r",
            "\n",
            "\t",
            "\x1bM",
            "\x1bD",
            "\x1bH",
            "\x1b[3g",
            "\x1b[0g",
            "\x1b[2J",
            "\x1b[K",
            "\x1b[L",
            "\x1b[M",
            "\x1b[P",
            "\x1b[@",
            "\x1b[31;44;1m",
            "\x1b[38;5;200;7m",
            "\x1b[48;2;1;2;3;4m",
            "\x1b[95;103;5m",
            "\x1b[0m",
            "\x1b]P1ff0080",
            "\x1b]R",
            "\x1b#8",
            "─é",
            "lqk",
            "\x1b]0;t\x07",
        ];
        prop_oneof![
            4 => proptest::sample::select(fixed.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
            2 => "[a-z ]{1,14}".prop_map(String::into_bytes),
            1 => (1u8..9, 1u8..14).prop_map(|(row, column)| format!("\x1b[{row};{column}H").into_bytes()),
            1 => (1u8..7, 2u8..9).prop_map(|(top, bottom)| format!("\x1b[{top};{bottom}r").into_bytes()),
        ]
    }

    proptest! {
        #[test]
        fn a_blank_terminal_becomes_like_another_one(
            before in proptest::collection::vec(piece(), 0..60),
            after in proptest::collection::vec(piece(), 0..10),
            cut in 0usize..8,
        ) {
            let mut before = before.concat();
            let mut after = after.concat();
            // The first part may end within a sequence.
            let rest = before.split_off(before.len().saturating_sub(cut));
            after.splice(0..0, rest);
            let mut one = Terminal::new(12, 7, 3);
            one.write(&before);
            one.take_answers();
            let mut other = Terminal::new(12, 7, 3);
            other.write(&one.describe());
            // In this mode a position outside of the region cannot be addressed.
            prop_assume!(!one.modes().contains(Modes::ORIGIN));
            for bytes in [&b""[..], &after] {
                one.write(bytes);
                other.write(bytes);
                for row in 0..7 {
                    prop_assert_eq!(one.row(row), other.row(row));
                }
                prop_assert_eq!(one.cursor(), other.cursor());
                prop_assert_eq!((one.modes(), one.palette()), (other.modes(), other.palette()));
            }
        }
    }

    #[test]
    fn rows_may_be_counted_from_the_scroll_region() {
        let mut one = Terminal::new(12, 7, 0);
        one.write(b"\x1b[2;5r\x1b[?6h\x1b[2;3Hx\x1b7\x1b[3;4H");
        let mut other = Terminal::new(12, 7, 0);
        other.write(&one.describe());
        for bytes in [&b""[..], b"y\n\n\n", b"\x1b8z", b"\x1b[?6lw"] {
            one.write(bytes);
            other.write(bytes);
            assert!((0..7).all(|row| one.row(row) == other.row(row)), "after {bytes:?}");
            assert_eq!((one.cursor(), one.modes()), (other.cursor(), other.modes()));
        }
    }

    #[test]
    fn characters_of_two_columns_stay_where_they_are() {
        let mut one = Terminal::new(12, 3, 0);
        one.write("a世界b\x1b[1;5Hx\x1b[2;11H世".as_bytes());
        let mut other = Terminal::new(12, 3, 0);
        other.write(&one.describe());
        assert_eq!((one.row(0), one.row(1)), (other.row(0), other.row(1)));
        one.write(b"y");
        other.write(b"y");
        assert_eq!((one.row(2), one.cursor()), (other.row(2), other.cursor()));
    }
}
