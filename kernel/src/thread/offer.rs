//! What a waiting thread lets others see so that they reach it on the fast path (K10): in one word, whom it waits for, and
//! that nothing stands in the way of delivering that one's message and switching to it.

use x2::ThreadId;

use super::IpcKind;

/// Whose message a waiting thread takes on the fast path. It may take others' too, on the general path.
///
/// The two upper bits say in which IPC (no thread's id has them): 0 in an Ipc, 3 for the answer to a foreign system call,
/// 2 for that to a page fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Offer(u64);

impl Offer {
    /// Nobody's.
    pub const NONE: Self = Self(0);
    /// Anybody's, in an Ipc.
    pub const MESSAGE_FROM_ANY: Self = Self::message_from(ThreadId::ANY);
    /// Tells the answer to a page fault from messages.
    const FAULT: u64 = 1 << 63;
    /// Tells the answer to a foreign system call from that to a page fault.
    const CALL: u64 = 1 << 62;

    /// That of `sender` (or anythread), in an Ipc.
    pub const fn message_from(sender: ThreadId) -> Self {
        Self(sender.raw())
    }

    /// The answer of `handler`, a thread, to a foreign system call.
    pub const fn answer_of(handler: ThreadId) -> Self {
        Self(!handler.raw())
    }

    /// The answer of `pager`, a thread, to a page fault.
    pub const fn mapping_of(pager: ThreadId) -> Self {
        Self(pager.raw() | Self::FAULT)
    }

    /// The IPC in whose receive phase the thread waits, and for whom.
    #[inline]
    pub const fn wait(self) -> Option<(IpcKind, ThreadId)> {
        Some(match self.0 {
            0 => return None,
            raw if raw & Self::FAULT == 0 || raw == Self::MESSAGE_FROM_ANY.0 => {
                (IpcKind::User, ThreadId::from_raw(raw))
            }
            raw if raw & Self::CALL != 0 => (IpcKind::SystemCall, ThreadId::from_raw(!raw)),
            raw => (IpcKind::PageFault, ThreadId::from_raw(raw & !Self::FAULT)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_says_what_its_thread_waits_for() {
        assert_eq!(Offer::NONE.wait(), None);
        assert_eq!(Offer::MESSAGE_FROM_ANY.wait(), Some((IpcKind::User, ThreadId::ANY)));
        for number in [1, 5, (1 << 18) - 1] {
            let thread = ThreadId::global(number, 7).expect("a thread's");
            assert_eq!(Offer::message_from(thread).wait(), Some((IpcKind::User, thread)));
            assert_eq!(Offer::answer_of(thread).wait(), Some((IpcKind::SystemCall, thread)));
            assert_eq!(Offer::mapping_of(thread).wait(), Some((IpcKind::PageFault, thread)));
        }
    }
}
