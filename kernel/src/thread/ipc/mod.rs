//! IPC: the one way in which threads, interrupts and the kernel's own protocols talk (X.2 rules 7).
//!
//! An IPC is an optional send phase and an optional receive phase. Each phase is a step of the
//! thread's [`Continuation`]: it runs to its end in one go, waits for a partner, or gives way to an
//! interrupt between two pages of a map item. The current thread drives its own phases; when it
//! serves a waiting sender it also ends that sender's send phase and puts it into its receive phase
//! (the transition is atomic, rule 7.1), but senders that wait for that thread are served only when
//! it runs itself, so that no entry into the kernel chains through many threads.
//!
//! | file | what |
//! |------|------|
//! | `rendezvous` | which ids name which threads, and which threads accept which |
//! | `message` | where words come from and go to |
//! | `transfer` | moving them, with typed items |
//! | `string` | string items |
//! | `transfer_fault` | page faults of string items |
//! | `complete` | how a phase ends, by kind of IPC |
//! | `events` | interrupts and notifications |
//! | `cancel` | timeouts, cancellation, partners that disappear |
//! | `travel` | going to other processors, waiting there, arriving |
//! | `fast` | the frequent cases, done in one go |
//! | `fast::crossing` | those between processors |

mod cancel;
mod complete;
mod events;
pub mod fast;
mod message;
mod rendezvous;
mod string;
mod transfer;
mod transfer_fault;
mod travel;

use x2::{Deadline, IpcErrorKind, MessageTag, ThreadId, Time, utcb};

pub use self::cancel::{
    cancel_receive, cancel_send, expire, leave_all, partner_disappears, redirector_changes,
    sender_disappears_from_queue,
};
pub use self::complete::return_user;
use self::events::{deliver_interrupt, take_notification};
pub use self::events::{offer_interrupt, offer_notification};
use self::fast::crossing;
use self::message::Message;
pub use self::message::{
    SYSTEM_CALL_TAG, exception_registers, exception_tag, set_exception_registers, user_flags,
};
use self::rendezvous::{Destination, Partner};
pub use self::rendezvous::{is_user_number, reaches, reaches_directly, resolve_thread};
use self::transfer::Transfer;
pub use self::transfer_fault::raise as raise_transfer_fault;
use self::travel::send_elsewhere;
pub use self::travel::{check_partner, follow_receiver, take_originator_along, wait_away};
use super::table::threads;
use super::{Continuation, IpcKind, Offer, Tcb, ThreadRef, flag, location, mark};
use crate::arch;
use crate::interrupt;
use crate::processor;
use crate::scheduler::Next;
use crate::scheduler::timeouts::{Microseconds, NEVER};
use crate::sync::SEVERAL;
use crate::syscall::arguments;
use crate::trace::{self, Event};

/// Why a send or receive phase failed.
#[derive(Clone, Copy)]
pub struct Failure {
    kind: IpcErrorKind,
    /// How many bytes of strings were moved before the failure.
    offset: u64,
    /// Whether the phase failed because kernel memory ran out.
    out_of_memory: bool,
}

impl Failure {
    const fn new(kind: IpcErrorKind) -> Self {
        Self { kind, offset: 0, out_of_memory: false }
    }

    /// The failure that the receiver learns of when this one is the sender's.
    fn for_receiver(self) -> Self {
        let kind = match self.kind {
            IpcErrorKind::XferTimeoutOwn => IpcErrorKind::XferTimeoutPartner,
            IpcErrorKind::XferTimeoutPartner => IpcErrorKind::XferTimeoutOwn,
            kind => kind,
        };
        Self { kind, ..self }
    }
}

/// The Ipc and Lipc system calls of the current thread (ABI 5), where no fast path does them.
pub fn system_call(current: ThreadRef) -> Next {
    let arguments = arguments::Ipc::of(current);
    let (to, from, timeouts) = (arguments.to(), arguments.from(), arguments.timeouts());
    trace::event(Event::IpcCall, to.raw(), from.raw());
    current.take_flag(flag::SAW_ORIGINATOR | flag::SAW_ITS_HOME);
    current.receive_from.set(from);
    current.receive_timeout.set(timeouts.receive().raw());
    if timeouts.receive().is_point() {
        // A point is resolved once, at entry (X.2 rule 1.11).
        current.receive_deadline.set(instant(timeouts.receive()));
    }
    if !to.is_nil() {
        send(current, IpcKind::User, to, timeouts.send())
    } else if !current.receive_from.get().is_nil() {
        receive(current, IpcKind::User, None)
    } else {
        complete::sent(current, IpcKind::User);
        Next::Return
    }
}

/// The current thread tells `to` of a page fault or exception and awaits the answer, without
/// timeouts. The words of the report are in `current.fault`.
pub fn send_report(current: ThreadRef, kind: IpcKind, to: ThreadId) -> Next {
    if let Some(receiver) = fast::send_report(current, kind, to) {
        return Next::Switched(receiver);
    }
    current.receive_from.set(to);
    current.receive_timeout.set(Time::NEVER.raw());
    send(current, kind, to, Time::NEVER)
}

/// The current thread tells `to` something that needs no answer, waiting for it up to `timeout`.
/// The word of the message is in `current.fault`.
pub fn send_notice(current: ThreadRef, kind: IpcKind, to: ThreadId, timeout: Time) -> Next {
    current.receive_from.set(ThreadId::NIL);
    send(current, kind, to, timeout)
}

/// Puts a thread that has just been activated into the wait for its start message (X.2 rule 5.12).
/// It must be neither current nor ready.
pub fn await_start(thread: ThreadRef, pager: ThreadId) {
    thread.receive_from.set(pager);
    thread.receive_timeout.set(Time::NEVER.raw());
    if receive_later(thread, IpcKind::Start) {
        processor::this().scheduler.make_ready(thread);
    }
}

/// [`await_start`] for a thread that has just been made for `pager`, a global id, and lives here:
/// no message can have been sent yet.
#[inline(always)]
pub fn await_first_start(thread: ThreadRef, pager: ThreadId) {
    debug_assert!(pager.is_global() && thread.is_home());
    // The thread's scheduler was marked when it was set.
    if pager != thread.scheduler.get()
        && let Some(pager) = threads().find(pager)
    {
        pager.mark(mark::NAMED);
    }
    thread.await_first_start();
}

/// Goes on with an IPC of the current thread that gave way to an interrupt, or whose receive phase
/// is still to be done.
pub fn resume_ipc(current: ThreadRef) -> Next {
    if current.continuation() == Continuation::ResumeTransfer {
        transfer_fault::restore(current);
    }
    let peer = current.transfer_record.get().and_then(|record| record.peer.get());
    match (current.continuation(), peer) {
        (Continuation::Receive(kind), _) => look(current, kind, None),
        (Continuation::SendTransfer(kind), Some(peer)) => {
            let Continuation::ReceiveTransfer(peer_kind) = peer.continuation() else { return Next::Schedule };
            let (sender, receiver) =
                (Message { thread: current, kind }, Message { thread: peer, kind: peer_kind });
            finish(sender, receiver, transfer::resume_transfer(sender, receiver), None)
        }
        (Continuation::ReceiveTransfer(kind), Some(peer)) => {
            let Continuation::SendTransfer(peer_kind) = peer.continuation() else { return Next::Schedule };
            let (sender, receiver) =
                (Message { thread: peer, kind: peer_kind }, Message { thread: current, kind });
            finish(sender, receiver, transfer::resume_transfer(sender, receiver), None)
        }
        _ => Next::Schedule,
    }
}

/// The thread's part in a transfer while it tells its pager of a page missing there.
pub fn transfer_continuation(thread: &Tcb) -> Option<Continuation> {
    transfer_fault::outer(thread).map(|outer| outer.continuation)
}

/// The other side of `thread`'s transfer, if `thread` is telling its pager of a page that is
/// missing in it.
pub fn transfer_peer(thread: ThreadRef) -> Option<ThreadRef> {
    transfer_fault::outer(thread).map(|outer| outer.peer)
}

/// When a timeout given as `time` ends: 0 = immediately.
fn instant(time: Time) -> Microseconds {
    if time.is_never() {
        return NEVER;
    }
    match time.deadline(arch::clock()) {
        Deadline::Immediately => 0,
        Deadline::At(instant) => instant,
        Deadline::Never => NEVER,
    }
}

/// Decides which thread runs after the current one has done what it could. `woken` became runnable
/// meanwhile and is in no queue.
fn resume_or_switch(current: ThreadRef, woken: Option<ThreadRef>) -> Next {
    match woken {
        Some(woken) if current.is_runnable() || !woken.is_home() => {
            processor::this().scheduler.make_ready(woken);
            if current.is_runnable() { Next::Return } else { Next::Schedule }
        }
        Some(woken) => Next::SwitchTo(woken),
        None if current.is_runnable() => Next::Return,
        None => Next::Schedule,
    }
}

/// The send phase of the current thread.
fn send(current: ThreadRef, kind: IpcKind, to: ThreadId, timeout: Time) -> Next {
    send_until(current, kind, to, |()| instant(timeout))
}

/// The send phase of the current thread; `deadline` is asked if it has to wait.
fn send_until(
    current: ThreadRef,
    kind: IpcKind,
    to: ThreadId,
    deadline: impl FnOnce(()) -> Microseconds,
) -> Next {
    let fail = |error| {
        complete::send_failed(current, kind, Failure::new(error), MessageTag::EMPTY);
        resume_or_switch(current, None)
    };
    let waits_at_home = SEVERAL && current.take_flag(flag::WAITS_AT_HOME);
    let message = Message { thread: current, kind };
    let tag = message.tag();
    let destination = rendezvous::destination(current, kind, to);
    if let Some(Destination::Direct(Partner::Interrupt(interrupt))) = destination {
        if !interrupt.is_here() {
            return send_elsewhere(current, kind, interrupt.id(), deadline(()), interrupt.processor());
        }
        return match interrupt.acknowledge(current) {
            Ok(()) => after_send(current, kind, None),
            Err(error) => fail(error),
        };
    }
    if destination.is_some() && kind == IpcKind::User && !message.given_tag().is_well_formed() {
        return fail(IpcErrorKind::MessageOverflow);
    }
    let (receiver, instead_of) = match destination {
        Some(Destination::Direct(Partner::Thread(receiver))) if !receiver.is(current) => (receiver, None),
        Some(Destination::Redirected(id, redirector)) => (redirector, Some(id)),
        Some(Destination::Nowhere(id)) => {
            let deadline = deadline(());
            return if deadline == 0 {
                fail(IpcErrorKind::Timeout)
            } else if !name_redirected(id) {
                fail(IpcErrorKind::NonExistingPartner)
            } else {
                wait_for_redirector(current, kind, id, deadline)
            };
        }
        _ => return fail(IpcErrorKind::NonExistingPartner),
    };
    current.set_flag(flag::REDIRECTED, instead_of.is_some());
    if let Some(id) = instead_of {
        current.set_partner(id);
    }
    let propagated = kind == IpcKind::User && tag.is_propagated();
    current.set_flag(flag::PROPAGATED, propagated);
    if propagated && let Some(block) = current.utcb.get() {
        current.virtual_sender.set(block.read_id(utcb::VIRTUAL_SENDER));
    }
    let originator = rendezvous::originator(current, receiver);
    // A right that is not there now is not found later, when the send is served (X.2 rule 7.14).
    let propagated = !originator.is(current);
    current.set_flag(flag::PROPAGATED, propagated);
    let partner = instead_of.unwrap_or_else(|| rendezvous::name(to, receiver));
    if propagated && let Some(processor) = travel::way_by(current, originator) {
        return send_elsewhere(current, kind, partner, deadline(()), processor);
    }
    // A thread that has asked a receiver where it is may wait at its home while it is away.
    let may_wait =
        waits_at_home && receiver.is_home() && (!propagated || receiver.has(flag::PROPAGATED_SENDERS));
    let here = receiver.if_here();
    if here.is_none() && !may_wait {
        return send_elsewhere(current, kind, partner, deadline(()), receiver.processor());
    }
    if let Some(receiver) = here
        && let Some(receiver_kind) = receiver.awaits_message()
        && rendezvous::accepts(receiver, originator)
    {
        let receiver = Message { thread: receiver, kind: receiver_kind };
        processor::this().scheduler.timeouts.remove(receiver.thread);
        let outcome = transfer::start(message, receiver);
        return finish(message, receiver, outcome, None);
    }
    let deadline = deadline(());
    if deadline == 0 {
        return fail(IpcErrorKind::Timeout);
    }
    // A thread that is elsewhere may be waited for at its home processor only, which this one is.
    if let Some(receiver) = here.filter(|receiver| !receiver.is_home()) {
        if propagated {
            // The receiver must not wait away from home any more, where it would not see this
            // sender.
            receiver.set_flag(flag::PROPAGATED_SENDERS, true);
            look_again(receiver);
        }
        current.set_flag(flag::WAITS_AT_HOME, true);
        return send_elsewhere(current, kind, partner, deadline, receiver.home());
    }
    if instead_of.is_some_and(|id| !name_redirected(id)) {
        return fail(IpcErrorKind::NonExistingPartner);
    }
    current.set_partner(partner);
    current.set_continuation(Continuation::Send(kind));
    receiver.queue_sender(current);
    if propagated {
        if let Some(receiver) = here {
            receiver.set_flag(flag::PROPAGATED_SENDERS, true);
        }
        originator.mark(mark::NAMED);
    }
    processor::this().scheduler.timeouts.insert(current, deadline);
    Next::Schedule
}

/// The current thread waits for a redirector to which it can send what is for `partner` (X.2 rule
/// 6.15).
fn wait_for_redirector(current: ThreadRef, kind: IpcKind, partner: ThreadId, deadline: Microseconds) -> Next {
    current.set_flag(flag::REDIRECTED, true);
    current.set_partner(partner);
    current.set_continuation(Continuation::Send(kind));
    processor::this().scheduler.timeouts.insert(current, deadline);
    Next::Schedule
}

/// A message for `id` is about to wait in another queue than that of the thread with this id: its
/// sender must be told if that thread goes. `false`: the thread has gone since it was looked up.
/// The end of its id looks for threads that hold the id only if it was named before.
fn name_redirected(id: ThreadId) -> bool {
    let found = threads().find(id);
    found.inspect(|partner| partner.mark(mark::NAMED));
    found.is_some() || interrupt::find(id).is_some()
}

/// Repeats the search for the destination of the current thread's message.
#[inline]
pub fn send_again(current: ThreadRef, kind: IpcKind) -> Next {
    if SEVERAL
        && kind == IpcKind::User
        && let Some(next) = crossing::deliver(current)
    {
        return next;
    }
    send_anew(current, kind)
}

#[inline(never)]
fn send_anew(current: ThreadRef, kind: IpcKind) -> Next {
    let (to, deadline) = (current.partner(), current.send_deadline.get());
    current.set_continuation(Continuation::ReturnToUser);
    let over = deadline != NEVER && deadline <= arch::clock();
    send_until(current, kind, to, |()| if over { 0 } else { deadline })
}

/// The current thread's send phase was successful: begins its receive phase, if it has one.
fn after_send(current: ThreadRef, kind: IpcKind, woken: Option<ThreadRef>) -> Next {
    if current.receive_from.get().is_nil() {
        complete::sent(current, kind);
        return resume_or_switch(current, woken);
    }
    receive(current, kind, woken)
}

/// The receive phase of the current thread.
fn receive(current: ThreadRef, kind: IpcKind, woken: Option<ThreadRef>) -> Next {
    if start_receive(current, kind) { look(current, kind, woken) } else { resume_or_switch(current, woken) }
}

/// Begins the receive phase of a thread that is not current. Returns whether the thread is to be
/// made ready: its phase is over, or it must itself look at something that waits for it.
fn receive_later(thread: ThreadRef, kind: IpcKind) -> bool {
    if !start_receive(thread, kind) {
        return thread.is_runnable();
    }
    if !thread.is_home() {
        if !location::may_wait_away(thread, kind) {
            // The receiver must search for its message at its home processor.
            return true;
        }
    } else if kind == IpcKind::User && interrupt::is_pending_for(thread) {
        return true;
    } else if take_notification(thread, kind) {
        return thread.is_runnable();
    } else if rendezvous::may_find_sender(thread) || travel::way_to_propagating(thread, kind).is_some() {
        return true;
    }
    let deadline = thread.receive_deadline.get();
    if deadline == 0 {
        complete::receive_failed(thread, kind, Failure::new(IpcErrorKind::Timeout), MessageTag::EMPTY);
        return thread.is_runnable();
    }
    wait(thread, kind, deadline);
    false
}

/// Lets `thread`, in its receive phase, wait until `deadline`: no message is there.
fn wait(thread: ThreadRef, kind: IpcKind, deadline: Microseconds) {
    debug_assert!(deadline == thread.receive_deadline.get());
    processor::this().scheduler.timeouts.arm(thread, deadline);
    if thread.is_home() && !thread.has(flag::HALTED | flag::RECALLED) {
        let from = thread.partner();
        let offer = match kind {
            // A thread that sleeps waits for a message from itself.
            IpcKind::User if from == thread.id() => Offer::NONE,
            IpcKind::User if thread.returns_by_sysret() && (from.is_any() || from.is_global()) => {
                fast::offer_of_wait(from, deadline)
            }
            IpcKind::User => Offer::NONE,
            _ if deadline != NEVER => Offer::NONE,
            _ => fast::offer_of_report(thread, kind, from),
        };
        if offer != Offer::NONE {
            thread.make_offer(offer);
        }
    }
}

/// Enters the receive phase: from here on senders find the thread receiving. `false`: it failed
/// immediately.
fn start_receive(thread: ThreadRef, kind: IpcKind) -> bool {
    let from = thread.receive_from.get();
    let partner = if from.is_any() || from.is_any_local() {
        from
    } else {
        match rendezvous::source(thread, kind, from) {
            Some(Partner::Thread(partner)) => {
                partner.mark(mark::NAMED);
                rendezvous::name(from, partner)
            }
            Some(Partner::Interrupt(interrupt)) => interrupt.id(),
            // The pager of a new thread may come later (X.2 rule 5.8).
            None if kind == IpcKind::Start => from,
            None => {
                let failure = Failure::new(IpcErrorKind::NonExistingPartner);
                complete::receive_failed(thread, kind, failure, MessageTag::EMPTY);
                return false;
            }
        }
    };
    let timeout = Time::from_raw(thread.receive_timeout.get());
    if !timeout.is_point() {
        thread.receive_deadline.set(instant(timeout));
    }
    thread.set_partner(partner);
    thread.search.set(None);
    thread.set_continuation(Continuation::Receive(kind));
    true
}

/// The current thread, in its receive phase, takes what waits for it or waits itself.
///
/// Preemption point, where it must search its senders.
fn look(current: ThreadRef, kind: IpcKind, woken: Option<ThreadRef>) -> Next {
    if !current.is_home() {
        wait_away(current, kind);
        return resume_or_switch(current, woken);
    }
    if kind == IpcKind::User
        && let Some(interrupt) = interrupt::take_pending(current)
    {
        deliver_interrupt(current, kind, interrupt);
        return resume_or_switch(current, woken);
    }
    if take_notification(current, kind) {
        return resume_or_switch(current, woken);
    }
    let Ok(sender) = rendezvous::find_sender(current) else {
        woken.inspect(|woken| processor::this().scheduler.make_ready(woken));
        return Next::Interrupted;
    };
    if let Some(sender) = sender
        && let Continuation::Send(sender_kind) = sender.continuation()
    {
        if sender_kind == IpcKind::User && !sender.has(flag::REDIRECTED) && !reaches(sender, current) {
            // The sender was confined while it waited (rights are evaluated again, X.2 rule 7.2).
            // One sender is refused at a time, so that many of them do not keep the kernel busy.
            cancel::refuse(sender);
            woken.inspect(|woken| processor::this().scheduler.make_ready(woken));
            return Next::Interrupted;
        }
        current.senders.remove(sender);
        processor::this().scheduler.timeouts.remove(sender);
        let (sender, receiver) =
            (Message { thread: sender, kind: sender_kind }, Message { thread: current, kind });
        let outcome = transfer::start(sender, receiver);
        return finish(sender, receiver, outcome, woken);
    }
    if current.senders.first().is_none() {
        current.set_flag(flag::PROPAGATED_SENDERS, false);
    }
    let deadline = current.receive_deadline.get();
    if deadline == 0 || deadline != NEVER && deadline <= arch::clock() {
        complete::receive_failed(current, kind, Failure::new(IpcErrorKind::Timeout), MessageTag::EMPTY);
    } else if let Some(processor) = travel::way_to_propagating(current, kind) {
        woken.inspect(|woken| processor::this().scheduler.make_ready(woken));
        return location::continue_on(current, processor, Continuation::Receive(kind));
    } else {
        wait(current, kind, deadline);
    }
    resume_or_switch(current, woken)
}

/// After a step of a transfer between the current thread and another.
fn finish(sender: Message, receiver: Message, outcome: Transfer, woken: Option<ThreadRef>) -> Next {
    let this = processor::this();
    let failure = match outcome {
        Transfer::Ended(failure) => failure,
        Transfer::Interrupted => {
            suspend(sender, receiver);
            if let Some(woken) = woken {
                this.scheduler.make_ready(woken);
            }
            return Next::Interrupted;
        }
        Transfer::Missing(page) => {
            suspend(sender, receiver);
            match transfer_fault::begin_report(sender, receiver, page) {
                Ok(side) => {
                    if let Some(woken) = woken {
                        this.scheduler.make_ready(woken);
                    }
                    if this.is_current(side) {
                        return Next::Return;
                    }
                    if side.is_home() {
                        return Next::SwitchTo(side);
                    }
                    this.scheduler.make_ready(side);
                    return Next::Schedule;
                }
                Err(failure) => Some(failure),
            }
        }
    };
    let tag = sender.tag();
    let redirected = sender.thread.has(flag::REDIRECTED);
    let origin = complete::Origin {
        sender: sender.thread,
        originator: rendezvous::originator(sender.thread, receiver.thread),
        instead_of: redirected.then(|| sender.thread.partner()),
    };
    if failure.is_none() {
        turn_originator(origin, receiver.thread);
        if origin.instead_of == Some(sender.thread.receive_from.get()) {
            // The redirector can answer itself (X.2 rule 6.12).
            sender.thread.receive_from.set(receiver.thread.id());
        }
    }
    let received = complete::received(receiver, origin, tag, failure.map(Failure::for_receiver));
    let again =
        matches!(received, complete::Received::Again) && receive_later(receiver.thread, receiver.kind);
    let receiver_runs = again || receiver.thread.is_runnable();
    if !receiver_runs {
        // The receiver was about to look for senders, and is halted.
        this.scheduler.ready.withdraw(receiver.thread);
    }
    if this.is_current(sender.thread) {
        let woken = Some(receiver.thread).filter(|_| receiver_runs);
        return match failure {
            None => after_send(sender.thread, sender.kind, woken),
            Some(failure) => {
                complete::send_failed(sender.thread, sender.kind, failure, tag);
                resume_or_switch(sender.thread, woken)
            }
        };
    }
    let sender_runs = match failure {
        None if sender.thread.receive_from.get().is_nil() => {
            complete::sent(sender.thread, sender.kind);
            sender.thread.is_runnable()
        }
        None => receive_later(sender.thread, sender.kind),
        Some(failure) => {
            complete::send_failed(sender.thread, sender.kind, failure, tag);
            sender.thread.is_runnable()
        }
    };
    if sender_runs {
        this.scheduler.make_ready(sender.thread);
    }
    if again {
        // The receiver looks for the next start message when it is its turn, so that wrong ones
        // cannot keep the kernel busy.
        this.scheduler.make_ready(receiver.thread);
    }
    resume_or_switch(receiver.thread, woken)
}

/// The transfer stops here for a while: both sides remember it.
fn suspend(sender: Message, receiver: Message) {
    for (side, peer, continuation) in [
        (sender, receiver, Continuation::SendTransfer(sender.kind)),
        (receiver, sender, Continuation::ReceiveTransfer(receiver.kind)),
    ] {
        side.thread.set_continuation(continuation);
        // The current thread alone continues the transfer: the partner may have been about to look
        // for senders.
        processor::this().scheduler.ready.withdraw(side.thread);
        if let Some(record) = side.thread.transfer_record.get() {
            record.peer.set(Some(peer.thread));
        }
    }
}

/// X.2 rule 7.16: an originator that waits for the thread that propagated in its name now waits for
/// the receiver.
fn turn_originator(origin: complete::Origin, receiver: ThreadRef) {
    let complete::Origin { sender, originator, .. } = origin;
    if originator.is(sender) {
        return;
    }
    sender.take_flag(flag::SAW_ORIGINATOR);
    if !originator.is(receiver)
        && let Some(originator) = originator.if_here()
        && originator.awaits_message().is_some()
        && originator.partner() == sender.id()
    {
        originator.set_partner(receiver.id());
        receiver.mark(mark::NAMED);
        if originator.has(flag::PROPAGATED_SENDERS) {
            look_again(originator);
        }
    }
}

/// `thread`, which is not current, looks at the senders that wait for it once more, if it waits for
/// a message.
pub fn look_again(thread: ThreadRef) {
    if thread.awaits_message().is_some() && !thread.ready.is_queued() {
        stop_waiting(thread);
        processor::this().scheduler.make_ready(thread);
    }
}

/// Ends the wait of `thread`, in its receive phase: it is about to look for senders.
fn stop_waiting(thread: ThreadRef) {
    processor::this().scheduler.timeouts.remove(thread);
    thread.withdraw_offer();
    // The thread waits, so its search has found no sender; the fast path does not record that.
    thread.search.set(None);
}

/// A thread has gone or moved, or its space has another redirector, in whose name `sender` may be
/// waiting to send: the message may be `sender`'s own now (X.2 rule 7.14), which its receiver may
/// be waiting for.
pub fn originator_changes(sender: ThreadRef) {
    if sender.has(flag::PROPAGATED)
        && let Some(receiver) = sender.senders_node.receiver()
        && receiver.is_here()
    {
        look_again(receiver);
    }
}

/// Whether `receiver`, in its receive phase, would take the message that `sender` waits to send.
#[cfg(test)]
pub(crate) fn would_accept(receiver: ThreadRef, sender: ThreadRef) -> bool {
    rendezvous::accepts(receiver, rendezvous::originator(sender, receiver))
}
