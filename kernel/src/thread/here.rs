//! Threads as a look-up finds them, and threads that may be touched (K6, K12).
//!
//! A look-up finds a thread that may be at any processor, and that may go, or get another id, at
//! any time: [`Found`], of which any code may ask what is the same for all processors. Where the
//! thread is located at the executing processor, the same look-up makes it a thread that is
//! [`Here`]: nothing else touches it until this processor sends it away or ends it. A second
//! look-up of the same id can find another thread, or one that the first did not find: a call looks
//! its target up once, and works on that.

use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::eq;

use x2::ThreadId;

use super::{Continuation, Tcb, ThreadRef, location};
use crate::scheduler::Next;
use crate::space::{Space, SpaceRef};
use crate::syscall::Entry;

/// The result of a look-up: a thread that had the id then, wherever it is. What this type gives of
/// the thread is the same for all processors.
#[derive(Clone, Copy)]
pub struct Found(&'static Tcb);

impl Found {
    /// `thread` has just been found by [`Tcb::found_id`], which was its id; or it is one that stays
    /// what it is.
    #[inline(always)]
    pub fn new(thread: &'static Tcb) -> Self {
        Self(thread)
    }

    /// The thread's id, which may have changed since the look-up.
    #[inline(always)]
    pub fn id(self) -> ThreadId {
        self.0.id()
    }

    /// The id with which a look-up finds the thread now; nil: its end has begun.
    #[inline(always)]
    pub fn found_id(self) -> ThreadId {
        self.0.found_id()
    }

    /// The thread's local id; 0 without UTCB.
    #[inline(always)]
    pub fn local_id(self) -> u64 {
        self.0.local_id.get()
    }

    /// The thread's space, if it still has one.
    #[inline(always)]
    pub fn space(self) -> Option<SpaceRef> {
        self.0.space.get()
    }

    /// Whether the thread's space is `space`.
    #[inline(always)]
    pub fn is_in(self, space: &Space) -> bool {
        self.0.space.get().is_some_and(|other| eq(other, space))
    }

    /// Whether the thread is in the space of `thread`.
    #[inline]
    pub fn shares_space_with(self, thread: impl Into<Found>) -> bool {
        self.0.shares_space_with(thread.into().0)
    }

    /// Whether this is `thread`.
    #[inline(always)]
    pub fn is(self, thread: impl Into<Found>) -> bool {
        eq(self.0, thread.into().0)
    }

    /// Whether the thread has one of these [`super::flag`]s.
    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.0.has(flag)
    }

    /// Sets a [`super::mark`].
    #[inline(always)]
    pub fn mark(self, mark: u8) {
        self.0.mark(mark);
    }

    /// Whether the thread is located at the executing processor.
    #[inline]
    pub fn is_here(self) -> bool {
        self.0.is_here()
    }

    /// The thread's home processor.
    #[inline]
    pub fn home(self) -> u16 {
        self.0.home()
    }

    /// Whether the executing processor is the thread's home processor.
    #[inline]
    pub fn is_home(self) -> bool {
        self.0.is_home()
    }

    /// The processor where the thread is located, or will be.
    #[inline]
    pub fn processor(self) -> u16 {
        self.0.location.processor()
    }

    /// The thread, if it is located at the executing processor, for as long as `entry` lasts.
    #[inline]
    pub fn here(self, _entry: &Entry) -> Option<Here<'_>> {
        self.0.is_here().then_some(Here(self.0, PhantomData))
    }

    /// The thread, if it is located at the executing processor: for steps of IPC, which end before
    /// anything else begins.
    #[inline(always)]
    pub fn if_here(self) -> Option<ThreadRef> {
        if self.0.is_here() { Some(self.0) } else { None }
    }

    /// `sender`, which is here, waits from now on in the queue of senders of the thread. The
    /// executing processor is the thread's home processor, which has that queue wherever the thread
    /// is.
    #[inline]
    pub fn queue_sender(self, sender: ThreadRef) {
        debug_assert!(self.is_home());
        self.0.senders.insert(self.0, sender);
    }

    /// The thread, wherever it is. The caller only keeps the reference or its address, or nothing
    /// else touches the thread meanwhile, wherever it is: each caller says why.
    #[inline(always)]
    pub fn anywhere(self) -> ThreadRef {
        self.0
    }

    /// The current thread goes to where the thread is, or soon will be, and does `continuation`
    /// there.
    #[cold]
    pub fn follow(self, current: ThreadRef, continuation: Continuation) -> Next {
        location::follow(current, self.0, continuation)
    }
}

impl From<ThreadRef> for Found {
    #[inline(always)]
    fn from(thread: ThreadRef) -> Self {
        Self::new(thread)
    }
}

/// A thread that is located at the executing processor, as long as the entry lasts and it is not
/// sent away: its state may be read and changed. The reference that it gives ends with it, so that
/// no handler keeps one.
pub struct Here<'entry>(ThreadRef, PhantomData<&'entry Entry>);

impl Here<'_> {
    /// The thread, for the queues of this processor and for what ends, moves or sends it: these
    /// belong to the processor as the thread does, and give it up before it goes.
    #[inline(always)]
    pub fn for_queues(&self) -> ThreadRef {
        self.0
    }
}

impl Deref for Here<'_> {
    type Target = Tcb;

    #[inline]
    fn deref(&self) -> &Tcb {
        self.0
    }
}

impl From<&Here<'_>> for Found {
    #[inline(always)]
    fn from(thread: &Here<'_>) -> Self {
        Self::new(thread.0)
    }
}
