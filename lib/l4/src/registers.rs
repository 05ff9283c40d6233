//! IPC for messages of up to seven untyped words that are passed in processor registers, from the
//! sender's variables to the receiver's, without accesses to memory. Most messages are that small.
//!
//! Message registers 1..=7 in the UTCB are not used. If a received message has more words, the
//! others are there, from MR8 on.

use crate::{ipc, syscall, utcb};
use x2::{MessageTag, ThreadId, Time, Timeouts};

/// How many words a register message has: MR1 ..= MR7.
pub const WORDS: usize = 7;

/// A message in registers: the tag and MR1 ..= MR7.
pub type RegisterMessage = (MessageTag, [u64; WORDS]);

/// Sends and receives a register message like [`ipc::ipc`]. May block.
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

/// Sends and receives as [`ipc()`] does. If the IPC fails, the returned tag has the error flag.
#[inline(always)]
pub(crate) fn exchange(
    to: ThreadId,
    from_specifier: ThreadId,
    timeouts: Timeouts,
    (tag, words): RegisterMessage,
) -> (ThreadId, RegisterMessage) {
    let [a, b, c, d, e, f, g] = words;
    let registers = [tag.raw(), a, b, c, d, e, f, g];
    // SAFETY: the UTCB pointer is this thread's. The code that has set the buffer registers is
    // responsible for the receive window.
    let (from, [tag, a, b, c, d, e, f, g]) =
        unsafe { syscall::ipc(to.raw(), from_specifier.raw(), timeouts.raw(), registers, utcb::pointer()) };
    (ThreadId::from_raw(from), (MessageTag::from_raw(tag), [a, b, c, d, e, f, g]))
}

/// Sends a message to `to` and receives the answer. Blocks without a timeout.
#[inline(always)]
pub fn call(to: ThreadId, message: RegisterMessage) -> ipc::Result<RegisterMessage> {
    ipc(to, to, Timeouts::NEVER, message).map(|(_, answer)| answer)
}

/// Sends a message to `to`. Blocks until the receiver has taken it.
#[inline(always)]
pub fn send(to: ThreadId, message: RegisterMessage) -> ipc::Result<()> {
    ipc(to, ThreadId::NIL, Timeouts::NEVER, message).map(drop)
}

/// Receives a message from `from`. Blocks until there is one.
#[inline(always)]
pub fn receive(from: ThreadId) -> ipc::Result<(ThreadId, RegisterMessage)> {
    ipc(ThreadId::NIL, from, Timeouts::NEVER, (MessageTag::EMPTY, [0; WORDS]))
}

/// Replies to `to` without blocking, then receives from any thread and blocks until there is a
/// message.
#[inline(always)]
pub fn reply_wait(to: ThreadId, message: RegisterMessage) -> ipc::Result<(ThreadId, RegisterMessage)> {
    ipc(to, ThreadId::ANY, Timeouts::new(Time::ZERO, Time::NEVER), message)
}
