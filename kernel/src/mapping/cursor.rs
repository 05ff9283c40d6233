//! How far a long operation has come.
use core::marker::PhantomPinned;
use core::pin::Pin;

use x2::{Region, Rights};

use super::changes::Changes;
use super::lock::lock;
use super::node::NodeId;
use super::tree;
use super::walk::{Revoke, Walk};
use crate::arch::page_entry::MemoryType;

/// The outcome of a call of a preemptible operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Progress<T> {
    /// An interrupt is pending. Call again, with the same cursor and arguments, to go on.
    Preempted,
    /// The operation is over; the cursor is ready for another.
    Done(T),
}

/// The state of one mapping operation between calls. A thread has one, in its control block; it must stay where it is
/// until dropped or cancelled.
///
/// An operation begins with an unused cursor. If it returns [`Progress::Preempted`] it is continued by the same call.
/// Meanwhile any other operation may run, on the same memory too. [`Cursor::cancel`] gives up what is left.
pub struct Cursor {
    /// Bytes of the fpage, or items of the batch, that are done.
    pub(super) offset: u64,
    /// Status, or granted rights, so far.
    pub(super) rights: Rights,
    /// log2 of the bytes that are done when the walk is.
    pub(super) advance: u8,
    /// The rights of the page that the walk is about.
    pub(super) page: Rights,
    /// The rights of all pages so far.
    pub(super) held: Rights,
    /// MapControl: where the first page is, or how much was mapped.
    pub(super) value: u64,
    suspended: bool,
    walk: Walk,
    _pin: PhantomPinned,
}

// SAFETY: the pointers in a walk are used under the lock of the list of suspended walks.
unsafe impl Send for Cursor {}

impl Cursor {
    /// No operation.
    pub const fn new() -> Self {
        Self {
            offset: 0,
            rights: Rights::NONE,
            advance: 0,
            page: Rights::NONE,
            held: Rights::NONE,
            value: 0,
            suspended: false,
            walk: Walk::IDLE,
            _pin: PhantomPinned,
        }
    }

    /// Gives up the operation in progress, if any. What it has done stays done.
    pub fn cancel(self: Pin<&mut Self>) {
        let _alone = self.suspended.then(lock);
        self.project().reset();
    }

    /// Whether an operation was preempted and neither finished nor cancelled.
    pub fn is_active(&self) -> bool {
        self.suspended || self.offset != 0
    }

    /// The fields, for the operations of this module, which never move the cursor.
    pub(super) fn project(self: Pin<&mut Self>) -> &mut Self {
        // SAFETY: nothing in `mapping` moves the value out of the reference.
        unsafe { self.get_unchecked_mut() }
    }

    pub(super) fn reset(&mut self) {
        if self.suspended {
            let _tree = tree::lock(self.walk.address());
            self.walk.resume();
            self.walk.abandon();
        }
        self.suspended = false;
        self.walk = Walk::IDLE;
        (self.offset, self.rights, self.advance) = (0, Rights::NONE, 0);
        (self.page, self.held, self.value) = (Rights::NONE, Rights::NONE, 0);
    }

    /// The operation is over: makes the cursor ready for the next one.
    pub(super) fn finish<T>(&mut self, result: T) -> Progress<T> {
        self.reset();
        Progress::Done(result)
    }

    /// Whether a walk was begun and is not over.
    pub(super) fn is_walking(&self) -> bool {
        self.suspended
    }

    /// Begins a walk (see [`Walk::new`]), under the tree lock: its result if it is over already, else it is suspended.
    pub(super) fn walk(&mut self, own: NodeId, range: Region, what: Revoke) -> Option<Rights> {
        let mut changes = Changes::new();
        self.walk = Walk::new(own, range, what, &mut changes);
        self.run(&mut changes)
    }

    /// Begins a walk that changes the memory type of everything derived from `root` in `range`, under the tree lock: `Some` if
    /// it is over already, else it is suspended.
    pub(super) fn walk_for_type(
        &mut self,
        root: NodeId,
        range: Region,
        memory_type: MemoryType,
    ) -> Option<Rights> {
        let mut changes = Changes::new();
        self.walk = Walk::for_type(root, range, memory_type, &mut changes);
        self.run(&mut changes)
    }

    /// Continues a suspended walk: its result when it is over, else it is suspended again.
    pub(super) fn continue_walk(&mut self) -> Option<Rights> {
        let _tree = tree::lock(self.walk.address());
        self.walk.resume();
        self.suspended = false;
        self.run(&mut Changes::new())
    }

    fn run(&mut self, changes: &mut Changes) -> Option<Rights> {
        if self.walk.run(changes) {
            return Some(self.walk.result());
        }
        self.walk.suspend();
        self.suspended = true;
        None
    }
}

impl Default for Cursor {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.reset();
    }
}
