//! Notify(RDI thread, RSI bits): ORs bits into a word of the thread's TCB, and wakes it if it waits for that (K15).
//! Never blocks, needs no memory.

use core::sync::atomic::Ordering;

use x2::{ErrorCode, ThreadId};

use super::{Call, follow, return_result};
use crate::scheduler::Next;
use crate::thread::{ThreadRef, ipc};
use crate::trace::{self, Event};

pub(super) fn system_call(current: ThreadRef) -> Next {
    if let Some(next) = follow(current, ThreadId::from_raw(current.registers.rdi.get()), Call::Notify) {
        return next;
    }
    let result = decode(current);
    return_result(current, result.map(|_| ()));
    match result {
        Ok(thread) => {
            // Relaxed: it is read where the thread is, and that is here now.
            thread.notification.fetch_or(current.registers.rsi.get(), Ordering::Relaxed);
            trace::event(Event::Notify, thread.id().raw(), current.registers.rsi.get());
            ipc::offer_notification(thread);
            Next::Return
        }
        Err(_) => Next::Return,
    }
}

fn decode(current: ThreadRef) -> Result<ThreadRef, ErrorCode> {
    ipc::resolve_thread(current, ThreadId::from_raw(current.registers.rdi.get()))
        .filter(|thread| thread.is_active() && ipc::reaches_directly(current, thread))
        .filter(|thread| may_notify(current, thread))
        .ok_or(ErrorCode::InvalidThread)
}

/// A confined program notifies of its owner's threads only those that handle what it does: others may keep their own counsel
/// with bits (K13).
fn may_notify(current: ThreadRef, thread: ThreadRef) -> bool {
    let (Some(own), Some(space)) = (current.space.get(), thread.space.get()) else { return false };
    let handles = || [current.exception_handler(), current.pager()].contains(&thread.id());
    !own.is_owned_by(space) || handles()
}
