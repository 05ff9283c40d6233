//! The fast path (K10): a message of untyped words to a thread that waits for it, whose sender then
//! waits itself. Both phases, the switch of threads and that of spaces are done in one go, without
//! queues, timers and the scheduler.
//!
//! What it needs of the receiver is summed up in its [`Offer`]. What it needs of the sender is
//! checked here. If anything is missing nothing has changed, and the general path does the same
//! with all cases; `docs/src/ipc-fast-path.md` lists the conditions. `fast_path.S` has the most
//! frequent case once more, with the message in the processor's registers.

pub mod crossing;

use core::ptr::eq;
use core::sync::atomic::Ordering;

use x2::extension::SystemCallAnswer;
use x2::message::REGISTER_MESSAGE_REGISTERS;
use x2::protocol::exception;
use x2::{MapItem, MessageTag, ThreadId, Time};

use super::message::{Message, set_exception_registers};
use super::rendezvous::{id_seen_by, reaches};
use super::transfer_fault;
use crate::arch;
use crate::dispatch;
use crate::mapping;
use crate::processor;
use crate::scheduler::timeouts::{Microseconds, NEVER};
use crate::space::Space;
use crate::sync::delay::{self, Point};
use crate::syscall::arguments;
use crate::thread::table::threads;
use crate::thread::{Continuation, Found, IpcKind, Offer, ThreadRef, mark};

/// Bits of a tag that the general path looks at: typed items and flags.
const TYPED_OR_FLAGS: u64 = 0xffc0;
/// The tag, without its label, of a message that is one map item.
pub const MAP_ITEM: u64 = MessageTag::new(0, 0, 2).raw();
/// The bits of a message tag that are not its label.
const NO_LABEL: u64 = 0xffff;

/// The thread that the current thread's Ipc, whose registers are saved, names as receiver, wherever
/// that is, if it is found without a search.
#[inline(always)]
pub fn named_receiver(current: ThreadRef) -> Option<ThreadRef> {
    find(current, arguments::Ipc::of(current).to())
}

/// Whether that Ipc, to a receiver that is here, might go on the fast path. This is a first look,
/// for the many calls that only wait, or send to a thread that does not wait.
#[inline(always)]
pub fn is_possible(current: ThreadRef, receiver: ThreadRef) -> bool {
    let tag = arguments::Ipc::of(current).tag().raw();
    receiver.offer() != Offer::NONE && (tag & TYPED_OR_FLAGS == 0 || tag & NO_LABEL == MAP_ITEM)
}

/// Does the Ipc of the current thread, whose registers are saved, to its [`named_receiver`], with
/// both its phases. Returns the thread that has received its message and runs now; `None`: nothing
/// has changed.
#[inline(never)]
pub fn system_call(current: ThreadRef, receiver: ThreadRef) -> Option<ThreadRef> {
    let registers = &current.registers;
    let arguments = arguments::Ipc::of(current);
    let tag = arguments.tag();
    let has_item = tag.raw() & NO_LABEL == MAP_ITEM;
    let timeout = arguments.timeouts().receive();
    if !timeout.is_never() && !is_span(timeout) {
        return None;
    }
    let to = arguments.to();
    let awaited = offer_to(receiver, current)?;
    let is_answer = match awaited {
        IpcKind::SystemCall => tag.label() == SystemCallAnswer::Return as u64 && tag.untyped() > 0,
        IpcKind::Exception => {
            tag.untyped() >= exception::REPLY_WORDS
                && arch::is_canonical(registers.message[exception::RIP].get())
        }
        _ => true,
    };
    if !is_answer || awaited != IpcKind::PageFault && has_item {
        return None;
    }
    let from = arguments.from();
    if !can_wait(current, receiver, to, from) || !can_switch(current, receiver, IpcKind::User) {
        return None;
    }
    if has_item && !give_page(current, receiver, [1, 2].map(|index| registers.message[index].get())) {
        return None;
    }
    // POINT OF NO RETURN.
    match awaited {
        IpcKind::SystemCall => receiver.registers.rax().set(registers.rax().get()),
        // The faulting thread repeats its access, whatever the words of the answer are.
        IpcKind::PageFault => {}
        IpcKind::Exception => {
            let answer = Message { thread: current, kind: IpcKind::User };
            set_exception_registers(receiver, |index| answer.word(index));
        }
        _ => take_words(receiver, current, tag),
    }
    let partner = if from == to {
        receiver.mark(mark::NAMED);
        receiver.id()
    } else {
        from
    };
    let deadline = if timeout.is_never() { NEVER } else { begin_timeout(current, timeout) };
    let offers = !partner.is_any_local() && current.returns_by_sysret();
    let offer = if offers { offer_of_wait(partner, deadline) } else { Offer::NONE };
    wait_and_switch(current, IpcKind::User, partner, offer, deadline, receiver);
    Some(receiver)
}

/// The current thread is about to do the whole of an Ipc on the fast path, and to wait as long as
/// `timeout` says. Returns whether the fast path can; then its receive deadline is set.
#[inline(always)]
pub fn begin_receive_timeout(current: ThreadRef, timeout: Time) -> bool {
    let can = is_span(timeout);
    if can {
        current.receive_deadline.set(begin_timeout(current, timeout));
    }
    can
}

/// Whether a wait of this length ends by itself, but not immediately.
#[inline]
fn is_span(timeout: Time) -> bool {
    timeout.micros().is_some_and(|length| length > 0)
}

/// The current thread is about to wait as long as `timeout`, a span, says. Returns until when.
#[inline]
fn begin_timeout(current: ThreadRef, timeout: Time) -> Microseconds {
    let deadline = super::instant(timeout);
    processor::this().scheduler.begin_timeout(current, deadline);
    deadline
}

/// The offer of a thread that waits for `partner`, in an Ipc of its own until `deadline`.
#[inline]
pub(super) fn offer_of_wait(partner: ThreadId, deadline: Microseconds) -> Offer {
    if deadline == NEVER { Offer::message_from(partner) } else { Offer::timed_message_from(partner) }
}

/// Tells `to`, if it waits for that, what the current thread has done: `kind` is not an Ipc of its
/// own. Returns the receiver, which runs now; `None`: nothing has changed.
pub(super) fn send_report(current: ThreadRef, kind: IpcKind, to: ThreadId) -> Option<ThreadRef> {
    let receiver = find(current, to).filter(|receiver| receiver.is_here() && current.is_home())?;
    let offered = offer_to(receiver, current)? == IpcKind::User;
    if !offered || current.senders.first().is_some() || !can_switch(current, receiver, kind) {
        return None;
    }
    // POINT OF NO RETURN.
    let (source, target) =
        (Message { thread: current, kind }, Message { thread: receiver, kind: IpcKind::User });
    let tag = source.tag();
    target.receive_untyped(source, tag);
    return_message(receiver, current, tag);
    receiver.mark(mark::NAMED);
    let offer = offer_of_report(current, kind, receiver.id());
    wait_and_switch(current, kind, receiver.id(), offer, NEVER, receiver);
    Some(receiver)
}

/// The offer of `current`, which waits for the answer to a report of `kind`, to its `partner`.
pub(super) fn offer_of_report(current: ThreadRef, kind: IpcKind, partner: ThreadId) -> Offer {
    match kind {
        IpcKind::SystemCall if current.returns_by_sysret() => Offer::answer_of(partner),
        IpcKind::Exception if !current.returns_by_sysret() => Offer::registers_of(partner),
        // A fault of a transfer is followed by the transfer.
        IpcKind::PageFault if !current.returns_by_sysret() && transfer_fault::outer(current).is_none() => {
            Offer::mapping_of(partner)
        }
        _ => Offer::NONE,
    }
}

/// The thread that `to` names for `current`, wherever it is, if it is found without a search.
#[inline]
fn find(current: ThreadRef, to: ThreadId) -> Option<ThreadRef> {
    let found = if to.is_global() {
        threads().find(to)
    } else if to.is_local() {
        current.space.get()?.remembered_local_id(to)
    } else {
        None
    };
    delay::between(Point::FastLookUp);
    found.map(Found::anywhere)
}

/// The kind of message that `receiver` would take from `sender` on the fast path.
#[inline]
fn offer_to(receiver: ThreadRef, sender: ThreadRef) -> Option<IpcKind> {
    let offer = receiver.offer();
    let (kind, partner) = (offer.kind()?, offer.partner());
    (partner == sender.id() || partner.is_any()).then_some(kind)
}

/// Whether the receive phase of `current`, after a message to `receiver` as `to`, waits: nothing
/// that it takes is there.
#[inline]
fn can_wait(current: ThreadRef, receiver: ThreadRef, to: ThreadId, from: ThreadId) -> bool {
    if current.senders.first().is_some() {
        return false;
    }
    if from == to {
        // The partner is found, and in reach, as it was for the send phase; an answer to a foreign
        // call is in order too.
        return !eq(current, receiver);
    }
    // Relaxed: what other processors set later finds the thread waiting.
    from.is_any_local()
        || from.is_any()
            && current.pending_interrupts.get().is_none()
            && current.notification.load(Ordering::Relaxed) == 0
}

/// Whether a message of `kind` from `current` and the switch to `receiver` concern only these two
/// threads.
#[inline]
fn can_switch(current: ThreadRef, receiver: ThreadRef, kind: IpcKind) -> bool {
    let this = processor::this();
    this.fast_path.get()
        && this.scheduler.ready.has_none_above(receiver.priority.get())
        && (current.shares_space_with(receiver)
            || (kind != IpcKind::User || reaches(current, receiver))
                && !receiver.is_orphaned()
                && !current.space.get().is_some_and(Space::is_redirected))
}

/// Does the map item of these words, `pager`'s whole answer to the page fault of `thread`, if it
/// needs no preemption point.
#[inline]
pub fn give_page(pager: ThreadRef, thread: ThreadRef, words: [u64; 2]) -> bool {
    let (Some(item), Some(from), Some(to)) =
        (MapItem::from_words(words), pager.space.get(), thread.space.get())
    else {
        return false;
    };
    let _alone = mapping::lock();
    mapping::try_map_page(from.memory, to.memory, item)
}

/// Gives `receiver` the message of `sender`, a user's like its own.
#[inline]
fn take_words(receiver: ThreadRef, sender: ThreadRef, tag: MessageTag) {
    let count = tag.untyped();
    let (from, to) = (&sender.registers.message, &receiver.registers.message);
    for index in 1..REGISTER_MESSAGE_REGISTERS {
        to[index].set(if index <= count { from[index].get() } else { 0 });
    }
    if count >= REGISTER_MESSAGE_REGISTERS
        && let (Some(from), Some(to)) = (sender.utcb.get(), receiver.utcb.get())
    {
        to.copy_message_registers(from, REGISTER_MESSAGE_REGISTERS..count + 1);
    }
    return_message(receiver, sender, tag);
}

/// Sets the registers with which `receiver`'s Ipc returns.
#[inline]
fn return_message(receiver: ThreadRef, sender: ThreadRef, tag: MessageTag) {
    let results = arguments::Ipc::of(receiver);
    results.set_tag(tag.raw());
    results.set_from(id_seen_by(receiver, sender).raw());
    results.set_local_id(receiver.local_id.get());
}

/// `current` waits until `deadline` for an answer or message from `partner`; `receiver`, which has
/// got its message, runs on its time.
#[inline]
fn wait_and_switch(
    current: ThreadRef,
    kind: IpcKind,
    partner: ThreadId,
    offer: Offer,
    deadline: Microseconds,
    receiver: ThreadRef,
) {
    current.receive_deadline.set(deadline);
    if offer == Offer::NONE {
        current.set_partner(partner);
        current.set_continuation(Continuation::Receive(kind));
    } else {
        current.make_offer(offer);
    }
    receiver.set_continuation(Continuation::ReturnToUser);
    dispatch::switch_directly(receiver);
}
