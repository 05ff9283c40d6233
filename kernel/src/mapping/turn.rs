//! One call of a long operation: what it has changed, and when it looks for interrupts.
use super::changes::Changes;
use crate::arch;

/// Work that takes about 50 instructions. A turn looks for interrupts each time that
/// [`arch::POLL_INTERVAL`] of it are done.
pub(super) type Work = u32;

/// A page, or a hole, of a range that is unmapped.
pub(super) const UNMAP_STEP: Work = 7;
/// A page, or a hole, of a range that is mapped.
pub(super) const MAP_STEP: Work = 12;
/// Empty entries of a table that are skipped with one unit of work.
pub(super) const SKIPPED: u32 = 16;
/// A page that sigma0 may use itself is looked at.
pub(super) const SIGMA0_PAGE: Work = 2;
/// The work of looking at an entry of a table.
pub(super) const LOOK: Work = 2;
/// The most work between two looks for pending interrupts.
pub(super) const LONG_STEP: Work = arch::POLL_INTERVAL;

/// An empty table is taken out and freed. If there are many, that is done on the way, and not at
/// the end.
const EMPTIED: Work = 12;

/// What an operation does from its call, or from where it goes on, until its end, or until it gives
/// way to an interrupt.
pub(super) struct Turn {
    /// The changes that processors do not know yet. They learn them when the turn is dropped, if
    /// not before.
    pub(super) changes: Changes,
    /// The work done since the last look for pending interrupts.
    done: Work,
}

impl Turn {
    pub(super) const fn new() -> Self {
        Self { changes: Changes::new(), done: 0 }
    }

    /// Before `work` more is done: whether to give way first, because an interrupt is pending. At
    /// the beginning of a turn it is not, so that each gets something done.
    #[inline]
    pub(super) fn gives_way(&mut self, work: Work) -> bool {
        let done = self.done + work;
        if done + self.emptied() > arch::POLL_INTERVAL {
            return self.look(work);
        }
        self.done = done;
        false
    }

    #[inline(never)]
    fn look(&mut self, work: Work) -> bool {
        if self.emptied() >= arch::POLL_INTERVAL / 2 {
            self.changes.finish();
        }
        if self.done != 0 && arch::interrupt_pending() {
            return true;
        }
        self.done = work;
        false
    }

    fn emptied(&self) -> Work {
        self.changes.emptied_tables() * EMPTIED
    }

    /// Counts work in addition to what was foreseen.
    #[inline]
    pub(super) fn did(&mut self, work: Work) {
        self.done += work;
    }
}
