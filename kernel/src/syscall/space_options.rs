//! SpaceOptions(RDI space, RSI option, RDX value, R8 value): ownership, confinement, foreign system
//! calls and kernel memory of a space (K1, K9, K13). Result in RAX, answers in RDX and R8.

use x2::extension::{MessageSource, Quota, SpaceOption, SystemCallMode, TableRequest};
use x2::{ErrorCode, ThreadId};

use super::{arguments, check_privilege, return_result};
use crate::interrupt::{self, Interrupt};
use crate::memory::Account;
use crate::scheduler::Next;
use crate::space::{CONTROL, SpaceRef};
use crate::thread::table::threads;
use crate::thread::{Found, ThreadRef};
use crate::{arch, mapping};

/// A valid call: the caller may make it, and its values are right.
enum Request {
    Information(SpaceRef),
    Owner(SpaceRef, Option<SpaceRef>),
    Quota(SpaceRef, Quota),
    Mode(SpaceRef, SystemCallMode),
    EmulationEntry(SpaceRef, u64),
    Open(SpaceRef, SpaceRef),
    Close(SpaceRef, SpaceRef),
    PhysicalAddresses(SpaceRef, bool),
    /// Says what may raise an interrupt, which has a message, and asks for the message.
    InterruptMessage(&'static Interrupt, MessageSource),
    InterruptTable(TableRequest),
}

pub(super) fn system_call(current: ThreadRef) -> Next {
    let control = CONTROL.lock();
    let result = decode(current).and_then(perform);
    drop(control);
    let answers = result.unwrap_or([0; 2]);
    return_result(current, result.map(|_| ()));
    let results = arguments::SpaceOptions::of(current);
    results.set_answer(answers[0]);
    results.set_second_answer(answers[1]);
    Next::Return
}

fn decode(current: ThreadRef) -> Result<Request, ErrorCode> {
    let arguments = arguments::SpaceOptions::of(current);
    let values = [arguments.value(), arguments.second_value()];
    let option = arguments.option();
    let privileged = check_privilege(current);
    // The options that are not about a space.
    if matches!(option, Some(SpaceOption::InterruptMessage | SpaceOption::InterruptTable)) {
        privileged?;
        return of_interrupts(option, values).ok_or(ErrorCode::InvalidParameter);
    }
    let space = space_of(arguments.space());
    let owns = space.is_ok_and(|space| current.space.get().is_some_and(|own| space.is_owned_by(own)));
    if !owns {
        privileged?;
    }
    let space = space?;
    match option {
        Some(SpaceOption::Information) => Ok(Request::Information(space)),
        Some(SpaceOption::SystemCallMode) => {
            let mode = SystemCallMode::from_word(values[0]).ok_or(ErrorCode::InvalidParameter)?;
            Ok(Request::Mode(space, mode))
        }
        Some(SpaceOption::EmulationEntry) if values[0] < arch::USER_END => {
            Ok(Request::EmulationEntry(space, values[0]))
        }
        Some(SpaceOption::Open) => {
            let other = space_of(ThreadId::from_raw(values[0]))?;
            match values[1] {
                0 => Ok(Request::Close(space, other)),
                1 => Ok(Request::Open(space, other)),
                _ => Err(ErrorCode::InvalidParameter),
            }
        }
        Some(SpaceOption::Owner) => {
            privileged?;
            let to_none = ThreadId::from_raw(values[0]).is_nil();
            // sigma0's space, from which everything is mapped, has no place for what others map.
            if space.memory.is_sigma0() && !to_none {
                return Err(ErrorCode::InvalidSpace);
            }
            Ok(Request::Owner(
                space,
                if to_none { None } else { Some(space_of(ThreadId::from_raw(values[0]))?) },
            ))
        }
        Some(SpaceOption::Quota) => {
            privileged?;
            let quota = Quota::from_word(values[0]).filter(|quota| quota.word() >= space.account().used());
            Ok(Request::Quota(space, quota.ok_or(ErrorCode::InvalidParameter)?))
        }
        Some(SpaceOption::PhysicalAddresses) => {
            privileged?;
            match values[0] {
                0 => Ok(Request::PhysicalAddresses(space, false)),
                1 => Ok(Request::PhysicalAddresses(space, true)),
                _ => Err(ErrorCode::InvalidParameter),
            }
        }
        _ => Err(ErrorCode::InvalidParameter),
    }
}

/// The request of an option about interrupts.
fn of_interrupts(option: Option<SpaceOption>, values: [u64; 2]) -> Option<Request> {
    if option == Some(SpaceOption::InterruptTable) {
        return TableRequest::from_words(values).map(Request::InterruptTable);
    }
    let source = MessageSource::from_word(values[1])?;
    Some(Request::InterruptMessage(interrupt::find_message(values[0])?, source))
}

/// The space of the thread that `id`, a global id, names.
fn space_of(id: ThreadId) -> Result<SpaceRef, ErrorCode> {
    Some(id)
        .filter(|id| id.is_global())
        .and_then(|id| threads().find(id))
        .and_then(Found::space)
        .ok_or(ErrorCode::InvalidSpace)
}

/// Performs the call. An owner that would make a circle or has not enough memory left, and an
/// opening too many, are found here, before any change.
fn perform(request: Request) -> Result<[u64; 2], ErrorCode> {
    match request {
        Request::Information(space) => {
            return Ok([space.account().used(), space.account().limit().word()]);
        }
        Request::Owner(space, owner) => {
            space.set_owner(owner)?;
            // A MapControl that has found the old owner, under this lock, ends before this call
            // does.
            drop(mapping::lock());
        }
        Request::Quota(space, quota) => {
            if space.account() == Account::KERNEL {
                // The initial servers' memory is the kernel's own.
                return Err(ErrorCode::InvalidParameter);
            }
            mapping::or_from_spare(|| space.set_quota(quota)).map_err(|_| ErrorCode::NoMemory)?;
        }
        Request::Mode(space, mode) => space.ownership.set_mode(mode),
        Request::EmulationEntry(space, entry) => space.ownership.set_emulation_entry(entry),
        Request::Open(space, other) => {
            mapping::or_from_spare(|| space.open(other)).map_err(|_| ErrorCode::NoMemory)?
        }
        Request::Close(space, other) => space.close(other),
        Request::InterruptMessage(interrupt, source) => return Ok(interrupt.tell_message(source)),
        Request::InterruptTable(request) => {
            return arch::interrupt_table(request).ok_or(ErrorCode::InvalidParameter);
        }
        Request::PhysicalAddresses(space, allowed) => space.ownership.set_sees_physical(allowed),
    }
    Ok([0; 2])
}
