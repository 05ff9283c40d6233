//! The work of filling new memory and mapping it, in steps.

use crate::frames::Block;
use crate::pages::{self, Run};
use crate::step::{self, Step, part};
use alloc::vec::Vec;
use x2::{Rights, ThreadId};

/// New memory of a server that is being filled and mapped.
pub(crate) struct Fill {
    /// A thread of the space into which the memory is mapped.
    pub(crate) thread: ThreadId,
    pub(crate) address: u64,
    pub(crate) blocks: Vec<Block>,
    /// The bytes with which the new memory begins; the rest is zero.
    pub(crate) content: &'static [u8],
    pub(crate) rights: Rights,
    /// The index of the block that is next. `filled` and `mapped` say how many bytes of it are
    /// done.
    at: usize,
    filled: u64,
    mapped: u64,
}

impl Fill {
    pub(crate) fn new(thread: ThreadId, address: u64, blocks: Vec<Block>, rights: Rights) -> Fill {
        Fill { thread, address, blocks, content: &[], rights, at: 0, filled: 0, mapped: 0 }
    }

    /// Returns the next step, or `None` when all blocks are mapped. A step that was returned counts
    /// as done.
    pub(crate) fn next(&mut self) -> Option<Step> {
        loop {
            let block = self.blocks.get(self.at)?;
            let size = block.range.end - block.range.start;
            if block.clear && self.filled < size {
                let (begin, end) = (self.filled, size.min(self.filled + step::BYTES));
                self.filled = end;
                let content = part(self.content, begin..end);
                return Some(Step::Fill { start: block.range.start + begin, size: end - begin, content });
            }
            let (address, source) = (self.address + self.mapped, block.range.start + self.mapped);
            if let Some(run) = next_run(address, source, size - self.mapped) {
                self.mapped += u64::from(run.count) << run.size_log2;
                return Some(Step::Map { thread: self.thread, run, rights: self.rights });
            }
            self.address += size;
            self.content = self.content.get(size as usize..).unwrap_or_default();
            (self.at, self.filled, self.mapped) = (self.at + 1, 0, 0);
        }
    }
}

/// The first run of pages that maps a part of `size` bytes from `source` at `address`, limited to
/// what one step may map.
pub(crate) fn next_run(address: u64, source: u64, size: u64) -> Option<Run> {
    let run = pages::runs(address, source, size).next()?;
    Some(Run { count: run.count.min(step::PAGES), ..run })
}
