//! The transport of direct IPC for the stubs of interfaces: the calling thread's message registers
//! and IPC.

use crate::ipc;
use crate::registers::{self, RegisterMessage};
use crate::utcb;
use direct::{Registers, Reply, Transport};
use x2::extension::ACCEPT_NOTIFICATION;
use x2::message::BUFFER_REGISTERS;
use x2::{
    Acceptor, Fpage, IpcError, IpcErrorKind, IpcPhase, MessageTag, StringDescriptor, ThreadId, Time, Timeouts,
};

/// How many message registers a register message has: MR0 ..= MR7.
const HERE: usize = registers::WORDS + 1;

/// The calling thread's message registers and IPC. From the first word of a request until the call,
/// no other code may use the message registers.
#[derive(Clone, Copy, Debug)]
pub struct Direct {
    words: [u64; HERE],
    /// How long a call may take.
    patience: Timeouts,
    /// What BR0 says of notifications.
    notifications: u64,
}

impl Default for Direct {
    #[inline(always)]
    fn default() -> Direct {
        Direct { words: [0; HERE], patience: Timeouts::NEVER, notifications: 0 }
    }
}

impl Registers for Direct {
    #[inline(always)]
    fn register(&self, index: usize) -> u64 {
        if index < HERE { self.words[index] } else { utcb::message_register(index) }
    }

    #[inline(always)]
    fn set_register(&mut self, index: usize, word: u64) {
        if index < HERE { self.words[index] = word } else { utcb::set_message_register(index, word) }
    }
}

impl Transport for Direct {
    #[inline(always)]
    fn call(
        &mut self,
        to: ThreadId,
        tag: MessageTag,
        strings: &[&[u8]],
        rooms: &mut [&mut [u8]],
    ) -> Result<MessageTag, IpcError> {
        let tag = self.with_strings(tag, strings);
        let received = self.accepting(rooms, |this| this.ipc(to, to, this.patience, tag));
        received.map(|(_, tag)| tag)
    }

    #[inline(always)]
    fn send(&mut self, to: ThreadId, tag: MessageTag, strings: &[&[u8]]) -> Result<(), IpcError> {
        let tag = self.with_strings(tag, strings);
        self.ipc(to, ThreadId::NIL, Timeouts::NEVER, tag).map(drop)
    }
}

impl Direct {
    /// The registers of a thread that accepts notifications, which receiving strings leaves so.
    #[inline(always)]
    pub fn notified() -> Direct {
        Direct { notifications: ACCEPT_NOTIFICATION, ..Direct::default() }
    }

    /// Limits the time of each phase of a call.
    #[inline(always)]
    pub fn within(self, time: Time) -> Direct {
        Direct { patience: Timeouts::new(time, time), ..self }
    }

    /// Receives a request from any thread, and blocks until there is one. String items are received
    /// into `rooms`.
    ///
    /// # Errors
    /// The IPC has failed.
    #[inline(always)]
    pub fn wait(&mut self, rooms: &mut [&mut [u8]]) -> ipc::Result<(ThreadId, MessageTag)> {
        self.wait_for(rooms, Time::NEVER)
    }

    /// Receives a request as [`wait`](Self::wait) does, but for so long at most.
    ///
    /// # Errors
    /// `Timeout`: there was none. Otherwise the IPC has failed.
    #[inline(always)]
    pub fn wait_for(
        &mut self,
        rooms: &mut [&mut [u8]],
        receive: Time,
    ) -> ipc::Result<(ThreadId, MessageTag)> {
        let timeouts = Timeouts::new(Time::NEVER, receive);
        self.accepting(rooms, |this| this.ipc(ThreadId::NIL, ThreadId::ANY, timeouts, MessageTag::EMPTY))
    }

    /// Sends the message in the registers to `to` without blocking, then receives the next request
    /// as [`wait`](Self::wait) does.
    ///
    /// # Errors
    /// The IPC has failed. If the send phase has failed, nothing was received.
    #[inline(always)]
    pub fn reply_wait(
        &mut self,
        to: ThreadId,
        reply: &Reply<'_>,
        rooms: &mut [&mut [u8]],
    ) -> ipc::Result<(ThreadId, MessageTag)> {
        self.reply_wait_for(to, reply, rooms, Time::NEVER)
    }

    /// Sends the message in the registers as [`reply_wait`](Self::reply_wait) does, and receives
    /// the next request for so long at most.
    ///
    /// # Errors
    /// `Timeout` in the receive phase: there was none. Otherwise the IPC has failed. If the send
    /// phase has failed, nothing was received.
    #[inline(always)]
    pub fn reply_wait_for(
        &mut self,
        to: ThreadId,
        reply: &Reply<'_>,
        rooms: &mut [&mut [u8]],
        receive: Time,
    ) -> ipc::Result<(ThreadId, MessageTag)> {
        let tag = self.with_strings(reply.tag, reply.strings());
        let timeouts = Timeouts::new(Time::ZERO, receive);
        self.accepting(rooms, |this| this.ipc(to, ThreadId::ANY, timeouts, tag))
    }

    /// Sends the message in the registers to `to` without blocking.
    ///
    /// # Errors
    /// The IPC has failed; it fails if `to` is not waiting for the message.
    #[inline]
    pub fn reply(&mut self, to: ThreadId, tag: MessageTag) -> ipc::Result<()> {
        self.ipc(to, ThreadId::NIL, Timeouts::new(Time::ZERO, Time::NEVER), tag).map(drop)
    }

    #[inline(always)]
    fn ipc(
        &mut self,
        to: ThreadId,
        from_specifier: ThreadId,
        timeouts: Timeouts,
        tag: MessageTag,
    ) -> ipc::Result<(ThreadId, MessageTag)> {
        let [_, a, b, c, d, e, f, g] = self.words;
        let message: RegisterMessage = (tag, [a, b, c, d, e, f, g]);
        let (from, (tag, words)) = registers::exchange(to, from_specifier, timeouts, message);
        // The received words replace the earlier ones after an error, too: to restore these, they
        // would have to be saved.
        let [a, b, c, d, e, f, g] = words;
        self.words = [tag.raw(), a, b, c, d, e, f, g];
        if tag.is_error() { Err(ipc::last_error()) } else { Ok((from, tag)) }
    }

    /// The message in the registers, with these string items appended.
    #[inline(always)]
    fn with_strings(&mut self, tag: MessageTag, strings: &[&[u8]]) -> MessageTag {
        strings.iter().fold(tag, |tag, string| {
            let descriptor = StringDescriptor::new(string.len() as u64, 1, false);
            self.set_register(tag.end(), descriptor.raw());
            self.set_register(tag.end() + 1, string.as_ptr() as u64);
            tag.with_words(tag.untyped(), tag.typed() + 2)
        })
    }

    /// Receives words, and strings into `rooms`; mappings are not accepted.
    #[inline(always)]
    fn accepting<T>(
        &mut self,
        rooms: &mut [&mut [u8]],
        receive: impl FnOnce(&mut Self) -> ipc::Result<T>,
    ) -> ipc::Result<T> {
        if rooms.is_empty() {
            return receive(self);
        }
        if rooms.len() * 2 >= BUFFER_REGISTERS {
            return Err(IpcError::new(IpcPhase::Receive, IpcErrorKind::MessageOverflow));
        }
        let last = rooms.len() - 1;
        for (index, room) in rooms.iter_mut().enumerate() {
            let descriptor = StringDescriptor::new(room.len() as u64, 1, false).with_continues(index < last);
            // SAFETY: the buffers are borrowed until the end of this function, which ends the
            // permission to receive strings.
            unsafe {
                utcb::set_buffer_register(1 + 2 * index, descriptor.raw());
                utcb::set_buffer_register(2 + 2 * index, room.as_mut_ptr() as u64);
            }
        }
        let accepted = Acceptor::new(Fpage::NIL, true).raw() | self.notifications;
        // SAFETY: the buffers are borrowed until the end of this function; the window for pages is
        // empty.
        unsafe { utcb::accept(Acceptor::from_raw(accepted)) };
        let received = receive(self);
        // SAFETY: neither pages nor strings are accepted.
        unsafe { utcb::accept(Acceptor::from_raw(self.notifications)) };
        received
    }
}
