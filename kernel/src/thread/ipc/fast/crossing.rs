//! The fast path between processors: calls and answers of untyped words, without receive timeouts, between threads that live at
//! different processors. A call goes to where its receiver is and finds it waiting; the answer lets the caller go home.
//!
//! Each step does what the general path would, without what cannot be the case; if anything else is the case it changes nothing
//! and the general path does it.

use x2::{MessageTag, ThreadId};

use super::{TYPED_OR_FLAGS, can_wait, offer_to, take_words};
use crate::processor;
use crate::scheduler::Next;
use crate::scheduler::timeouts::NEVER;
use crate::space::Space;
use crate::thread::ipc::rendezvous::reaches;
use crate::thread::ipc::{complete, resume_or_switch};
use crate::thread::table::threads;
use crate::thread::{Continuation, IpcKind, Offer, ThreadRef, flag, location, mark};

/// The receive timeout in the timeouts word.
const RECEIVE_TIMEOUT: u64 = 0xffff;
/// The send timeout there.
const SEND_TIMEOUT: u64 = RECEIVE_TIMEOUT << 16;
/// Flags that an Ipc clears in whose message there is nothing special.
const SPECIAL: u8 = flag::SAW_ORIGINATOR | flag::SAW_ITS_HOME | flag::REDIRECTED | flag::PROPAGATED;

/// Does the send phase of the current thread's Ipc to `receiver`, if that is elsewhere or has come from elsewhere; with an answer,
/// the receive phase, too.
#[inline]
pub fn send(current: ThreadRef, receiver: ThreadRef) -> Option<Next> {
    if receiver.is_here() && receiver.is_home() || !is_plain(current) {
        return None;
    }
    if receiver.is_here() {
        return answer(current, receiver);
    }
    let sends_for_ever = current.registers.r8.get() & SEND_TIMEOUT == 0;
    sends_for_ever.then(|| go(current, receiver))
}

/// Whether the Ipc of `thread` is of untyped words and without a receive timeout, and nobody decides where it goes but the thread.
#[inline]
fn is_plain(thread: ThreadRef) -> bool {
    let registers = &thread.registers;
    registers.message[0].get() & TYPED_OR_FLAGS == 0
        && registers.r8.get() & RECEIVE_TIMEOUT == 0
        && processor::this().fast_path.get()
        && !thread.space.get().is_some_and(Space::is_redirected)
}

/// Goes to where `receiver` is. Whether that is in reach is seen there.
fn go(current: ThreadRef, receiver: ThreadRef) -> Next {
    current.set_flag(SPECIAL | flag::WAITS_AT_HOME, false);
    current.receive_from.set(ThreadId::from_raw(current.registers.rdx.get()));
    current.receive_timeout.set(0);
    current.set_partner(receiver.id());
    current.send_deadline.set(NEVER);
    location::visit(current, receiver.location.processor(), Continuation::SendAgain(IpcKind::User))
}

/// The current thread, which has come from elsewhere to send, gives its message to the receiver, and waits for the answer if it
/// made a call.
#[inline]
pub(crate) fn deliver(current: ThreadRef) -> Option<Next> {
    let receiver = threads().find(current.partner())?;
    let (to, from) = (current.registers.rsi.get(), current.registers.rdx.get());
    if from != to && from != ThreadId::NIL.raw()
        || !receiver.is_here()
        || current.has(flag::PROPAGATED_SENDERS)
        || !is_plain(current)
        || offer_to(receiver, current) != Some(IpcKind::User)
        || !reaches(current, receiver)
    {
        return None;
    }
    // POINT OF NO RETURN.
    current.set_flag(SPECIAL | flag::WAITS_AT_HOME, false);
    take_words(receiver, current, MessageTag::from_raw(current.registers.message[0].get()));
    processor::this().scheduler.timeouts.remove(receiver);
    receiver.set_continuation(Continuation::ReturnToUser);
    if from != to {
        complete::sent(current, IpcKind::User);
        return Some(resume_or_switch(current, Some(receiver)));
    }
    receiver.mark(mark::NAMED);
    current.receive_deadline.set(NEVER);
    current.search.set(None);
    current.set_continuation(Continuation::Receive(IpcKind::User));
    Some(Next::SwitchTo(receiver))
}

/// The current thread answers `receiver`, which waits for that away from its home, and waits itself.
fn answer(current: ThreadRef, receiver: ThreadRef) -> Option<Next> {
    let from = ThreadId::from_raw(current.registers.rdx.get());
    if receiver.continuation() != Continuation::Receive(IpcKind::User)
        || receiver.partner() != current.id()
        || !from.is_any()
        || !can_wait(current, receiver, receiver.id(), from)
        || !reaches(current, receiver)
    {
        return None;
    }
    // POINT OF NO RETURN.
    current.set_flag(SPECIAL | flag::WAITS_AT_HOME | flag::PROPAGATED_SENDERS, false);
    take_words(receiver, current, MessageTag::from_raw(current.registers.message[0].get()));
    receiver.set_continuation(Continuation::ReturnToUser);
    // It leaves its timeout and the queue that it may be in.
    location::depart(receiver, receiver.home());
    current.make_offer(Offer::MESSAGE_FROM_ANY);
    Some(Next::Schedule)
}
