//! The fast path between processors: calls and answers of untyped words, without receive timeouts,
//! between threads that live at different processors. A call goes to where its receiver is and
//! finds it waiting; the answer lets the caller go home.
//!
//! Each step does what the general path would, without what cannot be the case; if anything else is
//! the case it changes nothing and the general path does it.

use x2::MessageTag;

use super::{TYPED_OR_FLAGS, can_wait, offer_to, take_words};
use crate::arch;
use crate::processor;
use crate::scheduler::Next;
use crate::scheduler::timeouts::NEVER;
use crate::space::Space;
use crate::sync::delay::{self, Point};
use crate::syscall::arguments;
use crate::thread::ipc::rendezvous::{self, reaches};
use crate::thread::ipc::{complete, resume_or_switch};
use crate::thread::table::threads;
use crate::thread::{Continuation, IpcKind, Offer, ThreadRef, flag, location, mark};

/// Bits of the receive timeout in the timeouts word.
const RECEIVE_TIMEOUT: u64 = 0xffff;
/// Bits of the send timeout in the timeouts word.
const SEND_TIMEOUT: u64 = RECEIVE_TIMEOUT << 16;
/// Flags of a thread that an Ipc with an ordinary message clears.
const SPECIAL: u8 = flag::SAW_ORIGINATOR | flag::SAW_ITS_HOME | flag::REDIRECTED | flag::PROPAGATED;

/// Does the Ipc of the current thread to `receiver`, which is elsewhere, as far as that can be done
/// here: goes there, unless it only sends and need not go.
#[inline(always)]
pub fn go(current: ThreadRef, receiver: ThreadRef) -> Option<Next> {
    let arguments = arguments::Ipc::of(current);
    if arguments.from().is_nil()
        && let Some(next) = send_to_idle(current, receiver)
    {
        return Some(next);
    }
    let sends_for_ever = arguments.timeouts().raw() & SEND_TIMEOUT == 0;
    // Whether a message may reach the receiver is decided at the receiver's processor.
    if !sends_for_ever || !is_plain(current) || current.space.get().is_some_and(Space::is_redirected) {
        return None;
    }
    // POINT OF NO RETURN.
    current.set_flag(SPECIAL | flag::WAITS_AT_HOME, false);
    current.receive_from.set(arguments.from());
    current.receive_timeout.set(0);
    current.set_partner(rendezvous::name(arguments.to(), receiver));
    current.send_deadline.set(NEVER);
    current.set_continuation(Continuation::SendAgain(IpcKind::User));
    location::depart_alone(current, receiver.location.processor());
    Some(Next::Schedule)
}

/// Does the Ipc of the current thread, which only sends, to `receiver`, which is elsewhere, if that
/// waits at home for it and its processor is idle: then this one acts in the other's place (K6),
/// gives the receiver its message, and lets the other know. The sender goes on, as if it
/// had come back.
#[cold]
fn send_to_idle(current: ThreadRef, receiver: ThreadRef) -> Option<Next> {
    if !is_plain(current) || current.space.get().is_some_and(Space::is_redirected) {
        return None;
    }
    let to = arguments::Ipc::of(current).to();
    let home = receiver.location.processor();
    let claim = arch::processor(u32::from(home)).idle.claim()?;
    // Objects located there stay there, and nothing else touches them, as long as the claim is
    // held. Nothing here waits.
    if !receiver.location.is_at(home)
        || receiver.id() != to
        || receiver.home() != home
        || receiver.offer().is_timed()
        || receiver.timeout.deadline().is_some()
        || offer_to(receiver, current) != Some(IpcKind::User)
        || !goes_to(current, receiver)
    {
        return None;
    }
    // POINT OF NO RETURN.
    delay::at(Point::Post);
    current.set_flag(SPECIAL | flag::WAITS_AT_HOME, false);
    take_words(receiver, current, tag(current).with_cross_processor(true));
    receiver.end_offered_wait();
    // The receiver's processor learns of the receiver as of a thread that comes home.
    receiver.location.hand_over(home);
    drop(claim);
    processor::post(home, |public| &public.threads, &[&receiver.request]);
    complete::sent(current, IpcKind::User);
    Some(Next::Return)
}

/// Whether the Ipc of `thread` is of untyped words and without a receive timeout.
#[inline]
fn is_plain(thread: ThreadRef) -> bool {
    let arguments = arguments::Ipc::of(thread);
    arguments.tag().raw() & TYPED_OR_FLAGS == 0
        && arguments.timeouts().raw() & RECEIVE_TIMEOUT == 0
        && processor::this().fast_path.get()
}

/// The tag that `thread` sends.
#[inline]
fn tag(thread: ThreadRef) -> MessageTag {
    arguments::Ipc::of(thread).tag()
}

/// Whether a message of `sender` goes to `receiver`: the receiver is in reach, and no redirector or
/// owner decides where the message goes.
#[inline]
fn goes_to(sender: ThreadRef, receiver: ThreadRef) -> bool {
    let space = sender.space.get();
    space.is_some_and(|space| space.is_unrestricted() || !space.is_redirected() && reaches(sender, receiver))
}

/// The current thread, which has come from elsewhere to send, gives its message to the receiver,
/// and waits for the answer if it made a call.
#[inline]
pub(crate) fn deliver(current: ThreadRef) -> Option<Next> {
    let receiver = threads().find(current.partner())?.if_here()?;
    let arguments = arguments::Ipc::of(current);
    let (to, from) = (arguments.to(), arguments.from());
    if from != to && !from.is_nil()
        || current.has(flag::PROPAGATED_SENDERS)
        || !is_plain(current)
        || offer_to(receiver, current) != Some(IpcKind::User)
        || !goes_to(current, receiver)
    {
        return None;
    }
    // POINT OF NO RETURN.
    current.set_flag(SPECIAL | flag::WAITS_AT_HOME, false);
    // The receiver is at home. So is the sender if the receiver had moved here.
    take_words(receiver, current, tag(current).with_cross_processor(!current.is_home()));
    receiver.end_offered_wait();
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

/// Does the Ipc of the current thread to `receiver`, which waits for that away from its home, and
/// waits itself.
#[inline(always)]
pub fn answer(current: ThreadRef, receiver: ThreadRef) -> Option<Next> {
    let from = arguments::Ipc::of(current).from();
    if !is_plain(current)
        || receiver.continuation() != Continuation::Receive(IpcKind::User)
        || receiver.partner() != current.id()
        || !from.is_any()
        || !can_wait(current, receiver, receiver.id(), from)
        || !goes_to(current, receiver)
    {
        return None;
    }
    // POINT OF NO RETURN.
    current.set_flag(SPECIAL | flag::WAITS_AT_HOME | flag::PROPAGATED_SENDERS, false);
    // Only the receiver is at a processor that is not its home.
    take_words(receiver, current, tag(current).with_cross_processor(true));
    receiver.set_continuation(Continuation::ReturnToUser);
    // The thread leaves its timeout and the queue that it may be in.
    location::depart_alone(receiver, receiver.home());
    current.make_offer(Offer::MESSAGE_FROM_ANY);
    Some(Next::Schedule)
}
