//! IPC for messages of up to seven untyped words that never touch memory: they travel in processor
//! registers from the sender's variables to the receiver's (thesis on L4/Darwin, chapter 9: most
//! messages are that small).
//!
//! The message registers 1..=7 in the UTCB are not touched. A received message with more words has
//! the rest there, from MR8 on.

use crate::{ipc, syscall, utcb};
use x2::{MessageTag, ThreadId, Time, Timeouts};

/// Words of a register message: MR1 ..= MR7.
pub const WORDS: usize = 7;

/// A message in registers: tag and MR1 ..= MR7.
pub type RegisterMessage = (MessageTag, [u64; WORDS]);

/// The general form; see [`ipc::ipc`]. May block.
#[inline(always)]
pub fn ipc(
    to: ThreadId,
    from_specifier: ThreadId,
    timeouts: Timeouts,
    message: RegisterMessage,
) -> ipc::Result<(ThreadId, RegisterMessage)> {
    let (from, (tag, words)) = exchange(to, from_specifier, timeouts, message);
    if tag.is_error() {
        return Err(ipc::last_error());
    }
    Ok((from, (tag, words)))
}

/// As [`ipc`]; whether it has failed, the tag says.
#[inline(always)]
pub(crate) fn exchange(
    to: ThreadId,
    from_specifier: ThreadId,
    timeouts: Timeouts,
    (tag, words): RegisterMessage,
) -> (ThreadId, RegisterMessage) {
    let [a, b, c, d, e, f, g] = words;
    let registers = [tag.raw(), a, b, c, d, e, f, g];
    // SAFETY: the UTCB pointer is this thread's; the code that set the buffer registers answers for
    // the receive window.
    let (from, [tag, a, b, c, d, e, f, g]) =
        unsafe { syscall::ipc(to.raw(), from_specifier.raw(), timeouts.raw(), registers, utcb::pointer()) };
    (ThreadId::from_raw(from), (MessageTag::from_raw(tag), [a, b, c, d, e, f, g]))
}

/// Sends to `to` and receives its answer.
#[inline(always)]
pub fn call(to: ThreadId, message: RegisterMessage) -> ipc::Result<RegisterMessage> {
    ipc(to, to, Timeouts::NEVER, message).map(|(_, answer)| answer)
}

/// Sends to `to`, waiting as long as it takes.
#[inline(always)]
pub fn send(to: ThreadId, message: RegisterMessage) -> ipc::Result<()> {
    ipc(to, ThreadId::NIL, Timeouts::NEVER, message).map(drop)
}

/// Receives from `from`, waiting as long as it takes.
#[inline(always)]
pub fn receive(from: ThreadId) -> ipc::Result<(ThreadId, RegisterMessage)> {
    ipc(ThreadId::NIL, from, Timeouts::NEVER, (MessageTag::EMPTY, [0; WORDS]))
}

/// Replies to `to` without waiting for it, then receives from any thread.
#[inline(always)]
pub fn reply_wait(to: ThreadId, message: RegisterMessage) -> ipc::Result<(ThreadId, RegisterMessage)> {
    ipc(to, ThreadId::ANY, Timeouts::new(Time::ZERO, Time::NEVER), message)
}
