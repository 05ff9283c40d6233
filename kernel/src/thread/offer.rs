//! What a waiting thread lets others see so that they reach it on the fast path (K10): in one word, whose message it
//! takes, and that nothing stands in the way of delivering that and switching to it.

use x2::ThreadId;

/// Whose message a waiting thread takes on the fast path. It may take others' too, on the general path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Offer(u64);

impl Offer {
    /// Nobody's.
    pub const NONE: Self = Self(0);
    /// Anybody's, in an Ipc.
    pub const MESSAGE_FROM_ANY: Self = Self::message_from(ThreadId::ANY);

    /// That of `sender` (or anythread), in an Ipc.
    pub const fn message_from(sender: ThreadId) -> Self {
        Self(sender.raw())
    }

    /// The answer of `handler`, a thread, to a foreign system call. (No thread has the complement of a thread's id:
    /// the upper bits of a thread number are zero.)
    pub const fn answer_of(handler: ThreadId) -> Self {
        Self(!handler.raw())
    }

    /// The word, for entry code.
    pub const fn raw(self) -> u64 {
        self.0
    }
}
