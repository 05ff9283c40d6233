//! What ends a thread's wait without a partner: interrupts (X.2 rule 5.20) and notifications (K15).

use core::sync::atomic::Ordering;

use x2::{MessageTag, ThreadId, extension, utcb};

use super::{cancel, complete};
use crate::interrupt;
use crate::processor;
use crate::thread::{Continuation, IpcKind, ThreadRef};
use crate::trace::{self, Event};

/// Ends `thread`'s receive phase with the message of an interrupt (X.2 rule 5.20).
pub(super) fn deliver_interrupt(thread: ThreadRef, kind: IpcKind, interrupt: &'static interrupt::Interrupt) {
    interrupt.delivered();
    thread.set_continuation(Continuation::ReturnToUser);
    debug_assert!(kind == IpcKind::User, "only users wait for interrupts");
    complete::return_user(thread, x2::protocol::INTERRUPT_TAG, interrupt.id());
}

/// Ends `thread`'s receive phase with its pending notification, if there is one that the thread
/// accepts: the receive must be an open one of the thread's own, and BR0 must say so (K15).
pub(super) fn take_notification(thread: ThreadRef, kind: IpcKind) -> bool {
    // Relaxed: only the home processor takes bits; a bit that comes later finds the thread
    // receiving.
    if thread.notification.load(Ordering::Relaxed) == 0
        || kind != IpcKind::User
        || !thread.partner().is_any()
        || thread
            .utcb
            .get()
            .is_none_or(|block| block.read(utcb::buffer_register(0)) & extension::ACCEPT_NOTIFICATION == 0)
    {
        return false;
    }
    let bits = thread.notification.swap(0, Ordering::Relaxed);
    trace::event(Event::Notified, thread.id().raw(), bits);
    thread.set_continuation(Continuation::ReturnToUser);
    thread.registers.message[1].set(bits);
    complete::return_user(thread, NOTIFICATION_TAG, ThreadId::NIL);
    true
}

/// The message of a notification: MR1 = the bits.
const NOTIFICATION_TAG: MessageTag = MessageTag::new(extension::NOTIFICATION_LABEL, 1, 0);

/// Bits were set in `thread`'s notification word: it goes on if it waits for them. (A thread that
/// is about to look at what waits for it finds them itself.)
pub fn offer_notification(thread: ThreadRef) {
    let Some(kind) = thread.awaits_message() else { return };
    let scheduler = &processor::this().scheduler;
    if !thread.ready.is_queued() && take_notification(thread, kind) {
        scheduler.timeouts.remove(thread);
        if thread.is_runnable() {
            scheduler.make_ready(thread);
        }
    }
}

/// An interrupt has occurred whose handler may be waiting. Returns whether it was delivered.
pub fn offer_interrupt(handler: ThreadRef, interrupt: &'static interrupt::Interrupt) -> bool {
    let from = handler.partner();
    let Some(kind @ IpcKind::User) = handler.awaits_message() else { return false };
    if !from.is_any() && from != interrupt.id() {
        return false;
    }
    processor::this().scheduler.timeouts.remove(handler);
    deliver_interrupt(handler, kind, interrupt);
    cancel::make_ready_if_runnable(handler);
    true
}
