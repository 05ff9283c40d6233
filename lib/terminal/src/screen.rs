//! The state of the terminal, and what characters and single control characters do to it.

use crate::cell::Cell;
use crate::grid::Grid;
use crate::palette::Palette;
use alloc::vec::Vec;
use bitflags::bitflags;
use unicode_width::UnicodeWidthChar;

bitflags! {
    /// What a program has chosen.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Modes: u16 {
        /// Cursor keys send other sequences (DECCKM).
        const APPLICATION_CURSOR = 1;
        /// Keys of the number pad send sequences (DECKPAM).
        const APPLICATION_KEYPAD = 2;
        /// The return key sends a line feed, too, and a line feed goes to the first column (LNM).
        const NEW_LINE = 4;
        /// Rows are counted from the start of the scroll region, which the cursor cannot leave
        /// (DECOM).
        const ORIGIN = 8;
        /// A character after the last column goes to the next line (DECAWM).
        const WRAP = 16;
        /// Characters move those after them to the right (IRM).
        const INSERT = 32;
        /// The cursor is visible (DECTCEM).
        const CURSOR = 64;
        /// All colours are exchanged (DECSCNM).
        const REVERSED = 128;
    }
}

/// The modes of a terminal that was just made or reset.
const FIRST_MODES: Modes = Modes::WRAP.union(Modes::CURSOR);
/// The distance of tab stops.
const TAB: usize = 8;
/// The most bytes of answers that wait to be typed: what a program asks for beyond that gets none.
const MOST_ANSWERS: usize = 1024;

/// The position, the rendition and the sets of characters, which a program can save.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pen {
    pub(crate) row: usize,
    pub(crate) column: usize,
    /// Whether the last column has been written, so that the next character goes to the next line.
    pub(crate) wraps: bool,
    /// The rendition; the character does not matter.
    pub(crate) cell: Cell,
    /// Whether each of the two sets of characters is that of line drawing.
    pub(crate) draws: [bool; 2],
    /// The set that is in use.
    pub(crate) set: usize,
}

impl Pen {
    const FIRST: Pen = Pen { row: 0, column: 0, wraps: false, cell: Cell::BLANK, draws: [false; 2], set: 0 };
}

/// The state of a terminal.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) grid: Grid,
    pub(crate) pen: Pen,
    pub(crate) saved: Pen,
    pub(crate) modes: Modes,
    /// The first row of the scroll region, and the one after its last.
    pub(crate) top: usize,
    pub(crate) bottom: usize,
    pub(crate) palette: Palette,
    pub(crate) answers: Vec<u8>,
    tabs: Vec<bool>,
    last: char,
}

impl Screen {
    pub(crate) fn new(columns: usize, rows: usize, history: usize) -> Screen {
        let grid = Grid::new(columns, rows, history);
        let (bottom, columns) = (grid.rows(), grid.columns());
        Screen {
            grid,
            pen: Pen::FIRST,
            saved: Pen::FIRST,
            modes: FIRST_MODES,
            top: 0,
            bottom,
            palette: Palette::default(),
            answers: Vec::new(),
            tabs: (0..columns).map(|column| column % TAB == 0).collect(),
            last: ' ',
        }
    }

    /// Makes everything but the history as it was at first.
    pub(crate) fn reset(&mut self) {
        (self.pen, self.saved, self.modes) = (Pen::FIRST, Pen::FIRST, FIRST_MODES);
        (self.top, self.bottom) = (0, self.grid.rows());
        self.reset_palette();
        self.clear_tabs();
        (0..self.tabs.len()).step_by(TAB).for_each(|column| self.tabs[column] = true);
        self.grid.fill_lines(0..self.grid.rows(), Cell::BLANK);
    }

    /// Makes the palette as it was at first.
    pub(crate) fn reset_palette(&mut self) {
        self.palette = Palette::default();
        self.grid.change_all();
    }

    /// What erased cells become: blanks with the background of the rendition.
    pub(crate) fn blank(&self) -> Cell {
        Cell { paper: self.pen.cell.paper, ..Cell::BLANK }
    }

    /// Adds to what the terminal answers.
    pub(crate) fn answer(&mut self, bytes: &[u8]) {
        if self.answers.len() + bytes.len() <= MOST_ANSWERS {
            self.answers.extend_from_slice(bytes);
        }
    }

    /// The columns at which there are tab stops.
    pub(crate) fn tabs(&self) -> impl Iterator<Item = usize> {
        (0..self.tabs.len()).filter(|&column| self.tabs[column])
    }

    pub(crate) fn set_tab(&mut self, column: usize, is_stop: bool) {
        self.tabs[column] = is_stop;
    }

    pub(crate) fn clear_tabs(&mut self) {
        self.tabs.fill(false);
    }

    /// Moves the cursor, at most to the edges of the screen.
    pub(crate) fn go(&mut self, row: usize, column: usize) {
        let (first, end) = match self.modes.contains(Modes::ORIGIN) {
            true => (self.top, self.bottom),
            false => (0, self.grid.rows()),
        };
        self.pen.row = row.clamp(first, end - 1);
        self.pen.column = column.min(self.grid.columns() - 1);
        self.pen.wraps = false;
    }

    /// Moves the cursor to a row that is counted as a program counts, and a column.
    pub(crate) fn address(&mut self, row: usize, column: usize) {
        let first = if self.modes.contains(Modes::ORIGIN) { self.top } else { 0 };
        self.go(first.saturating_add(row), column);
    }

    /// Shows a character again, as often as is said but at most as often as the screen has cells.
    pub(crate) fn repeat(&mut self, count: usize) {
        let last = self.last;
        (0..count.min(self.grid.columns() * self.grid.rows())).for_each(|_| self.print(last));
    }

    /// Shows a character.
    pub(crate) fn print(&mut self, character: char) {
        let character = match self.pen.draws[self.pen.set] {
            true => line_drawing(character),
            false => character,
        };
        let columns = self.grid.columns();
        // Marks that belong to the character before are not shown.
        let width = match character.width() {
            None | Some(0) => return,
            Some(width) => width.min(columns),
        };
        self.last = character;
        let wraps = self.modes.contains(Modes::WRAP);
        if wraps && (self.pen.wraps || self.pen.column + width > columns) {
            self.pen.column = 0;
            self.line_feed();
        }
        self.pen.column = self.pen.column.min(columns - width);
        if self.modes.contains(Modes::INSERT) {
            self.insert(width);
        }
        let at = self.pen.column;
        let cells = &mut self.grid.line_mut(self.pen.row)[at..at + width];
        cells.fill(Cell { character: ' ', ..self.pen.cell });
        cells[0].character = character;
        self.pen.wraps = at + width == columns;
        self.pen.column = (at + width).min(columns - 1);
    }

    /// Obeys a control character.
    pub(crate) fn control(&mut self, byte: u8) {
        match byte {
            8 => self.go(self.pen.row, self.pen.column.saturating_sub(1)),
            b'\t' => {
                let stop = (self.pen.column + 1..self.grid.columns()).find(|&column| self.tabs[column]);
                self.pen.column = stop.unwrap_or(self.grid.columns() - 1);
            }
            b'\n' | 0x0b | 0x0c => {
                self.line_feed();
                if self.modes.contains(Modes::NEW_LINE) {
                    self.pen.column = 0;
                }
            }
            b'\r' => (self.pen.column, self.pen.wraps) = (0, false),
            0x0e => self.pen.set = 1,
            0x0f => self.pen.set = 0,
            _ => {}
        }
    }

    /// Moves the cursor down. At the end of the scroll region, the region moves up instead.
    pub(crate) fn line_feed(&mut self) {
        self.pen.wraps = false;
        if self.pen.row + 1 == self.bottom {
            self.grid.scroll_up(self.top..self.bottom, 1, self.blank());
        } else if self.pen.row + 1 < self.grid.rows() {
            self.pen.row += 1;
        }
    }

    /// Moves the cursor up. At the start of the scroll region, the region moves down instead.
    pub(crate) fn reverse_line_feed(&mut self) {
        self.pen.wraps = false;
        if self.pen.row == self.top {
            self.grid.scroll_down(self.top..self.bottom, 1, self.blank());
        } else {
            self.pen.row = self.pen.row.saturating_sub(1);
        }
    }

    /// Moves the characters from the cursor on to the right, and fills with blanks.
    pub(crate) fn insert(&mut self, count: usize) {
        let (blank, at) = (self.blank(), self.pen.column);
        let cells = &mut self.grid.line_mut(self.pen.row)[at..];
        let count = count.min(cells.len());
        cells.rotate_right(count);
        cells[..count].fill(blank);
        self.pen.wraps = false;
    }

    /// Removes characters from the cursor on. Those after them move to the left.
    pub(crate) fn delete(&mut self, count: usize) {
        let (blank, at) = (self.blank(), self.pen.column);
        let cells = &mut self.grid.line_mut(self.pen.row)[at..];
        let count = count.min(cells.len());
        cells.rotate_left(count);
        let kept = cells.len() - count;
        cells[kept..].fill(blank);
        self.pen.wraps = false;
    }

    /// Fills the screen with a letter, by which the picture of a monitor is adjusted (DECALN).
    pub(crate) fn fill_with_letter(&mut self) {
        self.grid.fill_lines(0..self.grid.rows(), Cell { character: 'E', ..Cell::BLANK });
        self.go(0, 0);
    }
}

/// The character that a letter stands for in the set of line drawing.
fn line_drawing(letter: char) -> char {
    const DRAWN: &str = " ◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·";
    match letter {
        '_'..='~' => DRAWN.chars().nth(letter as usize - '_' as usize).unwrap_or(letter),
        // Arrows and a block, which terminals have had in addition.
        '+' => '→',
        ',' => '←',
        '-' => '↑',
        '.' => '↓',
        '0' => '█',
        _ => letter,
    }
}
