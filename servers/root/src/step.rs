//! Steps of long work. A step uses neither root's tables nor its lock nor its heap, so the thread
//! that does it may be preempted at any moment.

use crate::pages::Run;
use core::ops::Range;
use x2::{ErrorCode, Rights, ThreadId};

/// How many bytes one step fills at most, and how many pages one step maps at most.
pub(crate) const BYTES: u64 = 1 << 20;
pub(crate) const PAGES: u32 = 2048;
/// The most threads that one step ends.
pub(crate) const THREADS: usize = 8;

/// The result of a step. The error is the kernel's reason for refusing it, if it gave one.
pub type Result = core::result::Result<(), Option<ErrorCode>>;

/// A step of a work item: root's background worker does it without interruption by requests.
#[derive(Clone, Copy)]
pub enum Step {
    /// Fills physical memory, which no server has, with `content` and then zeros.
    Fill {
        /// The physical address of the memory.
        start: u64,
        /// How many bytes are filled.
        size: u64,
        /// The bytes with which the memory begins; may be shorter than the memory.
        content: &'static [u8],
    },
    /// Maps pages from the address `run.source` in root's space into the space of a thread.
    Map {
        /// A thread of the space.
        thread: ThreadId,
        /// Which pages are mapped, and where.
        run: Run,
        /// What the space may do with the pages.
        rights: Rights,
    },
    /// Unmaps pages of the space of a thread.
    Unmap {
        /// A thread of the space.
        thread: ThreadId,
        /// Which pages are unmapped.
        run: Run,
    },
    /// Ends these threads.
    End([Option<ThreadId>; THREADS]),
    /// Does nothing, so that requests of other servers are served first.
    Pause,
}

impl Step {
    /// The approximate time that the step takes, as the number of bytes that could be cleared in
    /// it.
    pub fn cost(&self) -> u64 {
        match self {
            Step::Fill { size, .. } => *size,
            Step::Map { run, .. } | Step::Unmap { run, .. } => u64::from(run.count) << 9,
            Step::End(threads) => (threads.iter().flatten().count() as u64) << 15,
            Step::Pause => u64::MAX,
        }
    }
}

/// The part of `content` that lies in the bytes `range` of memory which begins with `content`.
pub(crate) fn part(content: &'static [u8], range: Range<u64>) -> &'static [u8] {
    let length = content.len() as u64;
    &content[range.start.min(length) as usize..range.end.min(length) as usize]
}
