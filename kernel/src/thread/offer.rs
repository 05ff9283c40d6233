//! What a waiting thread lets others see so that they reach it on the fast path (K10). One word
//! says which thread it waits for, and that nothing stands in the way of delivering that thread's
//! message and switching to it.

use x2::ThreadId;

use super::IpcKind;

/// The sender whose message a waiting thread takes on the fast path. It may take messages of
/// others, too, on the general path.
///
/// The upper bits, which no thread's id has, say what the thread waits for. The two highest are:
///
/// - 0: a message, without a timeout
/// - 1: a message, with a timeout
/// - 2: the answer to a page fault, or, if the third bit is set, to an exception
/// - 3: the answer to a foreign system call
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Offer(u64);

impl Offer {
    /// The thread accepts no message by the fast path: the general path decides.
    pub const NONE: Self = Self(0);
    /// The thread accepts a message of any sender, in an Ipc.
    pub const MESSAGE_FROM_ANY: Self = Self::message_from(ThreadId::ANY);
    /// The bit that is set when the thread waits for the answer to a page fault, not in an Ipc.
    pub const FAULT: u64 = 1 << 63;
    /// Tells the answer to an exception from messages; the lower of the two bits tells it from the
    /// answer to a page fault.
    pub const EXCEPTION: u64 = Self::FAULT | 1 << 61;
    /// Tells the answer to a foreign system call from that to a page fault.
    const CALL: u64 = 1 << 62;
    /// The bit that is set when the Ipc has a receive timeout.
    const TIMED: u64 = 1 << 62;
    /// The message of any sender, in an Ipc with a receive timeout.
    const TIMED_FROM_ANY: u64 = Self::TIMED;

    /// The thread accepts a message of `sender` (or anythread), in an Ipc.
    pub const fn message_from(sender: ThreadId) -> Self {
        Self(sender.raw())
    }

    /// The message of `sender` (or anythread), in an Ipc, until the waiting thread's receive
    /// deadline.
    pub const fn timed_message_from(sender: ThreadId) -> Self {
        Self(if sender.is_any() { Self::TIMED_FROM_ANY } else { sender.raw() | Self::TIMED })
    }

    /// Whether the wait ends at the thread's receive deadline, else not by itself.
    #[inline]
    pub const fn is_timed(self) -> bool {
        self.0 >> 62 == Self::TIMED >> 62
    }

    /// The answer of `handler`, a thread, to a foreign system call.
    pub const fn answer_of(handler: ThreadId) -> Self {
        Self(!handler.raw())
    }

    /// The answer of `pager`, a thread, to a page fault.
    pub const fn mapping_of(pager: ThreadId) -> Self {
        Self(pager.raw() | Self::FAULT)
    }

    /// The thread accepts the answer of `handler`, a thread, to an exception.
    pub const fn registers_of(handler: ThreadId) -> Self {
        Self(handler.raw() | Self::EXCEPTION)
    }

    /// The IPC in whose receive phase the thread waits; none for [`Offer::NONE`].
    #[inline]
    pub const fn kind(self) -> Option<IpcKind> {
        Some(match self.0 {
            0 => return None,
            raw if raw & Self::FAULT == 0 || raw == Self::MESSAGE_FROM_ANY.0 => IpcKind::User,
            raw if raw & Self::CALL != 0 => IpcKind::SystemCall,
            raw if raw & Self::EXCEPTION == Self::EXCEPTION => IpcKind::Exception,
            _ => IpcKind::PageFault,
        })
    }

    /// Whether a thread that waits so has come by SYSCALL, and goes on as after one; none for
    /// [`Offer::NONE`].
    #[inline]
    pub fn returns_by_sysret(self) -> Option<bool> {
        self.kind().map(|kind| !matches!(kind, IpcKind::PageFault | IpcKind::Exception))
    }

    /// The thread that the thread waits for, if it waits.
    #[inline]
    pub const fn partner(self) -> ThreadId {
        ThreadId::from_raw(match self.0 {
            raw if raw >> 62 == 0 || raw == Self::MESSAGE_FROM_ANY.0 => raw,
            Self::TIMED_FROM_ANY => return ThreadId::ANY,
            raw if raw & Self::FAULT == 0 => raw & !Self::TIMED,
            raw if raw & Self::CALL != 0 => !raw,
            raw => raw & !Self::EXCEPTION,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_says_what_its_thread_waits_for() {
        assert_eq!(Offer::NONE.kind(), None);
        for (offer, timed) in
            [(Offer::MESSAGE_FROM_ANY, false), (Offer::timed_message_from(ThreadId::ANY), true)]
        {
            assert_eq!(
                (offer.kind(), offer.partner(), offer.is_timed()),
                (Some(IpcKind::User), ThreadId::ANY, timed)
            );
        }
        for number in [1, 5, (1 << 18) - 1] {
            let thread = ThreadId::global(number, 7).expect("a thread's");
            for (offer, kind, timed) in [
                (Offer::message_from(thread), IpcKind::User, false),
                (Offer::timed_message_from(thread), IpcKind::User, true),
                (Offer::answer_of(thread), IpcKind::SystemCall, false),
                (Offer::mapping_of(thread), IpcKind::PageFault, false),
                (Offer::registers_of(thread), IpcKind::Exception, false),
            ] {
                assert_eq!((offer.kind(), offer.partner(), offer.is_timed()), (Some(kind), thread, timed));
            }
        }
    }
}
