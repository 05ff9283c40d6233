//! Redirection: a space whose threads send to a redirector what would leave it (X.2 rules 6.7 to 6.19).

use x2::ThreadId;

use super::Space;
use crate::sync::SharedWord;
use crate::thread::ThreadRef;
use crate::thread::table::threads;

/// Where a space's messages to others go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirector {
    /// To whom they are for.
    None,
    /// To the thread with this id.
    Thread(ThreadId),
    /// To a thread that no longer exists: they wait (X.2 rule 6.15).
    Gone,
}

const NONE: u64 = 0;
/// No thread's id.
const GONE: u64 = u64::MAX;

/// A space's redirector: its id or one of the above.
pub struct Redirection(SharedWord);

impl Redirection {
    pub(super) const fn new() -> Self {
        Self(SharedWord::new(NONE))
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
    pub fn redirector(&self) -> Option<ThreadRef> {
        match self.redirection.get() {
            Redirector::Thread(id) => threads().find(id),
            Redirector::None | Redirector::Gone => None,
        }
    }

    /// Sets the redirector, a thread's global id, or `None` for none. Returns whether it was another: then who waits to send
    /// must be told ([`crate::thread::ipc::redirector_changes`]).
    pub fn set_redirector(&'static self, redirector: Option<ThreadId>) -> bool {
        let word = redirector.map_or(NONE, ThreadId::raw);
        let changed = self.redirection.0.get() != word;
        self.redirection.0.set(word);
        self.tell_entry_code();
        changed
    }

    /// The thread with this id has gone, or has another id now. Nil stands for one that has only moved: it is no redirector's, but
    /// the word of a space that has none.
    pub fn forget_redirector(&self, id: ThreadId) {
        if !id.is_nil() {
            // One step: on another processor SpaceControl may be setting another.
            self.redirection.0.change_from(id.raw(), GONE);
        }
    }
}
