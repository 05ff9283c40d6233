//! What a long transfer or system call keeps while it gives way to an interrupt: 128 bytes, allocated when the thread
//! is activated, so that nothing can run out in the middle (K4).

use core::cell::{Cell, UnsafeCell};
use core::pin::Pin;

use x2::ThreadId;

use super::ThreadRef;
use crate::mapping::Cursor;
use crate::space::Space;

/// An interrupted system call. (An interrupted transfer is a [`super::Continuation`] of its two threads.)
#[derive(Clone, Copy, Default)]
pub enum Work {
    /// None is interrupted.
    #[default]
    Idle,
    /// Unmap: the message register whose fpage is half done.
    Unmap(u8),
    /// MemoryControl: the message register whose fpage is half done.
    MemoryControl(u8),
    /// MapControl, within an item for this space or between two items.
    MapControl(Option<&'static Space>),
    /// SpaceControl flushes what is mapped in the areas it is about to set; the index of the area.
    FlushAreas(u8),
    /// ThreadControl ends the relations of a thread that is deleted or changes its id.
    EndRelations {
        /// The thread.
        thread: ThreadRef,
        /// The id whose relations end.
        id: ThreadId,
        /// First thread number not looked at yet.
        next: u32,
        /// Whether the thread is deleted afterwards.
        delete: bool,
        /// A space that the thread has left as its last one.
        left: Option<&'static Space>,
    },
    /// ThreadControl destroys a space that has lost its last thread.
    DestroySpace(&'static Space),
}

/// Room for one interrupted operation of a thread.
pub struct TransferRecord {
    /// The other side of an interrupted transfer. Both sides keep it.
    pub peer: Cell<Option<ThreadRef>>,
    /// First message register of the typed item to transfer next. Kept by the sender.
    pub item: Cell<u8>,
    /// The system call to go on with.
    pub work: Cell<Work>,
    cursor: UnsafeCell<Cursor>,
}

/// Size of a transfer record (K4).
pub const TRANSFER_RECORD_SIZE: usize = 128;
const _: () = assert!(size_of::<TransferRecord>() <= TRANSFER_RECORD_SIZE);

impl TransferRecord {
    /// An unused record.
    pub const fn new() -> Self {
        Self {
            peer: Cell::new(None),
            item: Cell::new(0),
            work: Cell::new(Work::Idle),
            cursor: UnsafeCell::new(Cursor::new()),
        }
    }

    /// Calls a mapping operation with the thread's cursor: that of its map item, its Unmap, or the space it destroys.
    pub fn with_cursor<T>(&'static self, operation: impl FnOnce(Pin<&mut Cursor>) -> T) -> T {
        // SAFETY: records do not move while they are in use; mapping operations do not call back into this module, so
        // there is one reference at a time, on the thread's home processor.
        operation(unsafe { Pin::new_unchecked(&mut *self.cursor.get()) })
    }

    /// Gives up what is interrupted.
    pub fn cancel(&'static self) {
        self.peer.set(None);
        self.work.set(Work::Idle);
        self.with_cursor(Cursor::cancel);
    }
}

impl Default for TransferRecord {
    fn default() -> Self {
        Self::new()
    }
}
