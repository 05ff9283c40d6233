//! Redirection: a space whose threads send to a redirector what would leave it (X.2 rules 6.7 to 6.19).

use core::cell::Cell;

use x2::ThreadId;

use super::Space;
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

/// A space's redirector. Like the space's other cells, changed by one SpaceControl or ThreadControl at a time.
pub struct Redirection(Cell<Redirector>);

impl Redirection {
    pub(super) const fn new() -> Self {
        Self(Cell::new(Redirector::None))
    }

    pub(super) fn is_on(&self) -> bool {
        self.0.get() != Redirector::None
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
        match self.redirection.0.get() {
            Redirector::Thread(id) => threads().find(id),
            Redirector::None | Redirector::Gone => None,
        }
    }

    /// Sets the redirector, a thread's global id, or `None` for none. Who waits to send must be told
    /// ([`crate::thread::ipc::redirector_changes`]).
    pub fn set_redirector(&self, redirector: Option<ThreadId>) {
        self.redirection.0.set(redirector.map_or(Redirector::None, Redirector::Thread));
        self.tell_entry_code();
    }

    /// The thread with this id has gone, or has another id now.
    pub fn forget_redirector(&self, id: ThreadId) {
        if self.redirection.0.get() == Redirector::Thread(id) {
            self.redirection.0.set(Redirector::Gone);
        }
    }
}
