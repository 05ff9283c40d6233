//! The lines of the screen, and those that have left it at its top.

use crate::cell::Cell;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

/// A line of the screen.
type Line = Box<[Cell]>;

/// The lines of the screen and of the history.
#[derive(Debug)]
pub(crate) struct Grid {
    columns: usize,
    lines: Vec<Line>,
    /// Whether each line of the screen has changed since its change was taken.
    changed: Vec<bool>,
    /// Lines that have left the screen, the oldest first.
    history: VecDeque<Line>,
    /// How many lines the history keeps.
    kept: usize,
}

impl Grid {
    /// A blank screen of at least one line and column. The history keeps `kept` lines.
    pub(crate) fn new(columns: usize, rows: usize, kept: usize) -> Grid {
        let columns = columns.max(1);
        let line = || alloc::vec![Cell::BLANK; columns].into_boxed_slice();
        let lines: Vec<Line> = (0..rows.max(1)).map(|_| line()).collect();
        let changed = alloc::vec![true; lines.len()];
        Grid { columns, lines, changed, history: VecDeque::with_capacity(kept), kept }
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    pub(crate) fn rows(&self) -> usize {
        self.lines.len()
    }

    /// How many lines have left the screen and are kept.
    pub(crate) fn history(&self) -> usize {
        self.history.len()
    }

    pub(crate) fn forget_history(&mut self) {
        self.history.clear();
    }

    /// A line of what is seen when the screen is moved `back` lines into the history.
    pub(crate) fn line(&self, row: usize, back: usize) -> &[Cell] {
        let back = back.min(self.history.len());
        match row.checked_sub(back) {
            Some(row) => &self.lines[row],
            None => &self.history[self.history.len() - back + row],
        }
    }

    /// A line of the screen.
    pub(crate) fn line_mut(&mut self, row: usize) -> &mut [Cell] {
        self.changed[row] = true;
        &mut self.lines[row]
    }

    /// Whether a line has changed since this was asked last.
    pub(crate) fn take_change(&mut self, row: usize) -> bool {
        core::mem::take(&mut self.changed[row])
    }

    /// Takes all lines of the screen as changed, since they look different or others are seen.
    pub(crate) fn change_all(&mut self) {
        self.changed.fill(true);
    }

    /// Fills cells of a line.
    pub(crate) fn fill(&mut self, row: usize, columns: Range<usize>, cell: Cell) {
        self.line_mut(row)[columns].fill(cell);
    }

    /// Fills whole lines.
    pub(crate) fn fill_lines(&mut self, rows: Range<usize>, cell: Cell) {
        self.changed[rows.clone()].fill(true);
        self.lines[rows].iter_mut().for_each(|line| line.fill(cell));
    }

    /// Moves the lines of a region up by `count`; blank ones come in at its end. What leaves the
    /// screen at its top is kept.
    pub(crate) fn scroll_up(&mut self, region: Range<usize>, count: usize, blank: Cell) {
        let count = count.min(region.len());
        if region.start == 0 && self.kept > 0 {
            for row in 0..count {
                let mut line = match self.history.len() < self.kept {
                    true => alloc::vec![blank; self.columns].into_boxed_slice(),
                    false => self.history.pop_front().expect("the history is full"),
                };
                core::mem::swap(&mut self.lines[row], &mut line);
                self.history.push_back(line);
            }
        }
        self.remove(region, count, blank);
    }

    /// Removes the first `count` lines of a region: the others move up, and blank ones come in at
    /// its end.
    pub(crate) fn remove(&mut self, region: Range<usize>, count: usize, blank: Cell) {
        let count = count.min(region.len());
        self.changed[region.clone()].fill(true);
        self.lines[region.clone()].rotate_left(count);
        self.fill_lines(region.end - count..region.end, blank);
    }

    /// Moves the lines of a region down by `count`; blank ones come in at its start.
    pub(crate) fn scroll_down(&mut self, region: Range<usize>, count: usize, blank: Cell) {
        let count = count.min(region.len());
        self.changed[region.clone()].fill(true);
        self.lines[region.clone()].rotate_right(count);
        self.fill_lines(region.start..region.start + count, blank);
    }
}
