//! IPC between processors: what a thread does before it leaves, while it is away from home, and when it arrives (see
//! `crate::thread::location`).

use core::ptr::eq;

use x2::{IpcErrorKind, MessageTag, ThreadId};

use super::rendezvous::{is_user_number, resolve_thread};
use super::{Failure, cancel, complete, stop_waiting, wait};
use crate::arch;
use crate::processor;
use crate::scheduler::Next;
use crate::scheduler::timeouts::{Microseconds, NEVER};
use crate::thread::table::threads;
use crate::thread::{Continuation, IpcKind, ThreadRef, flag, location};

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
    location::visit(current, processor, Continuation::SendAgain(kind))
}

/// `thread`, in its receive phase and away from home, waits here if it can, else goes home to look there.
pub fn wait_away(thread: ThreadRef, kind: IpcKind) {
    if !location::may_wait_away(thread, kind) {
        return processor::this().scheduler.make_ready(thread);
    }
    let deadline = thread.receive_deadline.get();
    if deadline == 0 || deadline != NEVER && deadline <= arch::clock() {
        complete::receive_failed(thread, kind, Failure::new(IpcErrorKind::Timeout), MessageTag::EMPTY);
        cancel::settle(thread);
    } else {
        wait(thread, kind, deadline);
    }
}

/// The thread in whose name `thread` is about to send, if it is here and waits for that to be done: it stops waiting, to go
/// where `thread` goes.
pub fn take_originator_along(thread: ThreadRef) -> Option<ThreadRef> {
    if !thread.has(flag::PROPAGATED) || thread.continuation() != Continuation::SendAgain(IpcKind::User) {
        return None;
    }
    let originator = resolve_thread(thread, thread.virtual_sender.get())?;
    let waits = !eq(originator, thread)
        && originator.is_here()
        && originator.awaits_message() == Some(IpcKind::User)
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

/// `thread`, which has been under way in its receive phase, learns if its partner has gone meanwhile.
pub fn check_partner(thread: ThreadRef) {
    let from = thread.partner();
    if is_user_number(from) && threads().find(from).is_none() {
        cancel::partner_disappears(thread, from);
    }
}
