//! Unmap(RDX control; fpages in MR0..MRk): revokes rights of what was mapped from the caller's
//! pages, and reports their use (X.2 rules 8.2 to 8.8). No errors, no privilege.

use x2::{Fpage, utcb};

use super::arguments;
use crate::arch;
use crate::mapping::{self, Progress};
use crate::scheduler::Next;
use crate::thread::{ThreadRef, Work, lifecycle};
use crate::trace::{self, Event};

pub(super) fn system_call(current: ThreadRef) -> Next {
    resume_unmap(current, 0)
}

/// Unmap of `fpage` alone, with `flush` or not, if it needs no preemption point
/// ([`mapping::try_unmap_page`]). Returns what becomes of MR0. `None`: nothing was done. Entry code
/// tries this first.
#[inline(always)]
pub fn try_one(current: ThreadRef, fpage: Fpage, flush: bool) -> Option<Fpage> {
    let space = current.space.get()?;
    let _alone = mapping::try_lock()?;
    let status = mapping::try_unmap_page(space.memory, fpage, flush)?;
    Some(fpage.with_rights(status))
}

/// Preemption point between fpages and within them.
pub(super) fn resume_unmap(current: ThreadRef, first: u8) -> Next {
    let arguments = arguments::Unmap::of(current);
    let control = arguments.control();
    let (Some(space), Some(record)) = (current.space.get(), current.transfer_record.get()) else {
        return Next::Return;
    };
    for index in usize::from(first)..control.fpages() {
        if index > usize::from(first) && arch::interrupt_pending() {
            return interrupted(current, index);
        }
        let fpage = Fpage::from_raw(message_register(current, index));
        trace::event(Event::Unmap, fpage.raw(), control.raw());
        match record.with_cursor(|cursor| mapping::unmap(cursor, space.memory, fpage, control.flush())) {
            Progress::Done(status) => set_message_register(current, index, fpage.with_rights(status).raw()),
            Progress::Preempted => return interrupted(current, index),
        }
    }
    arguments.set_local_id(current.local_id.get());
    Next::Return
}

/// The call goes on, later, with message register `index`.
fn interrupted(current: ThreadRef, index: usize) -> Next {
    lifecycle::save_work(current, Work::Unmap(index as u8));
    Next::Interrupted
}

/// Message register `index` of a call that has the first ones in registers.
pub(super) fn message_register(thread: ThreadRef, index: usize) -> u64 {
    match thread.registers.message.get(index) {
        Some(register) => register.get(),
        None => thread.utcb.get().map_or(0, |block| block.read(utcb::message_register(index))),
    }
}

fn set_message_register(thread: ThreadRef, index: usize, value: u64) {
    match thread.registers.message.get(index) {
        Some(register) => register.set(value),
        None => {
            if let Some(block) = thread.utcb.get() {
                block.write(utcb::message_register(index), value);
            }
        }
    }
}
