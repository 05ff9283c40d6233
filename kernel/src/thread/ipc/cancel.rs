//! How IPC ends that does not come to its end: timeouts, cancellation, and partners that disappear.
//!
//! No thread that a function here is called for is current, except where the function says so: the
//! current thread is doing something else, and its own IPC is not in progress.

use x2::{IpcErrorKind, MessageTag, ThreadId};

use super::message::Message;
use super::{Failure, complete, transfer_fault};
use crate::processor;
use crate::scheduler::timeouts::NEVER;
use crate::thread::{Continuation, IpcKind, ThreadRef, flag, send_queue};
use crate::trace::{self, Event};

/// Makes a thread ready whose IPC has ended, if nothing else stops it.
pub(super) fn make_ready_if_runnable(thread: ThreadRef) {
    let this = processor::this();
    if thread.is_runnable() {
        if !this.is_current(thread) {
            this.scheduler.make_ready(thread);
        }
    } else {
        this.scheduler.ready.withdraw(thread);
    }
}

/// The timeout of `thread` has ended; it is no longer in the queue of timeouts.
pub fn expire(thread: ThreadRef) {
    trace::event(Event::Timeout, thread.id().raw(), 0);
    end_ipc(thread, IpcErrorKind::Timeout, IpcErrorKind::Timeout);
}

/// ExchangeRegisters with S: ends a send in progress (X.2 rule 5.27). Returns whether there was
/// one.
pub fn cancel_send(thread: ThreadRef) -> bool {
    if transfer_fault::outer(thread).is_some() {
        return end_ipc(thread, IpcErrorKind::Cancelled, IpcErrorKind::Aborted);
    }
    match thread.continuation() {
        Continuation::Send(_) | Continuation::SendAgain(_) | Continuation::SendTransfer(_) => {
            end_ipc(thread, IpcErrorKind::Cancelled, IpcErrorKind::Aborted)
        }
        Continuation::RaiseException => {
            thread.set_continuation(Continuation::ReturnToUser);
            make_ready_if_runnable(thread);
            true
        }
        _ => false,
    }
}

/// ExchangeRegisters with R: ends a receive in progress. Returns whether there was one.
pub fn cancel_receive(thread: ThreadRef) -> bool {
    let mut cancelled = false;
    if transfer_fault::outer(thread).is_some() {
        cancelled = end_ipc(thread, IpcErrorKind::Cancelled, IpcErrorKind::Aborted);
    }
    // This is done twice for a thread that awaits its start, whose wait survives the end of a
    // transfer: it runs where it stands.
    while thread.continuation().receiving().is_some() {
        cancelled |= end_ipc(thread, IpcErrorKind::Cancelled, IpcErrorKind::Aborted);
    }
    cancelled
}

/// Ends whatever IPC `thread` is in: its id changes, or it moves, or it is deleted (X.2 rules 5.14,
/// 5.15, 5.18).
///
/// A thread that awaits its start goes on waiting: it has nowhere to run to.
pub fn leave_all(thread: ThreadRef) {
    if thread.awaits_message() != Some(IpcKind::Start) {
        end_ipc(thread, IpcErrorKind::Cancelled, IpcErrorKind::Aborted);
    }
    if thread.continuation() == Continuation::RaiseException {
        thread.set_continuation(Continuation::ReturnToUser);
    }
}

/// A waiting sender learns that it cannot reach its partner.
pub(super) fn refuse(sender: ThreadRef) {
    end_ipc(sender, IpcErrorKind::NonExistingPartner, IpcErrorKind::Aborted);
}

/// One of the threads that wait in `thread`'s queue to send to it as `id` learns that there is no
/// such thread. If `thread` is only the redirector for its message, it looks where the message goes
/// now. Returns whether there was a waiting thread.
pub fn sender_disappears_from_queue(thread: ThreadRef, id: ThreadId) -> bool {
    let goes = |sender: &ThreadRef| sender.partner() == id || sender.has(flag::REDIRECTED);
    let Some(sender) = thread.senders.iter().find(goes) else { return false };
    if sender.has(flag::REDIRECTED) {
        send_again(sender);
        return true;
    }
    end_ipc(sender, IpcErrorKind::NonExistingPartner, IpcErrorKind::Aborted)
}

/// `thread` learns, if it waits for a message from `id` or has one for it elsewhere, that there is
/// no such thread.
pub fn partner_disappears(thread: ThreadRef, id: ThreadId) {
    let waits_for_it = match thread.continuation() {
        Continuation::Receive(kind) => kind != IpcKind::Start,
        Continuation::Send(_) => thread.has(flag::REDIRECTED),
        _ => false,
    };
    if waits_for_it && thread.partner() == id {
        end_ipc(thread, IpcErrorKind::NonExistingPartner, IpcErrorKind::Aborted);
    }
}

/// The redirector of `thread`'s space has changed: if it waits to send it looks where its message
/// goes now (X.2 rule 6.16).
pub fn redirector_changes(thread: ThreadRef) {
    if matches!(thread.continuation(), Continuation::Send(_)) {
        send_again(thread);
    }
}

/// `sender`, which waits to send, looks where its message goes when it is its turn.
fn send_again(sender: ThreadRef) {
    if stop_waiting_to_send(sender) {
        processor::this().scheduler.make_ready(sender);
    }
}

/// `sender`, if it waits to send, leaves the queue in which it does and is to send again. Returns
/// whether it did.
pub(super) fn stop_waiting_to_send(sender: ThreadRef) -> bool {
    let Continuation::Send(kind) = sender.continuation() else { return false };
    send_queue::remove_sender(sender);
    sender.send_deadline.set(sender.timeout.deadline().unwrap_or(NEVER));
    processor::this().scheduler.timeouts.remove(sender);
    sender.set_continuation(Continuation::SendAgain(kind));
    true
}

/// Ends the IPC of `thread` with `before` if no transfer has begun, else ends it for both sides
/// with `midway`.
fn end_ipc(thread: ThreadRef, before: IpcErrorKind, midway: IpcErrorKind) -> bool {
    let timeouts = &processor::this().scheduler.timeouts;
    if transfer_fault::outer(thread).is_some() {
        end_fault(thread, before);
        return true;
    }
    match thread.continuation() {
        Continuation::Send(kind) => {
            send_queue::remove_sender(thread);
            timeouts.remove(thread);
            complete::send_failed(thread, kind, Failure::new(before), MessageTag::EMPTY);
            make_ready_if_runnable(thread);
        }
        Continuation::SendAgain(kind) => {
            forget_way(thread);
            complete::send_failed(thread, kind, Failure::new(before), MessageTag::EMPTY);
            make_ready_if_runnable(thread);
        }
        Continuation::Receive(kind) => {
            timeouts.remove(thread);
            complete::receive_failed(thread, kind, Failure::new(before), MessageTag::EMPTY);
            make_ready_if_runnable(thread);
        }
        Continuation::SendTransfer(_) | Continuation::ReceiveTransfer(_) => {
            end_transfer(thread, |sender| Failure {
                kind: midway,
                ..transfer_fault::failure(sender, midway)
            });
        }
        _ => return false,
    }
    true
}

/// Forgets the rest of the way of `thread`'s message from processor to processor: it is not sent
/// any more.
pub(super) fn forget_way(thread: ThreadRef) {
    thread.set_flag(flag::WAITS_AT_HOME, false);
}

/// Ends the transfer in the midst of which `thread` tells its pager of a missing page, because that
/// ends with `cause` instead of an answer. Without a pager the thread is halted (X.2 rule 5.34).
pub(super) fn end_fault(thread: ThreadRef, cause: IpcErrorKind) {
    transfer_fault::abandon_report(thread);
    if cause == IpcErrorKind::NonExistingPartner {
        thread.set_flag(flag::HALTED, true);
    }
    end_transfer(thread, |sender| transfer_fault::failure(sender, cause));
}

/// Ends the transfer that `thread` is a side of for both; `failure` is the sender's, given the
/// sender.
fn end_transfer(thread: ThreadRef, failure: impl FnOnce(Option<ThreadRef>) -> Failure) {
    let peer = thread.transfer_record.get().and_then(|record| record.peer.take());
    peer.inspect(|peer| transfer_fault::abandon_report(peer));
    let sides = [Some(thread), peer];
    let sender = sides.into_iter().flatten().find(|side| side.continuation().sending().is_some());
    let (failure, tag) = (failure(sender), tag_of(sides));
    for side in sides.into_iter().flatten() {
        let is_sender = side.continuation().sending().is_some();
        end_midway(side, if is_sender { failure } else { failure.for_receiver() }, tag);
    }
}

/// The tag of the message in a transfer between these.
pub(super) fn tag_of(sides: [Option<ThreadRef>; 2]) -> MessageTag {
    let tag = sides.into_iter().flatten().find_map(|side| {
        let kind = side.continuation().sending()?;
        Some(Message { thread: side, kind }.tag().without_flags())
    });
    tag.unwrap_or(MessageTag::EMPTY)
}

/// Ends one side of an interrupted transfer.
pub(super) fn end_midway(side: ThreadRef, failure: Failure, tag: MessageTag) {
    if let Some(record) = side.transfer_record.get() {
        record.cancel();
    }
    match side.continuation() {
        Continuation::SendTransfer(kind) => complete::send_failed(side, kind, failure, tag),
        // The message was no start message: the wait for one goes on.
        Continuation::ReceiveTransfer(IpcKind::Start) => return super::await_start(side, side.partner()),
        Continuation::ReceiveTransfer(kind) => complete::receive_failed(side, kind, failure, tag),
        _ => return,
    }
    make_ready_if_runnable(side);
}
