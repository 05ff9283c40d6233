//! SpaceControl(RDI space, RSI control, RDX KIP area, R8 UTCB area, R9 redirector): result in RAX,
//! old control (none is defined) in RDX. Privileged (X.2 rules 6.1 to 6.7).

use core::ptr::eq;

use x2::{ErrorCode, Fpage, Region, Rights, ThreadId, kip};

use super::{arguments, check_privilege, return_result};
use crate::arch;
use crate::mapping::{self, Progress};
use crate::memory::PAGE_BITS;
use crate::scheduler::Next;
use crate::space::{CONTROL, SpaceRef};
use crate::thread::table::threads;
use crate::thread::{Continuation, Found, ThreadRef, Work, ipc, lifecycle, location, mark};

/// Areas to set; `None` leaves an area as it is.
struct Request {
    space: SpaceRef,
    kip: Option<Region>,
    utcbs: Option<Region>,
    redirector: Redirector,
}

/// What the call does with the space's redirector.
#[derive(Clone, Copy)]
enum Redirector {
    Unchanged,
    None,
    Thread(Found),
}

pub(super) fn system_call(current: ThreadRef) -> Next {
    resume_space_control(current, 0, 0)
}

/// Goes on with taking UTCBs from thread number `next` on, and flushing the area with index
/// `first`. What was decoded before is decoded again: meanwhile the space may have changed, or
/// gone.
///
/// Preemption point.
pub(super) fn resume_space_control(current: ThreadRef, next: u32, first: u8) -> Next {
    let control = CONTROL.lock();
    let result = match decode(current) {
        Ok(request) => match prepare(current, &request, next, first) {
            Progress::Done(()) => request
                .space
                .configure(request.kip, request.utcbs)
                .map(|()| redirect(&request).then_some(request.space))
                .map_err(|_| ErrorCode::NoMemory),
            Progress::Preempted => return Next::Interrupted,
        },
        Err(error) => {
            current.transfer_record.get().inspect(|record| record.cancel());
            Err(error)
        }
    };
    drop(control);
    match result {
        Ok(Some(space)) => {
            let processors = lifecycle::other_processors();
            go_on_redirecting(current, Work::Redirect { space, next: 0, processors, inherited: false })
        }
        result => end_call(current, result.map(drop)),
    }
}

fn end_call(current: ThreadRef, result: Result<(), ErrorCode>) -> Next {
    return_result(current, result);
    arguments::SpaceControl::of(current).set_control(0);
    Next::Return
}

/// The areas and the redirector are set; `work`, of kind `Redirect`, is what remains.
pub(super) fn go_on_redirecting(current: ThreadRef, work: Work) -> Next {
    match redirect_senders(current, work) {
        Ok(()) => end_call(current, Ok(())),
        Err(next) => next,
    }
}

/// Threads of a space whose redirector has changed that wait to send look where their messages go
/// now (X.2 rule 6.16). What others were passing on for them may be their own message now (rule
/// 7.14). The threads that are here look first, then those on other processors; a thread that is
/// under way looks when it arrives. `work`, of kind `Redirect`, is what remains of that. An error
/// is what happens before the rest.
///
/// Preemption point, after every sixteenth thread.
pub(super) fn redirect_senders(current: ThreadRef, work: Work) -> Result<(), Next> {
    let Work::Redirect { space, next, processors, inherited } = work else { return Ok(()) };
    for (index, (number, thread)) in threads().iter_from(next).enumerate() {
        if index % lifecycle::LOOKED_AT == lifecycle::LOOKED_AT - 1 && arch::interrupt_pending() {
            lifecycle::save_work(current, Work::Redirect { space, next: number, processors, inherited });
            return Err(Next::Interrupted);
        }
        let Some(thread) = thread.if_here() else { continue };
        if thread.space.get().is_some_and(|other| eq(other, space)) {
            ipc::redirector_changes(thread);
        } else {
            ipc::originator_changes(thread);
        }
    }
    if processors == 0 {
        return Ok(());
    }
    let processors = processors - 1;
    lifecycle::save_work(current, Work::Redirect { space, next: 0, processors, inherited });
    Err(location::continue_on(current, location::next_processor(), Continuation::SystemCall))
}

/// Makes sure that the areas can be set: no thread has a UTCB in the present area if that changes
/// (X.2 rule 6.4), and nothing is mapped in the new ones.
fn prepare(current: ThreadRef, request: &Request, next: u32, first: u8) -> Progress<()> {
    let moves = request.utcbs.is_some_and(|area| request.space.utcb_area() != Some(area));
    if moves && let Err(next) = lifecycle::drop_utcbs_of(request.space, next) {
        lifecycle::save_work(current, Work::DropUtcbs(next));
        return Progress::Preempted;
    }
    flush(current, request, first)
}

/// Flushes what the user has mapped in the areas that will be the kernel's (X.2 rule 6.4).
fn flush(current: ThreadRef, request: &Request, first: u8) -> Progress<()> {
    let Some(record) = current.transfer_record.get() else { return Progress::Done(()) };
    let areas = [request.kip, request.utcbs];
    for (index, area) in areas.into_iter().enumerate().skip(usize::from(first)) {
        let Some(area) = area else { continue };
        let fpage = Fpage::from_region(area, Rights::ALL);
        let memory = request.space.memory;
        if record.with_cursor(|cursor| mapping::unmap(cursor, memory, fpage, true)) == Progress::Preempted {
            lifecycle::save_work(current, Work::FlushAreas(index as u8));
            return Progress::Preempted;
        }
    }
    // If another call has set an area meanwhile, its walk is left unfinished: the next walk starts
    // from the beginning.
    record.cancel();
    Progress::Done(())
}

fn decode(current: ThreadRef) -> Result<Request, ErrorCode> {
    check_privilege(current)?;
    let arguments = arguments::SpaceControl::of(current);
    let space = Some(arguments.space())
        .filter(|id| id.is_global())
        .and_then(|id| threads().find(id))
        .and_then(Found::space)
        .ok_or(ErrorCode::InvalidSpace)?;
    let redirector = redirector(current, arguments.redirector())?;
    if space.has_active_threads() {
        return Ok(Request { space, kip: None, utcbs: None, redirector });
    }
    let utcb_area = arguments.utcb_area();
    let utcbs = match utcb_area.region() {
        _ if utcb_area.is_nil() => None,
        Some(area) if is_user(area) => Some(area),
        _ => return Err(ErrorCode::InvalidUtcbArea),
    };
    let kip_area = arguments.kip_area();
    let kip = match kip_area.region() {
        _ if kip_area.is_nil() => None,
        Some(area) if is_user(area) && area.size_log2 >= kip::SIZE_LOG2 => Some(area),
        _ => return Err(ErrorCode::InvalidKipArea),
    };
    let kip_then = kip.or(space.kip_area());
    let utcbs_then = utcbs.or(space.utcb_area());
    if kip_then.is_some_and(|kip| utcbs_then.is_some_and(|utcbs| kip.overlaps(utcbs))) {
        return Err(ErrorCode::InvalidKipArea);
    }
    Ok(Request { space, kip, utcbs, redirector })
}

/// Whether the area lies in the user's part of the address space.
fn is_user(area: Region) -> bool {
    area.size_log2 >= PAGE_BITS && area.last() < arch::USER_END
}

/// What the redirector argument asks for (X.2 rule 6.7). An id that names no thread is an error: it
/// must not fail silently. Nilthread and the ids that can name none change nothing.
fn redirector(current: ThreadRef, id: ThreadId) -> Result<Redirector, ErrorCode> {
    if id.is_any() {
        return Ok(Redirector::None);
    }
    if !id.is_local() && !ipc::is_user_number(id) {
        return Ok(Redirector::Unchanged);
    }
    ipc::resolve_thread(current, id).map(Redirector::Thread).ok_or(ErrorCode::InvalidThread)
}

/// Sets the redirector. Returns whether it has changed.
fn redirect(request: &Request) -> bool {
    let redirector = match request.redirector {
        Redirector::Unchanged => return false,
        Redirector::None => None,
        Redirector::Thread(thread) => {
            thread.mark(mark::NAMED);
            Some(thread.id())
        }
    };
    request.space.set_redirector(redirector)
}
