//! IPC with messages in the message registers (X.2 rules 7.1-7.20).
//!
//! A received message stays in the message registers until the thread's next IPC; [`Received`]
//! reads it there.

use crate::{syscall, utcb};
use x2::message::REGISTER_MESSAGE_REGISTERS;
use x2::{IpcError, IpcErrorKind, IpcPhase, MapItem, MessageTag, ThreadId, Time, Timeouts};

/// A message under construction: written directly into the message registers, so there is one at a
/// time per thread.
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

    /// A message with this tag, whose words are in the message registers already.
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

    /// Sends in the name of `originator` where that is allowed (X.2 rule 7.14).
    pub fn propagated_for(self, originator: ThreadId) -> Self {
        utcb::set_virtual_sender(originator);
        Self { tag: self.tag.with_propagated(true) }
    }

    /// The tag so far.
    pub fn tag(&self) -> MessageTag {
        self.tag
    }
}

/// A received message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The sender: local id if it is of this space, else global id; nil when there was no receive
    /// phase.
    pub from: ThreadId,
    /// The tag.
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

/// Result of an IPC.
pub type Result<T> = core::result::Result<T, IpcError>;

/// The general form. Without a send phase (`to` nil) the tag is ignored; without a receive phase
/// (`from_specifier` nil) the result is the empty message from nil. May block.
#[inline]
pub fn ipc(to: ThreadId, from_specifier: ThreadId, timeouts: Timeouts, tag: MessageTag) -> Result<Received> {
    through(syscall::ipc, to, from_specifier, timeouts, tag)
}

/// [`ipc`] through the Lipc entry.
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
    // SAFETY: the UTCB pointer is this thread's; the code that set the buffer registers answers for
    // the receive window.
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

/// The error of the failed IPC. A word that is no IPC error would be the kernel's mistake: it is
/// reported as an abort.
pub(crate) fn last_error() -> IpcError {
    utcb::ipc_error().unwrap_or(IpcError::new(IpcPhase::Receive, IpcErrorKind::Aborted))
}

/// Sends, waiting for the receiver as long as it takes.
pub fn send(to: ThreadId, message: Message) -> Result<()> {
    send_timeout(to, message, Time::NEVER)
}

/// Sends, waiting for the receiver up to `timeout`.
pub fn send_timeout(to: ThreadId, message: Message, timeout: Time) -> Result<()> {
    ipc(to, ThreadId::NIL, Timeouts::new(timeout, Time::NEVER), message.tag).map(drop)
}

/// Sends if the receiver waits for it right now: how servers reply.
pub fn reply(to: ThreadId, message: Message) -> Result<()> {
    send_timeout(to, message, Time::ZERO)
}

/// Receives from `from`, waiting as long as it takes.
pub fn receive(from: ThreadId) -> Result<Received> {
    receive_timeout(from, Time::NEVER)
}

/// Receives from `from`, waiting up to `timeout`.
pub fn receive_timeout(from: ThreadId, timeout: Time) -> Result<Received> {
    ipc(ThreadId::NIL, from, Timeouts::new(Time::NEVER, timeout), MessageTag::EMPTY)
}

/// Receives from any thread.
pub fn wait() -> Result<Received> {
    receive(ThreadId::ANY)
}

/// Sends to `to` and receives its answer.
pub fn call(to: ThreadId, message: Message) -> Result<Received> {
    call_timeouts(to, message, Timeouts::NEVER)
}

/// Sends to `to` and receives its answer, with timeouts.
pub fn call_timeouts(to: ThreadId, message: Message, timeouts: Timeouts) -> Result<Received> {
    ipc(to, to, timeouts, message.tag)
}

/// Replies to `to` without waiting for it, then receives from any thread. An error of the send
/// phase means that the receive phase has not taken place.
pub fn reply_wait(to: ThreadId, message: Message) -> Result<Received> {
    ipc(to, ThreadId::ANY, Timeouts::new(Time::ZERO, Time::NEVER), message.tag)
}

/// Sleeps for `time` (X.2 rule 7.5); never for ever only ends by ExchangeRegisters.
pub fn sleep(time: Time) {
    if time.is_zero() {
        return;
    }
    // An error ends the sleep: it only says that the time has passed, or that the sleep was
    // cancelled.
    let _ = receive_timeout(utcb::my_local_id(), time);
}
