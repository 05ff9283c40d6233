//! Redirection: a space whose threads send to a redirector what would leave it (X.2 rules 6.7 to
//! 6.19).

use x2::ThreadId;

use super::Space;
use super::redirector_word::{GONE, NONE, RedirectorWord};
use crate::thread::Found;
use crate::thread::table::threads;

/// The destination of messages that a space sends to others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirector {
    /// Messages go to the thread that they are for.
    None,
    /// Messages go to the thread with this id.
    Thread(ThreadId),
    /// Messages would go to a thread that no longer exists: their senders wait (X.2 rule 6.15).
    Gone,
}

/// A space's redirector.
pub struct Redirection(RedirectorWord);

impl Redirection {
    pub(super) const fn new() -> Self {
        Self(RedirectorWord::new())
    }

    pub(super) fn is_on(&self) -> bool {
        self.0.get() != NONE
    }

    fn get(&self) -> Redirector {
        match self.0.get() {
            NONE => Redirector::None,
            GONE => Redirector::Gone,
            id => Redirector::Thread(ThreadId::from_raw(id)),
        }
    }
}

impl Space {
    /// Whether messages that leave the space go to a redirector.
    #[inline]
    pub fn is_redirected(&self) -> bool {
        self.redirection.is_on()
    }

    /// The redirector, while it exists.
    pub fn redirector(&self) -> Option<Found> {
        match self.redirection.get() {
            Redirector::Thread(id) => threads().find(id),
            Redirector::None | Redirector::Gone => None,
        }
    }

    /// Sets the redirector, a thread's global id, or `None` for none. Returns whether it was
    /// another: then threads that wait to send must be told
    /// ([`crate::thread::ipc::redirector_changes`]).
    pub fn set_redirector(&'static self, redirector: Option<ThreadId>) -> bool {
        let changed = self.redirection.0.set(redirector.map_or(NONE, ThreadId::raw));
        self.update_entry_words();
        changed
    }

    /// The thread with this id has gone, or has another id now. Nil stands for one that has only
    /// moved: it is no redirector's, but the word of a space that has none.
    pub fn forget_redirector(&self, id: ThreadId) {
        if !id.is_nil() {
            self.redirection.0.forget(id.raw());
        }
    }
}
