//! The screen of a terminal of the kind `xterm-256color`, as far as programs on a character screen
//! use it.

use std::iter::repeat_n;

/// How a character looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Colours of the palette of 256; none: the terminal's own.
    pub(crate) foreground: Option<u8>,
    pub background: Option<u8>,
    pub bold: bool,
    pub(crate) underlined: bool,
    pub(crate) reversed: bool,
}

/// A place on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub character: char,
    pub style: Style,
}

const BLANK: Cell = Cell {
    character: ' ',
    style: Style { foreground: None, background: None, bold: false, underlined: false, reversed: false },
};

#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    row: usize,
    /// May be one after the last column: the next character goes to the next line.
    column: usize,
    style: Style,
    /// Lines are drawn by letters (the special graphics set).
    graphics: bool,
}

/// What a sequence that has begun needs to be complete.
#[derive(Clone, Debug)]
enum Parsing {
    Text,
    Escape,
    /// After ESC and one of these, which wants one more: `(`, `)`, `#`, ...
    Designation(u8),
    /// Parameters and intermediate bytes so far.
    Control(String),
    /// A string for the terminal itself, up to BEL or the next escape.
    String,
}

/// A screen.
#[derive(Clone, Debug)]
pub struct Screen {
    columns: usize,
    rows: Vec<Vec<Cell>>,
    cursor: Cursor,
    saved: Cursor,
    /// First and last row that scroll.
    region: (usize, usize),
    /// The screen that comes back when a full-screen program ends.
    other: Option<(Vec<Vec<Cell>>, Cursor)>,
    parsing: Parsing,
    /// Bytes of a character of several that has not come completely.
    pending: Vec<u8>,
    /// What the terminal answers to questions, for what types.
    pub answers: Vec<u8>,
    /// Every character that was ever shown, in order, with line feeds.
    pub shown: String,
}

/// Columns between tabulator stops.
const TAB: usize = 8;

impl Screen {
    /// An empty screen.
    pub fn new(rows: usize, columns: usize) -> Screen {
        Screen {
            columns,
            rows: vec![vec![BLANK; columns]; rows],
            cursor: Cursor::default(),
            saved: Cursor::default(),
            region: (0, rows - 1),
            other: None,
            parsing: Parsing::Text,
            pending: Vec::new(),
            answers: Vec::new(),
            shown: String::new(),
        }
    }

    /// The person changes the size of the window. Lines stay where they are, as far as there is
    /// room.
    pub fn resize(&mut self, rows: usize, columns: usize) {
        let fit = |lines: &mut Vec<Vec<Cell>>, cursor: &mut Cursor| {
            // What is above goes first, as long as the cursor's line stays.
            while lines.len() > rows && cursor.row + 1 > rows {
                lines.remove(0);
                cursor.row -= 1;
            }
            lines.resize(rows, Vec::new());
            lines.iter_mut().for_each(|line| line.resize(columns, BLANK));
            cursor.column = cursor.column.min(columns - 1);
        };
        fit(&mut self.rows, &mut self.cursor);
        if let Some((lines, cursor)) = &mut self.other {
            fit(lines, cursor);
        }
        self.columns = columns;
        self.region = (0, rows - 1);
    }

    /// The rows of cells.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// Row and column of the cursor.
    pub fn cursor(&self) -> (usize, usize) {
        (self.cursor.row, self.cursor.column.min(self.columns - 1))
    }

    /// A row as text, without the blanks at its end.
    pub fn line(&self, row: usize) -> String {
        let text: String = self.rows[row].iter().map(|cell| cell.character).collect();
        text.trim_end().to_string()
    }

    /// All rows as text, without empty ones at the end.
    pub fn text(&self) -> String {
        let lines: Vec<String> = (0..self.rows.len()).map(|row| self.line(row)).collect();
        let used = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        lines[..used].iter().map(|line| format!("{line}\n")).collect()
    }

    /// Takes what a program has written.
    pub fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.byte(byte);
        }
    }

    fn byte(&mut self, byte: u8) {
        match std::mem::replace(&mut self.parsing, Parsing::Text) {
            Parsing::Text => self.plain(byte),
            Parsing::Escape => self.escape(byte),
            Parsing::Designation(set) => {
                if set == b'(' {
                    self.cursor.graphics = byte == b'0';
                }
            }
            Parsing::Control(mut parameters) => match byte {
                0x20..=0x3f => {
                    parameters.push(char::from(byte));
                    self.parsing = Parsing::Control(parameters);
                }
                0x40..=0x7e => self.control(&parameters, byte),
                0x1b => self.parsing = Parsing::Escape,
                // Control characters take effect in the middle of a sequence.
                _ => {
                    self.plain(byte);
                    self.parsing = Parsing::Control(parameters);
                }
            },
            Parsing::String => match byte {
                // The end, or given up.
                0x07 | 0x18 | 0x1a => {}
                0x1b => self.parsing = Parsing::Escape,
                _ => self.parsing = Parsing::String,
            },
        }
    }

    fn plain(&mut self, byte: u8) {
        if !self.pending.is_empty() || byte >= 0x80 {
            return self.long_character(byte);
        }
        match byte {
            0x1b => self.parsing = Parsing::Escape,
            0x08 => self.cursor.column = self.cursor().1.saturating_sub(1),
            b'\t' => {
                self.cursor.column = ((self.cursor.column / TAB + 1) * TAB).min(self.columns - 1);
            }
            b'\n' | 0x0b | 0x0c => {
                self.shown.push('\n');
                self.line_feed();
            }
            b'\r' => self.cursor.column = 0,
            0x20..=0x7e => self.put(char::from(byte)),
            _ => {}
        }
    }

    /// A byte of a character that UTF-8 writes as several.
    fn long_character(&mut self, byte: u8) {
        if !self.pending.is_empty() && byte & 0xc0 != 0x80 {
            self.pending.clear();
            self.put('\u{fffd}');
            return self.plain(byte);
        }
        self.pending.push(byte);
        match std::str::from_utf8(&self.pending) {
            Ok(text) => {
                let characters: Vec<char> = text.chars().collect();
                self.pending.clear();
                characters.into_iter().for_each(|character| self.put(character));
            }
            Err(error) if error.error_len().is_some() => {
                self.pending.clear();
                self.put('\u{fffd}');
            }
            Err(_) => {}
        }
    }

    fn put(&mut self, character: char) {
        if self.cursor.column >= self.columns {
            self.cursor.column = 0;
            self.line_feed();
        }
        let character = match (self.cursor.graphics, character) {
            (true, 'q') => '─',
            (true, 'x') => '│',
            (true, 'l') => '┌',
            (true, 'k') => '┐',
            (true, 'm') => '└',
            (true, 'j') => '┘',
            (_, character) => character,
        };
        self.shown.push(character);
        self.rows[self.cursor.row][self.cursor.column] = Cell { character, style: self.cursor.style };
        self.cursor.column += 1;
    }

    /// The cursor goes back to where it was; the window may have become smaller since.
    fn restore(&mut self, saved: Cursor) {
        let (row, column) = (saved.row.min(self.rows.len() - 1), saved.column.min(self.columns));
        self.cursor = Cursor { row, column, ..saved };
    }

    fn line_feed(&mut self) {
        if self.cursor.row == self.region.1 {
            self.scroll_up(self.region.0, 1);
        } else if self.cursor.row + 1 < self.rows.len() {
            self.cursor.row += 1;
        }
    }

    fn blank_row(&self) -> Vec<Cell> {
        vec![self.blank(); self.columns]
    }

    /// What is erased takes the background.
    fn blank(&self) -> Cell {
        Cell { style: Style { background: self.cursor.style.background, ..Style::default() }, character: ' ' }
    }

    /// Rows from `first` on to the end of the region move up.
    fn scroll_up(&mut self, first: usize, count: usize) {
        let last = self.region.1;
        let count = count.min(last + 1 - first);
        self.rows.drain(first..first + count);
        let blank = self.blank_row();
        self.rows.splice(last + 1 - count..last + 1 - count, repeat_n(blank, count));
    }

    /// The same, down.
    fn scroll_down(&mut self, first: usize, count: usize) {
        let last = self.region.1;
        let count = count.min(last + 1 - first);
        self.rows.drain(last + 1 - count..last + 1);
        let blank = self.blank_row();
        self.rows.splice(first..first, repeat_n(blank, count));
    }

    fn escape(&mut self, byte: u8) {
        match byte {
            b'[' => self.parsing = Parsing::Control(String::new()),
            b']' | b'P' | b'_' | b'^' | b'X' => self.parsing = Parsing::String,
            b'(' | b')' | b'*' | b'+' | b'#' | b' ' | b'%' => self.parsing = Parsing::Designation(byte),
            b'7' => self.saved = self.cursor,
            b'8' => self.restore(self.saved),
            b'D' => self.line_feed(),
            b'E' => {
                self.cursor.column = 0;
                self.line_feed();
            }
            b'M' if self.cursor.row == self.region.0 => self.scroll_down(self.region.0, 1),
            b'M' => self.cursor.row = self.cursor.row.saturating_sub(1),
            b'c' => {
                let shown = std::mem::take(&mut self.shown);
                *self = Screen { shown, ..Screen::new(self.rows.len(), self.columns) };
            }
            _ => {}
        }
    }

    /// A control sequence that is complete.
    fn control(&mut self, parameters: &str, action: u8) {
        let private = parameters.starts_with(['?', '>', '<', '=']);
        let numbers: Vec<usize> = parameters
            .trim_start_matches(['?', '>', '<', '='])
            .split([';', ':'])
            .map(|number| number.trim_end_matches([' ', '!', '"', '$', '\'']).parse().unwrap_or(0))
            .collect();
        let first = numbers[0];
        let count = first.max(1);
        let (last_row, last_column) = (self.rows.len() - 1, self.columns - 1);
        let (row, column) = self.cursor();
        match (private, action) {
            (true, b'h' | b'l') => self.modes(&numbers, action == b'h'),
            (true, _) => {}
            (_, b'A') => self.cursor.row = row.saturating_sub(count),
            (_, b'B' | b'e') => self.cursor.row = (row + count).min(last_row),
            (_, b'C' | b'a') => self.cursor.column = (column + count).min(last_column),
            (_, b'D') => self.cursor.column = column.saturating_sub(count),
            (_, b'E') => (self.cursor.row, self.cursor.column) = ((row + count).min(last_row), 0),
            (_, b'F') => (self.cursor.row, self.cursor.column) = (row.saturating_sub(count), 0),
            (_, b'G' | b'`') => self.cursor.column = (count - 1).min(last_column),
            (_, b'd') => self.cursor.row = (count - 1).min(last_row),
            (_, b'H' | b'f') => {
                let second = numbers.get(1).copied().unwrap_or(1).max(1);
                (self.cursor.row, self.cursor.column) =
                    ((count - 1).min(last_row), (second - 1).min(last_column));
            }
            (_, b'J') => self.erase_screen(first),
            (_, b'K') => {
                let range = match first {
                    0 => column..self.columns,
                    1 => 0..column + 1,
                    _ => 0..self.columns,
                };
                let blank = self.blank();
                self.rows[row][range].fill(blank);
            }
            (_, b'L') if (self.region.0..=self.region.1).contains(&row) => self.scroll_down(row, count),
            (_, b'M') if (self.region.0..=self.region.1).contains(&row) => self.scroll_up(row, count),
            (_, b'S') => self.scroll_up(self.region.0, count),
            (_, b'T') => self.scroll_down(self.region.0, count),
            (_, b'P' | b'@') => {
                let count = count.min(self.columns - column);
                let blank = self.blank();
                let line = &mut self.rows[row];
                if action == b'P' {
                    line.drain(column..column + count);
                    line.extend(repeat_n(blank, count));
                } else {
                    line.splice(column..column, repeat_n(blank, count));
                    line.truncate(self.columns);
                }
            }
            (_, b'X') => {
                let blank = self.blank();
                let end = (column + count).min(self.columns);
                self.rows[row][column..end].fill(blank);
            }
            (_, b'r') => {
                let bottom = numbers.get(1).copied().filter(|&bottom| bottom > 0).unwrap_or(last_row + 1);
                if count < bottom && bottom <= last_row + 1 {
                    self.region = (count - 1, bottom - 1);
                    (self.cursor.row, self.cursor.column) = (0, 0);
                }
            }
            (_, b's') => self.saved = self.cursor,
            (_, b'u') => self.restore(self.saved),
            (_, b'm') => self.style(&numbers),
            (_, b'n') if first == 6 => {
                self.answers.extend(format!("\x1b[{};{}R", row + 1, column + 1).bytes());
            }
            (_, b'c') => self.answers.extend(b"\x1b[?6c"),
            _ => {}
        }
    }

    fn erase_screen(&mut self, which: usize) {
        let (row, column) = self.cursor();
        let (blank, empty) = (self.blank(), self.blank_row());
        match which {
            0 => {
                self.rows[row][column..].fill(blank);
                self.rows[row + 1..].fill(empty);
            }
            1 => {
                self.rows[row][..=column].fill(blank);
                self.rows[..row].fill(empty);
            }
            2 => self.rows.fill(empty),
            _ => {}
        }
    }

    /// Private modes: the second screen.
    fn modes(&mut self, numbers: &[usize], on: bool) {
        if !numbers.iter().any(|number| [47, 1047, 1049].contains(number)) {
            return;
        }
        match (on, self.other.take()) {
            (true, None) => {
                let empty = vec![vec![BLANK; self.columns]; self.rows.len()];
                self.other = Some((std::mem::replace(&mut self.rows, empty), self.cursor));
            }
            (false, Some((rows, cursor))) => (self.rows, self.cursor) = (rows, cursor),
            (_, other) => self.other = other,
        }
        self.region = (0, self.rows.len() - 1);
    }

    fn style(&mut self, numbers: &[usize]) {
        let mut numbers = numbers.iter().copied();
        let style = &mut self.cursor.style;
        while let Some(number) = numbers.next() {
            let colour = |base: usize| u8::try_from(number - base).ok();
            match number {
                0 => *style = Style::default(),
                1 => style.bold = true,
                4 => style.underlined = true,
                7 => style.reversed = true,
                22 => style.bold = false,
                24 => style.underlined = false,
                27 => style.reversed = false,
                30..=37 => style.foreground = colour(30),
                38 | 48 => {
                    let chosen = match numbers.next() {
                        Some(5) => numbers.next().and_then(|colour| u8::try_from(colour).ok()),
                        // Colours beyond the palette are not shown.
                        Some(2) => {
                            numbers.by_ref().take(3).for_each(drop);
                            None
                        }
                        _ => None,
                    };
                    *(if number == 38 { &mut style.foreground } else { &mut style.background }) = chosen;
                }
                39 => style.foreground = None,
                40..=47 => style.background = colour(40),
                49 => style.background = None,
                90..=97 => style.foreground = colour(82),
                100..=107 => style.background = colour(92),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Screen {
        let mut screen = Screen::new(4, 10);
        // Sequences come in pieces.
        for byte in text.bytes() {
            screen.write(&[byte]);
        }
        screen
    }

    #[test]
    fn text_wraps_and_scrolls() {
        let screen = shown("one\r\ntwo\r\n0123456789abc\r\nlast");
        assert_eq!(screen.text(), "two\n0123456789\nabc\nlast\n");
        assert_eq!((screen.cursor(), screen.shown.as_str()), ((3, 4), "one\ntwo\n0123456789abc\nlast"));
        // After the last column the cursor waits: nothing is empty between.
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
        let mut screen = shown("before\x1b[?1049h\x1b[Hediting");
        assert_eq!(screen.text(), "editing\n");
        screen.write(b"\x1b[?1049l!");
        assert_eq!(screen.text(), "before!\n");
    }

    #[test]
    fn strings_for_the_terminal_and_long_characters() {
        assert_eq!(
            shown("\x1b]0;title\x07a\x1b_x\x1b\\b\x1b(0q\x1b(Bq é\u{fffd}").text(),
            "ab─q é\u{fffd}\n"
        );
        let mut broken = Screen::new(1, 10);
        broken.write(b"\xc3(\xff.");
        assert_eq!(broken.text(), "\u{fffd}(\u{fffd}.\n");
    }

    #[test]
    fn questions_are_answered() {
        assert_eq!(shown("ab\x1b[6n").answers, b"\x1b[1;3R");
    }

    #[test]
    fn styles_follow_the_text() {
        let screen = shown("\x1b[1;31ma\x1b[38;5;208;4mb\x1b[mc\x1b[7md");
        let style = |column: usize| screen.rows()[0][column].style;
        assert_eq!((style(0).foreground, style(0).bold), (Some(1), true));
        assert_eq!((style(1).foreground, style(1).underlined, style(1).bold), (Some(208), true, true));
        assert_eq!(style(2), Style::default());
        assert!(style(3).reversed);
    }

    #[test]
    fn a_window_that_shrinks_keeps_the_line_of_the_cursor() {
        let mut screen = shown("a\r\nb\r\nc\r\nprompt");
        screen.resize(2, 5);
        assert_eq!((screen.text().as_str(), screen.cursor()), ("c\npromp\n", (1, 4)));
        screen.resize(3, 20);
        assert_eq!(screen.text(), "c\npromp\n");
    }

    #[test]
    fn nothing_that_is_written_breaks_it() {
        let mut random = 1u32;
        let mut screen = Screen::new(3, 7);
        for round in 0..200_000u32 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let byte = (random >> 24) as u8;
            // Sequences are rare among random bytes.
            let bytes = [b"\x1b[", b";9"][usize::from(byte & 1)];
            screen.write(if byte & 0x42 == 0x42 { bytes } else { std::slice::from_ref(&byte) });
            if round % 997 == 0 {
                screen.resize(1 + usize::from(byte % 5), 1 + usize::from(byte % 11));
            }
        }
    }
}
