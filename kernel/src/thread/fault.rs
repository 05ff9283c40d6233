//! Page faults of user code: reported to the pager, which answers with a mapping (X.2 rules 12.2,
//! 12.3).

use x2::Rights;

use super::{IpcKind, ThreadRef, exception, flag, ipc};
use crate::mapping;
use crate::memory::{OutOfMemory, VirtAddr};
use crate::scheduler::Next;
use crate::trace::{self, Event};

/// The current thread has accessed `address` without the right `access` (one bit).
///
/// sigma0's space is served by the kernel itself, idempotently; what that refuses (kernel memory)
/// goes to its pager, which it has none of.
pub fn page_fault(current: ThreadRef, address: u64, access: Rights) -> Next {
    trace::event(Event::PageFault, address, current.registers.rip.get());
    if let Some(space) = current.space.get()
        && space.memory.is_sigma0()
    {
        match mapping::sigma0_fault(space.memory, VirtAddr::new(address)) {
            Ok(true) => return Next::Return,
            Ok(false) => {}
            Err(OutOfMemory) => return exception::report_exception(current, exception::PAGE_FAULT, 0),
        }
    }
    current.fault[0].set(address);
    current.fault[1].set(access.bits());
    report_fault(current, IpcKind::PageFault)
}

/// Reports the fault whose words are in the TCB to the current thread's pager; without one the
/// thread is halted.
pub fn report_fault(current: ThreadRef, kind: IpcKind) -> Next {
    match current.pager() {
        pager if pager.is_nil() => halt(current),
        pager => ipc::send_report(current, kind, pager),
    }
}

/// The thread's fault or exception has no handler: the thread stops (X.2 rule 5.34).
pub(super) fn halt(current: ThreadRef) -> Next {
    current.set_flag(flag::HALTED, true);
    Next::Schedule
}
