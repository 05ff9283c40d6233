//! IPC between processors: what a thread does before it leaves, while it is away from home, and
//! when it arrives (see `crate::thread::location`).

use core::ptr::eq;

use x2::{IpcErrorKind, MessageTag, ThreadId};

use super::rendezvous::{is_user_number, resolve_thread};
use super::{Failure, cancel, complete, stop_waiting, wait};
use crate::arch;
use crate::processor;
use crate::scheduler::Next;
use crate::scheduler::timeouts::{Microseconds, NEVER};
use crate::thread::table::threads;
use crate::thread::{Continuation, Found, IpcKind, ThreadRef, flag, location};

/// The current thread goes to another processor to send to `partner` there, until `deadline`.
#[cold]
pub(super) fn send_elsewhere(
    current: ThreadRef,
    kind: IpcKind,
    partner: ThreadId,
    deadline: Microseconds,
    processor: u16,
) -> Next {
    current.set_partner(partner);
    current.send_deadline.set(deadline);
    location::continue_on(current, processor, Continuation::SendAgain(kind))
}

/// Where the current thread goes next before it sends in the name of `originator`: to where the
/// originator is located, and if that has left there, to its home. An originator that waits for
/// this message to be sent comes along, because its partner changes with the delivery (X.2 rule
/// 7.16). If it begins to wait only later, it does so at home, and finds that the message is being
/// sent.
pub(super) fn way_by(current: ThreadRef, originator: Found) -> Option<u16> {
    let is_first = !current.has(flag::SAW_ORIGINATOR);
    current.set_flag(flag::SAW_ORIGINATOR, true);
    if originator.is_here() || originator.is_home() && !is_first {
        current.set_flag(flag::SAW_ITS_HOME, true);
    }
    if current.has(flag::SAW_ITS_HOME) {
        return None;
    }
    Some(if is_first { originator.processor() } else { originator.home() })
}

/// Where `thread`, which is about to wait for `partner` at home, goes instead: to where that is, if
/// that may be about to send in its name (see [`way_by`]). Not if it must look through its senders
/// when its partner changes.
#[inline]
pub(super) fn way_to_propagating(thread: ThreadRef, kind: IpcKind) -> Option<u16> {
    if arch::cpu_count() == 1 { None } else { find_way_to_propagating(thread, kind) }
}

fn find_way_to_propagating(thread: ThreadRef, kind: IpcKind) -> Option<u16> {
    let from = thread.partner();
    let stays = thread.has(flag::PROPAGATED_SENDERS) && thread.senders.first().is_some();
    if kind == IpcKind::Start || stays || !is_user_number(from) {
        return None;
    }
    let partner = threads().find(from)?;
    (!partner.is_here() && partner.has(flag::SAW_ORIGINATOR)).then(|| partner.processor())
}

/// `thread`, in its receive phase and away from home, waits here if it can, else goes home to look
/// there.
pub fn wait_away(thread: ThreadRef, kind: IpcKind) {
    if !location::may_wait_away(thread, kind) {
        return processor::this().scheduler.make_ready(thread);
    }
    let deadline = thread.receive_deadline.get();
    if deadline == 0 || deadline != NEVER && deadline <= arch::clock() {
        complete::receive_failed(thread, kind, Failure::new(IpcErrorKind::Timeout), MessageTag::EMPTY);
        cancel::make_ready_if_runnable(thread);
    } else {
        wait(thread, kind, deadline);
    }
}

/// The thread in whose name `thread` is about to send, if it is here and waits for that to be done:
/// it stops waiting, to go where `thread` goes.
pub fn take_originator_along(thread: ThreadRef) -> Option<ThreadRef> {
    if !thread.has(flag::PROPAGATED) || thread.continuation() != Continuation::SendAgain(IpcKind::User) {
        return None;
    }
    let originator = resolve_thread(thread, thread.virtual_sender.get())?.if_here()?;
    let waits = !eq(originator, thread)
        && originator.awaits_message().is_some_and(|kind| kind != IpcKind::Start)
        && originator.partner() == thread.id()
        && !originator.ready.is_queued();
    waits.then(|| {
        stop_waiting(originator);
        originator
    })
}

/// `sender`, which waits in the queue of a thread that moves to `processor`, goes there to wait.
pub fn follow_receiver(sender: ThreadRef, processor: u16) {
    if cancel::stop_waiting_to_send(sender) {
        sender.set_flag(flag::WAITS_AT_HOME, true);
        location::depart(sender, processor);
    }
}

/// `thread`, which has been under way in its receive phase, learns if its partner has gone
/// meanwhile.
pub fn check_partner(thread: ThreadRef) {
    let from = thread.partner();
    if is_user_number(from) && threads().find(from).is_none() {
        cancel::partner_disappears(thread, from);
    }
}
