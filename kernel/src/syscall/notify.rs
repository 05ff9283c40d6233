//! Notify(RDI thread, RSI bits): ORs bits into a word of the thread's TCB, and wakes it if it waits
//! for that (K15). Never blocks, needs no memory.

use core::sync::atomic::Ordering;

use x2::ErrorCode;

use super::{Call, Entry, Object, arguments, object, return_result};
use crate::scheduler::Next;
use crate::thread::{Here, Tcb, ThreadRef, ipc};
use crate::trace::{self, Event};

pub(super) fn system_call(current: ThreadRef) -> Next {
    let entry = Entry::of_handler();
    let arguments = arguments::Notify::of(current);
    let thread = match object(&entry, current, arguments.thread(), Call::Notify) {
        Object::Elsewhere(next) => return next,
        Object::Here(thread) => Some(thread).filter(|thread| may_be_notified(current, thread)),
        Object::None => None,
    };
    return_result(current, if thread.is_some() { Ok(()) } else { Err(ErrorCode::InvalidThread) });
    if let Some(thread) = thread {
        // Relaxed: the word is read where the thread is, and that is here now.
        thread.notification.fetch_or(arguments.bits(), Ordering::Relaxed);
        trace::event(Event::Notify, thread.id().raw(), arguments.bits());
        ipc::offer_notification(thread.for_queues());
    }
    Next::Return
}

fn may_be_notified(current: ThreadRef, thread: &Here<'_>) -> bool {
    thread.is_active() && ipc::reaches_directly(current, thread.into()) && may_notify(current, thread)
}

/// A confined program may notify only those threads of its owner that handle its faults and calls:
/// others may use their bits among themselves (K13).
fn may_notify(current: ThreadRef, thread: &Tcb) -> bool {
    let (Some(own), Some(space)) = (current.space.get(), thread.space.get()) else { return false };
    let handles = || [current.exception_handler(), current.pager()].contains(&thread.id());
    !own.is_owned_by(space) || handles()
}
