//! The screen of a terminal that behaves as `xterm-256color`. It is that of crate `vt100`, with
//! those functions added that text programs use and the crate lacks.

use std::num::NonZeroU16;
use vt100::{Cell, Parser};

/// How many rows that have left the screen come back when the window grows.
const SCROLLBACK: usize = 1000;

/// The screen of a terminal.
pub struct Screen {
    terminal: Parser,
    /// A parser that reads the same bytes as the terminal.
    sequences: vte::Parser,
    seen: Seen,
    /// The terminal's answers to queries of programs, which are to be typed.
    pub answers: Vec<u8>,
}

/// Receives from crate `vt100` the events that the crate does not handle itself.
#[derive(Default)]
struct Seen {
    /// All characters that were ever shown, in order, with line feeds.
    shown: String,
    /// The characters that the last byte has completed.
    drawn: String,
    /// The sequence that replaces one which the crate does not know.
    instead: &'static str,
    further: Option<Further>,
    /// Whether the special graphics set is active, in which letters draw lines.
    graphics: bool,
    saved_graphics: bool,
}

/// The effects of sequences that the crate does not handle.
enum Further {
    AnswerCursor,
    AnswerKind,
    /// The screen of full-screen programs begins with the cursor where it was, as in xterm.
    KeepCursor,
}

impl vte::Perform for Seen {
    fn print(&mut self, character: char) {
        let (shown, drawn) = match (self.graphics, character) {
            (true, 'q') => ('─', '─'),
            (true, 'x') => ('│', '│'),
            (true, 'l') => ('┌', '┌'),
            (true, 'k') => ('┐', '┐'),
            (true, 'm') => ('└', '└'),
            (true, 'j') => ('┘', '┘'),
            // The crate leaves out the character U+FFFD, which stands for bytes that are not a
            // character. So another one is shown instead.
            (_, '\u{fffd}') => ('\u{fffd}', '?'),
            _ => (character, character),
        };
        self.shown.push(shown);
        self.drawn.push(drawn);
    }

    fn execute(&mut self, byte: u8) {
        if matches!(byte, b'\n' | 0x0b | 0x0c) {
            self.shown.push('\n');
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignore: bool, byte: u8) {
        match (intermediates, byte) {
            (b"(", set) => self.graphics = set == b'0',
            (b"", b'7') => self.saved_graphics = self.graphics,
            (b"", b'8') => self.graphics = self.saved_graphics,
            (b"", b'c') => self.graphics = false,
            (b"", b'D') => self.instead = "\n",
            (b"", b'E') => self.instead = "\r\n",
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, parameters: &vte::Params, intermediates: &[u8], _ignore: bool, action: char) {
        let first = parameters.iter().next().and_then(|parameter| parameter.first());
        match (intermediates, action) {
            (b"", 'n') if first == Some(&6) => self.further = Some(Further::AnswerCursor),
            (b"", 'c') => self.further = Some(Further::AnswerKind),
            (b"?", 'h') if first == Some(&1049) => self.further = Some(Further::KeepCursor),
            _ => {}
        }
    }
}

/// A length as the crate requires it: at least one.
fn size(length: usize) -> NonZeroU16 {
    u16::try_from(length).ok().and_then(NonZeroU16::new).unwrap_or(NonZeroU16::MIN)
}

impl Screen {
    /// An empty screen.
    pub fn new(rows: usize, columns: usize) -> Screen {
        let terminal = Parser::new(size(rows), size(columns), SCROLLBACK);
        Screen { terminal, sequences: vte::Parser::new(), seen: Seen::default(), answers: Vec::new() }
    }

    /// Changes the size of the window. As in xterm, the line of the cursor stays visible.
    pub fn resize(&mut self, rows: usize, columns: usize) {
        self.terminal.set_size(size(rows), size(columns));
    }

    /// The number of rows and columns.
    pub(crate) fn size(&self) -> (usize, usize) {
        let (rows, columns) = self.terminal.screen().size();
        (rows.get().into(), columns.get().into())
    }

    /// The cells of a row.
    pub(crate) fn cells(&self, row: usize) -> impl Iterator<Item = &Cell> {
        let screen = self.terminal.screen();
        let row = u16::try_from(row).unwrap_or(u16::MAX);
        (0..screen.size().1.get()).filter_map(move |column| screen.cell(row, column))
    }

    /// Whether the cursor is visible.
    pub(crate) fn shows_cursor(&self) -> bool {
        !self.terminal.screen().hide_cursor()
    }

    /// The row and the column of the cursor.
    pub fn cursor(&self) -> (usize, usize) {
        let (row, column) = self.terminal.screen().cursor_position();
        // After a character in the last column, the cursor stays there until the next character.
        (row.into(), usize::from(column).min(self.size().1 - 1))
    }

    /// The text of a row, without blanks at its end.
    pub fn line(&self, row: usize) -> String {
        self.cells(row).map(text).collect::<String>().trim_end().to_string()
    }

    /// The text of all rows, without empty ones at the end.
    pub fn text(&self) -> String {
        let lines: Vec<String> = (0..self.size().0).map(|row| self.line(row)).collect();
        let used = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        lines[..used].iter().map(|line| format!("{line}\n")).collect()
    }

    /// All characters that were ever shown, in order, with line feeds.
    pub fn shown(&self) -> &str {
        &self.seen.shown
    }

    /// Reads output of a program.
    pub fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.sequences.advance(&mut self.seen, &[byte]);
            let (row, column) = self.cursor();
            if !self.seen.drawn.is_empty() {
                self.terminal.process(self.seen.drawn.as_bytes());
                self.seen.drawn.clear();
            } else if byte.is_ascii() {
                self.terminal.process(&[byte]);
            }
            self.terminal.process(std::mem::take(&mut self.seen.instead).as_bytes());
            let cursor = |action| format!("\x1b[{};{}{action}", row + 1, column + 1);
            match self.seen.further.take() {
                Some(Further::AnswerCursor) => self.answers.extend(cursor('R').bytes()),
                Some(Further::AnswerKind) => self.answers.extend(b"\x1b[?6c"),
                Some(Further::KeepCursor) => self.terminal.process(cursor('H').as_bytes()),
                None => {}
            }
        }
    }
}

/// The text that a cell shows.
pub(crate) fn text(cell: &Cell) -> &str {
    match cell.contents() {
        "" if cell.is_wide_continuation() => "",
        "" => " ",
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vt100::Color;

    fn shown(text: &str) -> Screen {
        let mut screen = Screen::new(4, 10);
        // The bytes of a sequence may come one by one.
        for byte in text.bytes() {
            screen.write(&[byte]);
        }
        screen
    }

    #[test]
    fn text_wraps_and_scrolls() {
        let screen = shown("one\r\ntwo\r\n0123456789abc\r\nlast");
        assert_eq!(screen.text(), "two\n0123456789\nabc\nlast\n");
        assert_eq!((screen.cursor(), screen.shown()), ((3, 4), "one\ntwo\n0123456789abc\nlast"));
        // After the last column the cursor waits, so there is no empty line between the two.
        assert_eq!(shown("0123456789\r\nx").text(), "0123456789\nx\n");
    }

    #[test]
    fn the_cursor_moves_and_erases() {
        assert_eq!(shown("abcdef\x1b[3D\x1b[K\x1b[2;3Hxy\x1b[A\x1b[1Gz").text(), "zbc\n  xy\n");
        assert_eq!(shown("abcdef\r\x1b[2Pz\x1b[2@").text(), "z  def\n");
        assert_eq!(shown("a\r\nb\r\nc\x1b[2;1H\x1b[Ld\x1b[1;1H\x1b[M").text(), "d\nb\nc\n");
        assert_eq!(shown("a\r\nb\r\nc\x1b[H\x1b[2J\x1b[31mx").text(), "x\n");
    }

    #[test]
    fn only_the_region_scrolls() {
        assert_eq!(shown("top\x1b[2;3r\x1b[2;1Ha\r\nb\r\nc\x1b[4;1Hend").text(), "top\nb\nc\nend\n");
        assert_eq!(shown("top\x1b[2;3r\x1b[2;1Ha\r\nb\x1b[2;1H\x1bMnew").text(), "top\nnew\na\n");
    }

    #[test]
    fn a_full_screen_program_leaves_what_was_there() {
        let mut screen = shown("before\x1b[?1049h_\x1b[Hedit");
        assert_eq!(screen.text(), "edit  _\n");
        screen.write(b"\x1b[?1049l!");
        assert_eq!(screen.text(), "before!\n");
    }

    #[test]
    fn strings_for_the_terminal_and_long_characters() {
        assert_eq!(shown("\x1b]0;title\x07a\x1b_x\x1b\\b\x1b(0q\x1b(Bq é\u{fffd}").text(), "ab─q é?\n");
        let mut broken = Screen::new(1, 10);
        broken.write(b"\xc3(\xff.");
        assert_eq!((broken.text().as_str(), broken.shown()), ("?(?.\n", "\u{fffd}(\u{fffd}."));
    }

    #[test]
    fn queries_of_programs_are_answered() {
        assert_eq!(shown("ab\x1b[6n").answers, b"\x1b[1;3R");
    }

    #[test]
    fn styles_follow_the_text() {
        let screen = shown("\x1b[1;31ma\x1b[38;5;208;4mb\x1b[mc\x1b[7md");
        let cells: Vec<_> = screen.cells(0).collect();
        assert_eq!((cells[0].fgcolor(), cells[0].bold()), (Color::Idx(1), true));
        assert_eq!(
            (cells[1].fgcolor(), cells[1].underline(), cells[1].bold()),
            (Color::Idx(208), true, true)
        );
        assert_eq!((cells[2].fgcolor(), cells[2].bold(), cells[2].inverse()), (Color::Default, false, false));
        assert!(cells[3].inverse());
    }

    #[test]
    fn a_window_that_shrinks_keeps_the_line_of_the_cursor() {
        let mut screen = shown("a\r\nb\r\nc\r\nprompt");
        screen.resize(2, 5);
        assert_eq!((screen.text().as_str(), screen.cursor()), ("c\npromp\n", (1, 4)));
        screen.resize(3, 20);
        assert_eq!((screen.text().as_str(), screen.cursor()), ("b\nc\npromp\n", (2, 4)));
    }

    #[test]
    fn no_output_of_a_program_makes_the_screen_panic() {
        let mut random = 1u32;
        let mut screen = Screen::new(3, 7);
        for round in 0..200_000u32 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let byte = (random >> 24) as u8;
            // Random bytes seldom contain sequences, so some are replaced by parts of one.
            let bytes = [b"\x1b[", b";9"][usize::from(byte & 1)];
            screen.write(if byte & 0x42 == 0x42 { bytes } else { std::slice::from_ref(&byte) });
            if round % 997 == 0 {
                screen.resize(1 + usize::from(byte % 5), 1 + usize::from(byte % 11));
            }
        }
    }
}
