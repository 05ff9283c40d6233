//! What the screen shows, so that only what has changed is drawn.

use alloc::vec::Vec;
use terminal::{Modes, Rgb, Style, Terminal};

/// A cell as the screen shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The character.
    pub character: char,
    /// Its colour.
    pub ink: Rgb,
    /// The colour of its background.
    pub paper: Rgb,
    /// The colours' numbers in a palette of sixteen, for a screen that has no others.
    pub numbers: (u8, u8),
    /// Whether there is a line below.
    pub underlined: bool,
}

/// A screen that shows cells.
pub trait Display {
    /// The numbers of columns and rows.
    fn size(&self) -> (usize, usize);
    /// Draws a cell.
    fn draw(&mut self, row: usize, column: usize, cell: &Shown);
}

/// A display, and what it shows.
#[derive(Debug)]
pub struct Screen<D> {
    display: D,
    columns: usize,
    /// The cells, row by row. `None`: not known.
    cells: Vec<Option<Shown>>,
    /// The row of the cursor.
    cursor: Option<usize>,
}

impl<D: Display> Screen<D> {
    /// A screen of which it is not known what it shows.
    pub fn new(display: D) -> Screen<D> {
        let (columns, rows) = display.size();
        Screen { display, columns, cells: alloc::vec![None; columns * rows], cursor: None }
    }

    /// The numbers of columns and rows.
    pub fn size(&self) -> (usize, usize) {
        self.display.size()
    }

    /// Draws the cells of a terminal of the screen's size that differ from what is shown. Rows that
    /// have not changed since the last call are looked at only if `all` is wanted, because another
    /// terminal was shown before. Returns how many cells were drawn.
    pub fn show(&mut self, terminal: &mut Terminal, all: bool) -> usize {
        let mut drawn = 0;
        let cursor = terminal.cursor();
        for row in 0..terminal.rows() {
            let has_cursor = [self.cursor, cursor.map(|(row, _)| row)].contains(&Some(row));
            if terminal.take_change(row) || all || has_cursor {
                let column = cursor.filter(|&(cursor, _)| cursor == row).map(|(_, column)| column);
                drawn += self.show_row(terminal, row, column);
            }
        }
        self.cursor = cursor.map(|(row, _)| row);
        drawn
    }

    fn show_row(&mut self, terminal: &Terminal, row: usize, cursor: Option<usize>) -> usize {
        let (palette, mut drawn) = (terminal.palette(), 0);
        let reversed = terminal.modes().contains(Modes::REVERSED);
        for (column, cell) in terminal.row(row).iter().enumerate() {
            let (mut ink, mut paper) = cell.colours(reversed);
            if cursor == Some(column) {
                (ink, paper) = (paper, ink);
            }
            let cell = Shown {
                character: cell.character,
                ink: palette.rgb(ink),
                paper: palette.rgb(paper),
                numbers: (palette.nearest(ink), palette.nearest(paper)),
                underlined: cell.style.contains(Style::UNDERLINE),
            };
            let place = self.cells.get_mut(row * self.columns + column);
            if let Some(place) = place.filter(|place| **place != Some(cell)) {
                *place = Some(cell);
                self.display.draw(row, column, &cell);
                drawn += 1;
            }
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A display that keeps characters.
    struct Characters(Vec<Vec<char>>);

    impl Display for Characters {
        fn size(&self) -> (usize, usize) {
            (self.0[0].len(), self.0.len())
        }

        fn draw(&mut self, row: usize, column: usize, cell: &Shown) {
            self.0[row][column] = cell.character;
        }
    }

    fn screen() -> Screen<Characters> {
        Screen::new(Characters(alloc::vec![alloc::vec!['?'; 10]; 4]))
    }

    fn text(screen: &Screen<Characters>) -> Vec<String> {
        screen.display.0.iter().map(|row| row.iter().collect::<String>().trim_end().into()).collect()
    }

    #[test]
    fn only_what_has_changed_is_drawn() {
        let (mut screen, mut terminal) = (screen(), Terminal::new(10, 4, 4));
        terminal.write(b"one\r\ntwo");
        assert_eq!(screen.show(&mut terminal, false), 40, "nothing is known at first");
        assert_eq!(text(&screen), ["one", "two", "", ""]);
        assert_eq!(screen.show(&mut terminal, false), 0);
        // The character, and the places of the cursor before and now.
        terminal.write(b"!");
        assert_eq!(screen.show(&mut terminal, false), 2);
        terminal.write(b"\x1b[2K\x1b[Htw");
        assert_eq!(screen.show(&mut terminal, false), 2 + 1 + 4 + 1);
        assert_eq!(text(&screen), ["twe", "", "", ""]);
        terminal.write(b"\x1b[4;1H\n\x1b[?25l");
        screen.show(&mut terminal, false);
        assert_eq!(text(&screen), ["", "", "", ""]);
        terminal.scroll(1);
        screen.show(&mut terminal, false);
        assert_eq!(text(&screen), ["twe", "", "", ""]);
        // A change of the palette changes each cell that has the colour.
        terminal.write(b"\x1b]P0112233");
        assert_eq!(screen.show(&mut terminal, false), 40);
    }

    #[test]
    fn another_terminal_is_shown_whole() {
        let (mut screen, mut one, mut other) = (screen(), Terminal::new(10, 4, 0), Terminal::new(10, 4, 0));
        one.write(b"same one\r\nfirst");
        other.write(b"same two\r\n\nx");
        screen.show(&mut one, true);
        assert!(screen.show(&mut other, true) < 20);
        assert_eq!(text(&screen), ["same two", "", " x", ""].map(|line| line.trim_start_matches('?')));
        screen.show(&mut one, true);
        assert_eq!(text(&screen), ["same one", "first", "", ""]);
    }
}
