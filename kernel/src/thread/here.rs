//! Threads as a look-up finds them, and threads that may be touched (K6, K12).
//!
//! A look-up finds a thread that may be at any processor, and that may go, or get another id, at any time: [`Found`], of which any
//! code may ask what is the same for all processors. Where the thread is located at the executing processor, the same look-up
//! makes it a thread that is [`Here`]: nothing else touches it until this processor sends it away or ends it. A second look-up of
//! the same id can find another thread, or one that the first did not find: a call looks its target up once, and works on that.

use core::marker::PhantomData;
use core::ops::Deref;

use super::{Continuation, Tcb, ThreadRef, location};
use crate::scheduler::Next;
use crate::space::SpaceRef;

/// One entry into the kernel, in which its processor does nothing else. It holds nothing; what is borrowed from it ends with it.
pub struct Entry(PhantomData<*const ()>);

impl Entry {
    /// The entry that a handler, which runs to its end in one go, belongs to.
    pub fn of_handler() -> Self {
        Self(PhantomData)
    }
}

/// What a look-up has found: a thread that had the id then, wherever it is.
#[derive(Clone, Copy)]
pub struct Found(&'static Tcb);

impl Found {
    /// `thread` has just been found by [`Tcb::found_id`], which was its id.
    #[inline]
    pub fn new(thread: &'static Tcb) -> Self {
        Self(thread)
    }

    /// Its space, if it still has one.
    #[inline]
    pub fn space(self) -> Option<SpaceRef> {
        self.0.space.get()
    }

    /// The thread, if it is located at the executing processor.
    #[inline]
    pub fn here(self, _entry: &Entry) -> Option<Here<'_>> {
        self.0.is_here().then_some(Here(self.0, PhantomData))
    }

    /// The current thread goes to where the thread is, or soon will be, and does `continuation` there.
    #[cold]
    pub fn follow(self, current: ThreadRef, continuation: Continuation) -> Next {
        location::follow(current, self.0, continuation)
    }
}

/// A thread that is located at the executing processor, as long as the entry lasts and it is not sent away: its state may be read
/// and changed.
pub struct Here<'entry>(ThreadRef, PhantomData<&'entry Entry>);

impl Deref for Here<'_> {
    type Target = ThreadRef;

    #[inline]
    fn deref(&self) -> &ThreadRef {
        &self.0
    }
}
