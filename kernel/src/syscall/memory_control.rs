//! MemoryControl(RDX control, attributes 0 to 3; fpages in MR0..MRk): memory types, for privileged
//! callers (X.2 rules 9.1 to 9.4). The stub has moved the attributes from RCX and R11 to RBP and
//! RDI. The result is in RDX; MR1 stays in RAX, the stub moves MR0 to RCX.

use x2::control::MemoryAttribute;
use x2::{ErrorCode, Fpage, FpageKind, Region};

use super::unmap::message_register;
use super::{arguments, check_privilege, set_error};
use crate::arch::page_entry::MemoryType;
use crate::mapping::{self, Progress};
use crate::scheduler::Next;
use crate::thread::{ThreadRef, Work, lifecycle};
use crate::{arch, memory};

/// Highest index of a message register in the control word.
const LAST_REGISTER: u64 = 63;

pub(super) fn system_call(current: ThreadRef) -> Next {
    match check(current) {
        Ok(()) => resume_memory_control(current, 0),
        Err(error) => finish(current, Err(error)),
    }
}

/// Checks everything before the first change.
fn check(current: ThreadRef) -> Result<(), ErrorCode> {
    check_privilege(current)?;
    let control = arguments::MemoryControl::of(current).control();
    if control > LAST_REGISTER {
        return Err(ErrorCode::InvalidParameter);
    }
    (0..=control as usize).try_for_each(|index| item(current, index).map(drop))
}

/// The memory that message register `index` names, and its type; `None` if it names none.
fn item(current: ThreadRef, index: usize) -> Result<Option<(Region, MemoryType)>, ErrorCode> {
    let fpage = Fpage::from_raw(message_register(current, index));
    let region = match fpage.kind() {
        FpageKind::Nil => return Ok(None),
        FpageKind::Memory(region) => region,
        FpageKind::Io(_) | FpageKind::Unusable => return Err(ErrorCode::InvalidParameter),
    };
    let arguments = arguments::MemoryControl::of(current);
    let attribute = match fpage.raw() & 3 {
        0 => arguments.attribute_0(),
        1 => arguments.attribute_1(),
        2 => arguments.attribute_2(),
        _ => arguments.attribute_3(),
    };
    let memory_type = match MemoryAttribute::from_raw(attribute).ok_or(ErrorCode::InvalidParameter)? {
        MemoryAttribute::Default | MemoryAttribute::WriteBack => MemoryType::USUAL,
        MemoryAttribute::Uncacheable => MemoryType::UNCACHEABLE,
        MemoryAttribute::WriteCombining => MemoryType::WRITE_COMBINING,
        MemoryAttribute::WriteThrough => MemoryType::WRITE_THROUGH,
        MemoryAttribute::WriteProtected => MemoryType::WRITE_PROTECTED,
    };
    Ok(Some((region, memory_type)))
}

/// Preemption point between fpages and within them.
pub(super) fn resume_memory_control(current: ThreadRef, first: u8) -> Next {
    let (Some(space), Some(record)) = (current.space.get(), current.transfer_record.get()) else {
        return Next::Return;
    };
    let last = (arguments::MemoryControl::of(current).control() & LAST_REGISTER) as usize;
    for index in usize::from(first)..=last {
        if index > usize::from(first) && arch::interrupt_pending() {
            return interrupted(current, index);
        }
        // The fpage is read again. If another thread has made nonsense of it since the check, it is
        // skipped.
        let Ok(Some((region, memory_type))) = item(current, index) else { continue };
        let progress =
            record.with_cursor(|cursor| mapping::set_memory_type(cursor, space.memory, region, memory_type));
        match progress {
            Progress::Done(Ok(())) => {}
            Progress::Done(Err(memory::OutOfMemory)) => return finish(current, Err(ErrorCode::NoMemory)),
            Progress::Preempted => return interrupted(current, index),
        }
    }
    finish(current, Ok(()))
}

/// The call goes on, later, with message register `index`.
fn interrupted(current: ThreadRef, index: usize) -> Next {
    lifecycle::save_work(current, Work::MemoryControl(index as u8));
    Next::Interrupted
}

fn finish(current: ThreadRef, result: Result<(), ErrorCode>) -> Next {
    if let Err(error) = result {
        set_error(current, error);
    } else {
        // Contents that were cached with the old attribute must not be found any more.
        arch::flush_caches();
    }
    let results = arguments::MemoryControl::of(current);
    results.set_result(u64::from(result.is_ok()));
    results.set_local_id(current.local_id.get());
    Next::Return
}
