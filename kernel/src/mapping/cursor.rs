//! How far a long operation has come.
use core::marker::PhantomPinned;
use core::pin::Pin;

use x2::{Region, Rights};

use super::lock::lock;
use super::node::NodeId;
use super::split::{self, Prepared};
use super::tree;
use super::turn::Turn;
use super::walk::{Revoke, Walk};
use crate::arch::page_entry::MemoryType;
use crate::memory::OutOfMemory;

/// The outcome of a call of a preemptible operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Progress<T> {
    /// An interrupt is pending. Call again, with the same cursor and arguments, to go on.
    Preempted,
    /// The operation is over; the cursor is ready for another.
    Done(T),
}

/// The state of one mapping operation between calls. A thread has one, in its control block; it
/// must stay where it is until dropped or cancelled.
///
/// An operation begins with an unused cursor. If it returns [`Progress::Preempted`] it is continued
/// by the same call. Meanwhile any other operation may run, on the same memory too.
/// [`Cursor::cancel`] gives up what is left, but for the walk through what is derived from one
/// page, if the operation was in the midst of one: that page is taken away already, or has lost
/// rights, and what is derived from it must follow. The next operation of the cursor finishes that
/// first, or [`super::finish_walk`] does when there will be none.
pub struct Cursor {
    /// Bytes of the fpage, or items of the batch, that are done.
    pub(super) offset: u64,
    /// Status of the pages done so far, or rights that were granted.
    pub(super) rights: Rights,
    /// log2 of the bytes that are done when the walk is.
    pub(super) advance: u8,
    /// The rights of the page that the walk is about.
    pub(super) page: Rights,
    /// The rights that the pages done so far had.
    pub(super) held: Rights,
    /// MapControl: where the first page is, or how much was mapped.
    pub(super) value: u64,
    /// Bytes in the way of a large page, or of the present block of sigma0's, that were looked at.
    pub(super) looked_at: u64,
    /// Up to the end of the block of the next level, pages of at most this one: there are smaller
    /// ones from the same parent already. 0 = none.
    pub(super) cap: u8,
    suspended: bool,
    /// The walk is that of an operation that was given up.
    left_over: bool,
    walk: Walk,
    prepared: Prepared,
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
            looked_at: 0,
            cap: 0,
            suspended: false,
            left_over: false,
            walk: Walk::IDLE,
            prepared: Prepared::NONE,
            _pin: PhantomPinned,
        }
    }

    /// Makes memory, which is zero or was a cursor before, one of no operation. Its walk, which is
    /// none, stays as it is.
    ///
    /// # Safety
    /// No operation uses the cursor, and it is in no list of suspended walks.
    #[inline(always)]
    pub unsafe fn renew(cursor: *mut Self) {
        // SAFETY: the caller's promise: every field is written, but for the walk, which zeros are,
        // too.
        unsafe {
            (&raw mut (*cursor).offset).write(0);
            (&raw mut (*cursor).rights).write(Rights::NONE);
            (&raw mut (*cursor).advance).write(0);
            (&raw mut (*cursor).page).write(Rights::NONE);
            (&raw mut (*cursor).held).write(Rights::NONE);
            (&raw mut (*cursor).value).write(0);
            (&raw mut (*cursor).looked_at).write(0);
            (&raw mut (*cursor).cap).write(0);
            (&raw mut (*cursor).suspended).write(false);
            (&raw mut (*cursor).left_over).write(false);
            (&raw mut (*cursor).prepared).write(Prepared::NONE);
        }
    }

    /// Gives up the operation in progress, if any. What it has done stays done; a walk that it has
    /// begun is still to be finished.
    pub fn cancel(self: Pin<&mut Self>) {
        let _alone = self.prepared.is_some().then(lock);
        let cursor = self.project();
        cursor.left_over = cursor.suspended;
        cursor.clear();
    }

    /// Gives up everything, because the cursor goes. What a walk has not come to stays as it is.
    pub fn give_up(self: Pin<&mut Self>) {
        let _alone = (self.suspended || self.prepared.is_some()).then(lock);
        self.project().reset();
    }

    /// Whether an operation was preempted and neither finished nor cancelled.
    pub fn is_active(&self) -> bool {
        !self.left_over
            && (self.suspended || self.offset != 0 || self.looked_at != 0 || self.prepared.is_some())
    }

    /// Whether there is a walk to finish, of the operation in progress or of one that was given up.
    #[inline]
    pub fn has_walk(&self) -> bool {
        self.suspended
    }

    /// Before an operation begins or goes on: finishes what one that was given up has left over.
    /// Preemption point.
    #[inline]
    pub(super) fn finish_left_over(&mut self) -> Progress<()> {
        if self.left_over { self.finish_walk() } else { Progress::Done(()) }
    }

    /// Finishes the walk, if there is one, and gives up everything else that is unfinished.
    /// Preemption point.
    #[cold]
    pub(super) fn finish_walk(&mut self) -> Progress<()> {
        if self.suspended && self.continue_walk(&mut Turn::new()).is_none() {
            return Progress::Preempted;
        }
        self.finish(())
    }

    /// The fields, for the operations of this module, which never move the cursor.
    pub(super) fn project(self: Pin<&mut Self>) -> &mut Self {
        // SAFETY: nothing in `mapping` moves the value out of the reference.
        unsafe { self.get_unchecked_mut() }
    }

    pub(super) fn reset(&mut self) {
        if self.suspended {
            let _tree = tree::lock(self.walk.address());
            self.walk.end_suspension();
            self.walk.abandon();
        }
        self.suspended = false;
        self.left_over = false;
        self.walk = Walk::IDLE;
        self.clear();
    }

    /// Forgets everything except a walk that is under way.
    fn clear(&mut self) {
        if self.prepared.is_some() {
            self.prepared.discard();
        }
        (self.offset, self.rights, self.advance) = (0, Rights::NONE, 0);
        (self.page, self.held, self.value) = (Rights::NONE, Rights::NONE, 0);
        (self.looked_at, self.cap) = (0, 0);
    }

    /// The operation is over: makes the cursor ready for the next one.
    pub(super) fn finish<T>(&mut self, result: T) -> Progress<T> {
        self.reset();
        Progress::Done(result)
    }

    /// Whether a walk was begun and has not ended.
    pub(super) fn is_walking(&self) -> bool {
        self.suspended
    }

    /// Splits the large page that maps `node` ([`split::split`]).
    pub(super) fn split(&mut self, node: NodeId, turn: &mut Turn) -> Result<Progress<()>, OutOfMemory> {
        split::split(node, &mut self.prepared, turn)
    }

    /// How many nodes the operation has made that are in no tree yet.
    #[cfg(test)]
    pub(super) fn prepared_nodes(&self) -> u32 {
        self.prepared.nodes()
    }

    /// Begins a walk (see [`Walk::new`]), under the tree lock: its result if it is over already,
    /// else it is suspended.
    pub(super) fn walk(
        &mut self,
        own: NodeId,
        range: Region,
        what: Revoke,
        turn: &mut Turn,
    ) -> Option<Rights> {
        self.walk = Walk::new(own, range, what, &mut turn.changes);
        self.run(turn)
    }

    /// Begins a walk that changes the memory type of everything derived from `root` in `range`,
    /// under the tree lock: `Some` if it is over already, else it is suspended.
    pub(super) fn walk_for_type(
        &mut self,
        root: NodeId,
        range: Region,
        memory_type: MemoryType,
        turn: &mut Turn,
    ) -> Option<Rights> {
        self.walk = Walk::for_type(root, range, memory_type, &mut turn.changes);
        self.run(turn)
    }

    /// Continues a suspended walk. Returns its result when it is over; `None`: it is suspended
    /// again.
    pub(super) fn continue_walk(&mut self, turn: &mut Turn) -> Option<Rights> {
        let _tree = tree::lock(self.walk.address());
        self.walk.end_suspension();
        self.suspended = false;
        self.run(turn)
    }

    fn run(&mut self, turn: &mut Turn) -> Option<Rights> {
        if self.walk.run(turn, &mut self.prepared) {
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
