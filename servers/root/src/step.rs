//! Steps of long work. A step needs neither root's notes nor its lock nor its heap, so the thread
//! that does it may be preempted at any moment.

use crate::pages::Run;
use core::ops::Range;
use x2::{ErrorCode, Rights, ThreadId};

/// Bytes that are filled, and pages that are mapped, in one step.
pub(crate) const BYTES: u64 = 1 << 20;
pub(crate) const PAGES: u32 = 2048;
/// The most threads that one step ends.
pub(crate) const THREADS: usize = 8;

/// How a step went: the kernel's reason if it refused.
pub type Result = core::result::Result<(), Option<ErrorCode>>;

/// A step of a work item that root's background worker does without a look at requests.
#[derive(Clone, Copy)]
pub enum Step {
    /// Fills physical memory, which no server has, with `content`, then zeros.
    Fill {
        /// The physical address.
        start: u64,
        /// How many bytes.
        size: u64,
        /// What the memory begins with.
        content: &'static [u8],
    },
    /// Maps what root has at `run.source` into the space of a thread.
    Map {
        /// A thread of the space.
        thread: ThreadId,
        /// Which pages.
        run: Run,
        /// What the space may do with them.
        rights: Rights,
    },
    /// Unmaps pages of the space of a thread.
    Unmap {
        /// A thread of the space.
        thread: ThreadId,
        /// Which pages.
        run: Run,
    },
    /// Ends threads.
    End([Option<ThreadId>; THREADS]),
    /// Nothing: lets requests of other servers be served first.
    Pause,
}

impl Step {
    /// About how long it takes, in bytes that could be cleared meanwhile.
    pub fn cost(&self) -> u64 {
        match self {
            Step::Fill { size, .. } => *size,
            Step::Map { run, .. } | Step::Unmap { run, .. } => u64::from(run.count) << 9,
            Step::End(threads) => (threads.iter().flatten().count() as u64) << 15,
            Step::Pause => u64::MAX,
        }
    }
}

/// The part of `content` that belongs to the bytes `range` of what it is the beginning of.
pub(crate) fn part(content: &'static [u8], range: Range<u64>) -> &'static [u8] {
    let length = content.len() as u64;
    &content[range.start.min(length) as usize..range.end.min(length) as usize]
}
