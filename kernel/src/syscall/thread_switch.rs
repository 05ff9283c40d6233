//! ThreadSwitch(RDI dest): gives up the rest of the timeslice, to `dest` if that is ready here (X.2
//! rules 3.24 to 3.26). No errors.

use core::ptr::eq;

use super::arguments;
use crate::processor;
use crate::scheduler::Next;
use crate::thread::{Found, ThreadRef, ipc};

pub(super) fn system_call(current: ThreadRef) -> Next {
    let destination = ipc::resolve_thread(current, arguments::ThreadSwitch::of(current).thread());
    match destination.and_then(Found::if_here) {
        Some(destination) if eq(destination, current) => Next::Return,
        Some(destination)
            if destination.is_home()
                && destination.ready.is_queued()
                && ipc::reaches(current, destination) =>
        {
            Next::DonateTo(destination)
        }
        _ => processor::this().scheduler.yield_current(current),
    }
}
