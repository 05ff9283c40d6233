//! What a long transfer or system call keeps while it gives way to an interrupt: 128 bytes,
//! allocated when the thread is activated, so that nothing can run out in the middle (K4).

use core::cell::{Cell, UnsafeCell};
use core::pin::Pin;

use x2::ThreadId;

use super::{Continuation, ThreadRef};
use crate::mapping::{self, Cursor, Progress};
use crate::scheduler::timeouts::Microseconds;
use crate::space::Space;

/// An interrupted system call. (An interrupted transfer is a [`super::Continuation`] of its two
/// threads.)
#[derive(Clone, Copy, Default)]
pub enum Work {
    /// No call is interrupted.
    #[default]
    Idle,
    /// Unmap: the message register of the fpage at which the call goes on.
    Unmap(u8),
    /// MemoryControl: the message register of the fpage at which the call goes on.
    MemoryControl(u8),
    /// MapControl, within an item for this space or between two items.
    MapControl(Option<&'static Space>),
    /// SpaceControl takes the UTCBs of a space's threads; first thread number not looked at yet.
    DropUtcbs(u32),
    /// SpaceControl flushes what is mapped in the areas it is about to set; the index of the area.
    FlushAreas(u8),
    /// ThreadControl ends the relations of a thread that is deleted or changes its id.
    EndRelations {
        /// The thread.
        thread: ThreadRef,
        /// The id of the thread whose relations to others are ended.
        id: ThreadId,
        /// The first thread number that was not examined yet.
        next: u32,
        /// Whether the thread is deleted after its relations were ended.
        delete: bool,
        /// A space that the thread has left as its last one.
        left: Option<&'static Space>,
        /// How many other processors the thread has still to go to.
        processors: u16,
    },
    /// SpaceControl tells the threads of a space, which may be gone by now, that its redirector has
    /// changed.
    Redirect {
        /// The space.
        space: &'static Space,
        /// The first thread number that was not examined yet.
        next: u32,
        /// How many other processors the thread has still to go to.
        processors: u16,
        /// The thread that began the call was deleted, and ThreadControl goes on with the call.
        inherited: bool,
    },
    /// ThreadControl destroys a space that has lost its last thread.
    DestroySpace(&'static Space),
}

/// A place in a string: a descriptor, by its message or buffer register, a substring of it, and how
/// much of that is done.
#[derive(Clone, Copy, Default)]
pub struct Place {
    /// The message or buffer register that has the descriptor.
    pub descriptor: u8,
    /// The number of the substring within the string.
    pub substring: u8,
    /// How many bytes of the substring have been copied.
    pub done: u64,
}

/// How long the page faults of a transfer may take (X.2 rules 1.15, 1.16). Counted from the first.
#[derive(Clone, Copy)]
pub struct Limit {
    /// When the time is over.
    pub deadline: Microseconds,
    /// Whether the limit is the receiver's, as that is smaller than the sender's.
    pub receivers: bool,
}

/// How far the string items of a message are moved.
#[derive(Clone, Copy)]
pub struct StringProgress {
    /// Whether the transfer of an item has begun.
    pub begun: bool,
    /// Buffer register of the present receive string; 0: none was used yet.
    pub buffer: u8,
    /// The place in the sender's strings from which to copy next.
    pub source: Place,
    /// The place in the receiver's buffers to which to copy next.
    pub target: Place,
    /// Where the next byte of the present substring goes if it is in one piece.
    pub expected: u64,
    /// How many bytes of all string items have been copied.
    pub moved: u64,
    /// The time limit for page faults, set at the first one.
    pub limit: Option<Limit>,
}

impl StringProgress {
    /// Nothing yet.
    pub const NONE: Self = {
        const START: Place = Place { descriptor: 0, substring: 0, done: 0 };
        Self { begun: false, buffer: 0, source: START, target: START, expected: 0, moved: 0, limit: None }
    };
}

/// The activity of a thread that tells its pager of a page that a transfer misses.
#[derive(Clone, Copy)]
pub struct Outer {
    /// The thread's continuation: as sender or as receiver.
    pub continuation: Continuation,
    /// The other side of the transfer.
    pub peer: ThreadRef,
    /// The thread's partner.
    pub partner: ThreadId,
    /// The source of the thread's receive phase.
    pub receive_from: ThreadId,
    /// The receive phase's timeout.
    pub receive_timeout: u16,
    /// The receive phase's deadline.
    pub receive_deadline: Microseconds,
    /// Whether the thread's message is propagated.
    pub propagated: bool,
    /// Whether the thread's message goes to a redirector.
    pub redirected: bool,
}

/// Room for one interrupted operation of a thread.
pub struct TransferRecord {
    /// The other side of an interrupted transfer. Both sides keep it.
    pub peer: Cell<Option<ThreadRef>>,
    /// First message register of the typed item to transfer next. Kept by the sender.
    pub item: Cell<u8>,
    /// The system call that goes on.
    pub work: Cell<Work>,
    /// String items. Kept by the sender.
    pub string: Cell<StringProgress>,
    /// What the thread was doing before a page fault in a transfer.
    pub outer: Cell<Option<Outer>>,
    cursor: UnsafeCell<Cursor>,
}

/// Size of a transfer record (K4, which thought of half of that: a cursor alone takes 104 bytes).
pub const TRANSFER_RECORD_SIZE: usize = 256;
const _: () = assert!(size_of::<TransferRecord>() == TRANSFER_RECORD_SIZE);

impl TransferRecord {
    /// An unused record.
    pub const fn new() -> Self {
        Self {
            peer: Cell::new(None),
            item: Cell::new(0),
            work: Cell::new(Work::Idle),
            string: Cell::new(StringProgress::NONE),
            outer: Cell::new(None),
            cursor: UnsafeCell::new(Cursor::new()),
        }
    }

    /// Makes memory, which is zero or was a record before, an unused record. What means nothing
    /// before a transfer has begun, which sets it, stays.
    ///
    /// # Safety
    /// The record is in no use.
    #[inline(always)]
    pub unsafe fn renew(record: *mut Self) {
        // SAFETY: the caller's promise. What is not written is valid, as zeros are for these types.
        unsafe {
            (&raw mut (*record).peer).write(Cell::new(None));
            (&raw mut (*record).work).write(Cell::new(Work::Idle));
            (&raw mut (*record).outer).write(Cell::new(None));
            Cursor::renew((&raw mut (*record).cursor).cast());
        }
    }

    /// Calls a mapping operation with the thread's cursor: that of its map item, its Unmap, or the
    /// space it destroys.
    pub fn with_cursor<T>(&'static self, operation: impl FnOnce(Pin<&mut Cursor>) -> T) -> T {
        // SAFETY: records do not move while they are in use; mapping operations do not call back
        // into this module, so there is one reference at a time, on the thread's home processor.
        operation(unsafe { Pin::new_unchecked(&mut *self.cursor.get()) })
    }

    /// Marks the record as unused.
    pub fn retire(&'static self) {
        self.with_cursor(|cursor| {
            if cursor.is_active() || cursor.has_walk() {
                cursor.give_up();
            }
        });
    }

    /// Whether the record has no operation.
    pub fn is_unused(&'static self) -> bool {
        self.peer.get().is_none()
            && matches!(self.work.get(), Work::Idle)
            && self.outer.get().is_none()
            && self.with_cursor(|cursor| !cursor.is_active() && !cursor.has_walk())
    }

    /// Whether there is something for [`finish_walk`](Self::finish_walk) to do.
    #[inline]
    pub fn has_walk(&'static self) -> bool {
        self.with_cursor(|cursor| cursor.has_walk())
    }

    /// Finishes what a mapping operation, which does not go on, has begun to take away. Preemption
    /// point.
    pub fn finish_walk(&'static self) -> Progress<()> {
        self.with_cursor(mapping::finish_walk)
    }

    /// Gives up what is interrupted; what a mapping operation has begun to take away is still to be
    /// finished.
    pub fn cancel(&'static self) {
        self.peer.set(None);
        self.work.set(Work::Idle);
        self.string.set(StringProgress::NONE);
        self.with_cursor(Cursor::cancel);
    }
}

impl Default for TransferRecord {
    fn default() -> Self {
        Self::new()
    }
}
