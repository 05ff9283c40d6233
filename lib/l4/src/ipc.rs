//! IPC with messages in the message registers (X.2 rules 7.1-7.20).
//!
//! A received message stays in the message registers until the thread's next IPC; [`Received`]
//! reads it there.

use crate::{syscall, utcb};
use x2::message::REGISTER_MESSAGE_REGISTERS;
use x2::{IpcError, IpcErrorKind, IpcPhase, MapItem, MessageTag, ThreadId, Time, Timeouts};

/// A message that is being built. Its words are written directly into the message registers, so a
/// thread has one at a time.
#[derive(Debug)]
#[must_use]
pub struct Message {
    tag: MessageTag,
}

impl Message {
    /// An empty message with `label` (48 bits).
    pub fn new(label: u64) -> Self {
        Self { tag: MessageTag::new(label, 0, 0) }
    }

    /// A message with this tag, whose words have been written into the message registers before.
    pub fn in_registers(tag: MessageTag) -> Self {
        Self { tag }
    }

    /// A message with `label` and untyped `words` (up to 63).
    pub fn with_words(label: u64, words: &[u64]) -> Self {
        words.iter().fold(Self::new(label), |message, &word| message.word(word))
    }

    /// Adds an untyped word. Panics after a typed item and when the registers are full.
    pub fn word(self, word: u64) -> Self {
        assert!(self.tag.typed() == 0, "untyped words come before typed items");
        utcb::set_message_register(self.tag.end(), word);
        Self { tag: self.tag.with_words(self.tag.untyped() + 1, 0) }
    }

    /// Adds a map or grant item. Panics when the registers are full.
    pub fn map_item(self, item: MapItem) -> Self {
        self.typed_words(&item.to_words(false))
    }

    /// Adds the words of any typed item.
    pub fn typed_words(self, words: &[u64]) -> Self {
        let end = self.tag.end();
        for (index, &word) in words.iter().enumerate() {
            utcb::set_message_register(end + index, word);
        }
        Self { tag: self.tag.with_words(self.tag.untyped(), self.tag.typed() + words.len()) }
    }

    /// Sends the message in the name of `originator`, where that is allowed (X.2 rule 7.14).
    pub fn propagated_for(self, originator: ThreadId) -> Self {
        utcb::set_virtual_sender(originator);
        Self { tag: self.tag.with_propagated(true) }
    }

    /// The tag of the message as built so far.
    pub fn tag(&self) -> MessageTag {
        self.tag
    }
}

/// A received message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The sender: a local id if it lives in the caller's space, otherwise a global id; nil if
    /// there was no receive phase.
    pub from: ThreadId,
    /// The tag of the message.
    pub tag: MessageTag,
}

impl Received {
    /// Untyped word `index`, counted from 0 (MR1). Panics if the message is shorter.
    pub fn word(&self, index: usize) -> u64 {
        assert!(index < self.tag.untyped(), "the message has no such word");
        utcb::message_register(1 + index)
    }

    /// The untyped words.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        (1..=self.tag.untyped()).map(utcb::message_register)
    }

    /// The map or grant item whose first word is typed word `index`, counted from 0.
    pub fn map_item(&self, index: usize) -> Option<MapItem> {
        if index + 2 > self.tag.typed() {
            return None;
        }
        let at = 1 + self.tag.untyped() + index;
        MapItem::from_words([utcb::message_register(at), utcb::message_register(at + 1)])
    }
}

/// The result of an IPC.
pub type Result<T> = core::result::Result<T, IpcError>;

/// Sends and receives: a send phase to `to` unless that is nil, then a receive phase from
/// `from_specifier` unless that is nil. Without a send phase the tag is ignored; without a receive
/// phase the result is an empty message from nil. May block.
#[inline]
pub fn ipc(to: ThreadId, from_specifier: ThreadId, timeouts: Timeouts, tag: MessageTag) -> Result<Received> {
    through(syscall::ipc, to, from_specifier, timeouts, tag)
}

/// Sends and receives like [`ipc`], through the Lipc entry.
#[inline]
pub fn lipc(to: ThreadId, from_specifier: ThreadId, timeouts: Timeouts, tag: MessageTag) -> Result<Received> {
    through(syscall::lipc, to, from_specifier, timeouts, tag)
}

type Stub = unsafe fn(u64, u64, u64, syscall::MessageRegisters, u64) -> (u64, syscall::MessageRegisters);

#[inline(always)]
fn through(
    stub: Stub,
    to: ThreadId,
    from_specifier: ThreadId,
    timeouts: Timeouts,
    tag: MessageTag,
) -> Result<Received> {
    let mut registers = [tag.raw(); REGISTER_MESSAGE_REGISTERS];
    for (index, register) in registers.iter_mut().enumerate().skip(1) {
        *register = utcb::message_register(index);
    }
    // SAFETY: the UTCB pointer is this thread's. The code that has set the buffer registers is
    // responsible for the receive window.
    let (from, registers) =
        unsafe { stub(to.raw(), from_specifier.raw(), timeouts.raw(), registers, utcb::pointer()) };
    for (index, &register) in registers.iter().enumerate() {
        utcb::set_message_register(index, register);
    }
    let tag = MessageTag::from_raw(registers[0]);
    if tag.is_error() {
        return Err(last_error());
    }
    let from = if from_specifier.is_nil() { ThreadId::NIL } else { ThreadId::from_raw(from) };
    Ok(Received { from, tag })
}

/// The error of the failed IPC. A word that is not an IPC error can only be a fault of the kernel:
/// it is reported as an abort.
pub(crate) fn last_error() -> IpcError {
    utcb::ipc_error().unwrap_or(IpcError::new(IpcPhase::Receive, IpcErrorKind::Aborted))
}

/// Sends a message. Blocks until the receiver has taken it.
pub fn send(to: ThreadId, message: Message) -> Result<()> {
    send_timeout(to, message, Time::NEVER)
}

/// Sends a message. Blocks up to `timeout` until the receiver has taken it.
pub fn send_timeout(to: ThreadId, message: Message, timeout: Time) -> Result<()> {
    ipc(to, ThreadId::NIL, Timeouts::new(timeout, Time::NEVER), message.tag).map(drop)
}

/// Sends a message without blocking, as servers reply. It is an error if the receiver is not
/// waiting for it.
pub fn reply(to: ThreadId, message: Message) -> Result<()> {
    send_timeout(to, message, Time::ZERO)
}

/// Receives a message from `from`. Blocks until there is one.
pub fn receive(from: ThreadId) -> Result<Received> {
    receive_timeout(from, Time::NEVER)
}

/// Receives a message from `from`. Blocks up to `timeout` until there is one.
pub fn receive_timeout(from: ThreadId, timeout: Time) -> Result<Received> {
    ipc(ThreadId::NIL, from, Timeouts::new(Time::NEVER, timeout), MessageTag::EMPTY)
}

/// Receives a message from any thread. Blocks until there is one.
pub fn wait() -> Result<Received> {
    receive(ThreadId::ANY)
}

/// Sends a message to `to` and receives the answer. Blocks without a timeout.
pub fn call(to: ThreadId, message: Message) -> Result<Received> {
    call_timeouts(to, message, Timeouts::NEVER)
}

/// Sends a message to `to` and receives the answer. Blocks up to these timeouts.
pub fn call_timeouts(to: ThreadId, message: Message, timeouts: Timeouts) -> Result<Received> {
    ipc(to, to, timeouts, message.tag)
}

/// Replies to `to` without blocking, then receives from any thread and blocks until there is a
/// message. After an error of the send phase there was no receive phase.
pub fn reply_wait(to: ThreadId, message: Message) -> Result<Received> {
    ipc(to, ThreadId::ANY, Timeouts::new(Time::ZERO, Time::NEVER), message.tag)
}

/// Sleeps for `time` (X.2 rule 7.5). A sleep without end is ended only by ExchangeRegisters.
pub fn sleep(time: Time) {
    if time.is_zero() {
        return;
    }
    // The receive always ends with an error: the time has passed, or the sleep was cancelled.
    let _ = receive_timeout(utcb::my_local_id(), time);
}
