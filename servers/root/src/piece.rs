//! Pieces of long work. A piece needs neither root's notes nor its lock nor its heap, so the thread
//! that does it may be preempted at any moment.

use crate::frames;
use core::ops::Range;
use l4::{extension, ipc, thread};
use root::pages::Run;
use root::thread_numbers::ThreadName;
use x2::extension::{MapItem, MapOperation};
use x2::{ErrorCode, Fpage, Rights, ThreadId, Time};

/// Bytes that are filled, and pages that are mapped, in one piece.
pub(crate) const BYTES: u64 = 1 << 20;
pub(crate) const PAGES: u32 = 2048;
/// The most threads that one piece of work ends.
pub(crate) const THREADS: usize = 8;

/// How a piece went: the kernel's reason if it refused.
pub(crate) type Result = core::result::Result<(), Option<ErrorCode>>;

/// A piece of a job that root's background worker does without a look at requests.
#[derive(Clone, Copy)]
pub(crate) enum Piece {
    /// Fills physical memory from `start` on, which no server has: `content`, then zeros.
    Fill { start: u64, size: u64, content: &'static [u8] },
    /// Maps what root has at `run.source` into the space of a thread.
    Map { thread: ThreadId, run: Run, rights: Rights },
    /// Unmaps pages of the space of a thread.
    Unmap { thread: ThreadId, run: Run },
    /// Ends threads.
    End([Option<ThreadName>; THREADS]),
    /// Nothing: lets requests of other servers be served first.
    Pause,
}

impl Piece {
    /// About how long it takes, in bytes that could be cleared meanwhile.
    pub(crate) fn cost(&self) -> u64 {
        match self {
            Piece::Fill { size, .. } => *size,
            Piece::Map { run, .. } | Piece::Unmap { run, .. } => u64::from(run.count) << 9,
            Piece::End(threads) => (threads.iter().flatten().count() as u64) << 15,
            Piece::Pause => u64::MAX,
        }
    }

    /// Does the piece.
    ///
    /// # Errors
    /// The kernel's reason. Only mapping can fail.
    pub(crate) fn perform(self) -> Result {
        match self {
            Piece::Fill { start, size, content } => {
                let filled = content.len() as u64;
                frames::write(&(start..start + size), 0, content);
                frames::clear(&(start + filled..start + size));
                Ok(())
            }
            Piece::Map { thread, run, rights } => {
                let target = Fpage::memory(run.address, run.size_log2).with_rights(rights);
                map_control(thread, MapItem::new(MapOperation::Map, target, run.count, run.source))
            }
            Piece::Unmap { thread, run } => {
                let target = Fpage::memory(run.address, run.size_log2).with_rights(Rights::ALL);
                map_control(thread, MapItem::new(MapOperation::Unmap, target, run.count, 0))
            }
            Piece::End(threads) => {
                for thread in threads.into_iter().flatten() {
                    thread::delete(crate::server::id(thread)).expect("deletion of a thread never fails");
                }
                Ok(())
            }
            Piece::Pause => {
                ipc::sleep(Time::period(100));
                Ok(())
            }
        }
    }
}

fn map_control(thread: ThreadId, item: MapItem) -> Result {
    extension::map_control(thread, &mut [item]).map_err(|(_, error)| error)
}

/// The part of `content` that belongs to the bytes `range` of what it is the beginning of.
pub(crate) fn part(content: &'static [u8], range: Range<u64>) -> &'static [u8] {
    let length = content.len() as u64;
    &content[range.start.min(length) as usize..range.end.min(length) as usize]
}
