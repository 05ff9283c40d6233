//! Page faults in the midst of a transfer (X.2 rules 7.22, 1.15, 1.16): the side whose page is
//! missing tells its pager, in an IPC of its own within the other, and then goes on with the
//! transfer; the other side waits.
//!
//! While a thread tells its pager, its record keeps what it was doing ([`Outer`]). Its continuation
//! is that of the inner IPC, or `RaiseFault` before and `ResumeTransfer` after it. If the inner IPC
//! ends in another way, the transfer ends, too.

use x2::{IpcErrorKind, Timeouts, utcb};

use super::message::Message;
use super::transfer::MissingPage;
use super::{Failure, cancel, instant, send_until};
use crate::arch;
use crate::processor;
use crate::scheduler::Next;
use crate::scheduler::timeouts::NEVER;
use crate::thread::transfer_record::{Limit, Outer};
use crate::thread::{Continuation, IpcKind, Tcb, ThreadRef, flag, send_queue};
use crate::trace::{self, Event};

/// Any point: the receive phase's deadline is set already.
const RESOLVED: u16 = 1 << 15;

/// A page is missing in a transfer. Both sides have a transfer as continuation. Returns the side
/// that tells its pager, not ready yet; or the failure, if transfer timeouts do not allow that.
pub(super) fn begin_report(
    sender: Message,
    receiver: Message,
    page: MissingPage,
) -> Result<ThreadRef, Failure> {
    let Some(record) = sender.thread.transfer_record.get() else {
        return Err(Failure::new(IpcErrorKind::Aborted));
    };
    let mut string = record.string.get();
    let limit = *string.limit.get_or_insert_with(|| limit(sender.thread, receiver.thread));
    record.string.set(string);
    if limit.deadline != NEVER && limit.deadline <= arch::clock() {
        return Err(timeout(limit, string.moved));
    }
    let (side, peer) =
        if page.of_receiver { (receiver.thread, sender.thread) } else { (sender.thread, receiver.thread) };
    let Some(own) = side.transfer_record.get() else { return Err(Failure::new(IpcErrorKind::Aborted)) };
    own.outer.set(Some(Outer {
        continuation: side.continuation(),
        peer,
        partner: side.partner(),
        receive_from: side.receive_from.get(),
        receive_timeout: side.receive_timeout.get(),
        receive_deadline: side.receive_deadline.get(),
        propagated: side.has(flag::PROPAGATED),
        redirected: side.has(flag::REDIRECTED),
    }));
    side.fault[0].set(page.address);
    side.fault[1].set(page.access.bits());
    side.set_continuation(Continuation::RaiseFault);
    Ok(side)
}

/// How long the faults of a transfer may take together, from now on.
fn limit(sender: ThreadRef, receiver: ThreadRef) -> Limit {
    let word = |thread: ThreadRef| {
        let word = thread.utcb.get().map_or(0, |block| block.read(utcb::XFER_TIMEOUTS));
        Timeouts::from_raw(word)
    };
    let deadlines = [word(sender).send(), word(receiver).receive()].map(instant);
    Limit { deadline: deadlines[0].min(deadlines[1]), receivers: deadlines[1] < deadlines[0] }
}

/// The failure of a transfer whose faults take too long, for the sender. X.2 rule 7.24: error 5 for
/// the thread whose timeout it was.
fn timeout(limit: Limit, moved: u64) -> Failure {
    let kind = if limit.receivers { IpcErrorKind::XferTimeoutPartner } else { IpcErrorKind::XferTimeoutOwn };
    Failure { offset: moved, ..Failure::new(kind) }
}

/// The current thread tells its pager which page is missing.
pub fn raise(current: ThreadRef) -> Next {
    let Some(outer) = outer(current) else { return Next::Schedule };
    trace::event(Event::PageFault, current.fault[0].get(), current.registers.rip.get());
    let pager = current.pager();
    if pager.is_nil() {
        cancel::end_fault(current, IpcErrorKind::NonExistingPartner);
        return if current.is_runnable() { Next::Return } else { Next::Schedule };
    }
    let sender = if is_sender(outer) { current } else { outer.peer };
    let limit = sender.transfer_record.get().and_then(|record| record.string.get().limit);
    let deadline = limit.map_or(NEVER, |limit| limit.deadline);
    current.receive_from.set(pager);
    current.receive_timeout.set(RESOLVED);
    current.receive_deadline.set(deadline);
    send_until(current, IpcKind::PageFault, pager, |()| deadline)
}

/// What the thread was doing when it began to tell its pager of a missing page.
pub(super) fn outer(thread: &Tcb) -> Option<Outer> {
    thread.transfer_record.get().and_then(|record| record.outer.get())
}

fn is_sender(outer: Outer) -> bool {
    matches!(outer.continuation, Continuation::SendTransfer(_))
}

/// The thread is in the transfer again as it was before.
pub(super) fn restore(thread: ThreadRef) {
    let Some(record) = thread.transfer_record.get() else { return };
    let Some(outer) = record.outer.take() else { return };
    record.peer.set(Some(outer.peer));
    thread.set_partner(outer.partner);
    thread.receive_from.set(outer.receive_from);
    thread.receive_timeout.set(outer.receive_timeout);
    thread.receive_deadline.set(outer.receive_deadline);
    thread.set_flag(flag::PROPAGATED, outer.propagated);
    thread.set_flag(flag::REDIRECTED, outer.redirected);
    thread.set_continuation(outer.continuation);
}

/// Ends the inner IPC of `thread`, if it is in one, without a word to it: it is in the transfer
/// again.
pub(super) fn abandon_report(thread: ThreadRef) {
    if outer(thread).is_none() {
        return;
    }
    let scheduler = &processor::this().scheduler;
    cancel::forget_way(thread);
    match thread.continuation() {
        Continuation::Send(_) => send_queue::remove_sender(thread),
        Continuation::SendTransfer(_) | Continuation::ReceiveTransfer(_) => {
            let pager = thread.transfer_record.get().and_then(|record| record.peer.take());
            if let Some(pager) = pager {
                let failure = Failure::new(IpcErrorKind::Aborted);
                cancel::end_midway(pager, failure, cancel::tag_of([Some(thread), Some(pager)]));
            }
        }
        _ => {}
    }
    scheduler.timeouts.remove(thread);
    scheduler.ready.remove(thread);
    restore(thread);
}

/// How a transfer ends when the inner IPC of `thread` ends with `cause` instead of an answer: for
/// the sender.
pub(super) fn failure(sender: Option<ThreadRef>, cause: IpcErrorKind) -> Failure {
    let string = sender.and_then(|sender| sender.transfer_record.get()).map(|record| record.string.get());
    let moved = string.map_or(0, |string| string.moved);
    match (cause, string.and_then(|string| string.limit)) {
        (IpcErrorKind::Timeout, Some(limit)) => timeout(limit, moved),
        _ => Failure { offset: moved, ..Failure::new(IpcErrorKind::Aborted) },
    }
}
