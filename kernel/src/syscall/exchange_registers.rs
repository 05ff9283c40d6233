//! ExchangeRegisters(RAX dest, RSI control, RDX SP, R8 IP, R9 FLAGS, R10 handle, RDI pager): reads
//! and changes where a thread of the own space runs, and stops, resumes or aborts it (X.2 rules
//! 5.23 to 5.34).

use core::ptr::eq;

use x2::control::{ExchangeControl, ExchangeState};
use x2::{ErrorCode, ThreadId, utcb};

use super::{Call, Entry, Object, arguments, find_here, object, set_error};
use crate::processor;
use crate::scheduler::Next;
use crate::space::Space;
use crate::thread::{Continuation, Found, Here, IpcKind, Tcb, ThreadRef, Utcb, flag, ipc};

/// The results of the call in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Values {
    /// RAX: the other id (local or global) of the thread.
    pub id: u64,
    /// RSI: what the thread was doing.
    pub control: u64,
    /// RDX.
    pub sp: u64,
    /// R8.
    pub ip: u64,
    /// R9.
    pub flags: u64,
    /// R10.
    pub handle: u64,
    /// RDI.
    pub pager: u64,
}

/// The thread that a call reads that changes nothing, and what that thread is doing. Entry code
/// takes the other results out of its control block and its UTCB. `None`: the whole call has to be
/// made to know.
#[inline]
pub fn find_readable(current: ThreadRef, id: ThreadId) -> Option<(ThreadRef, ExchangeState)> {
    if !id.has_version()
        && let Some(thread) = current.space.get()?.remembered_local_id(id).and_then(Found::if_here)
        && thread.runs_at_user_level()
    {
        // The commonest case: a thread of the own space, which runs, and so has a UTCB.
        return Some((thread, ExchangeState::default()));
    }
    find_other_readable(current, id)
}

#[inline(never)]
fn find_other_readable(current: ThreadRef, id: ThreadId) -> Option<(ThreadRef, ExchangeState)> {
    let entry = Entry::of_handler();
    let thread = find_here(&entry, current, id)?;
    thread.utcb.get().filter(|_| thread.is_active())?;
    // Entry code reads it in this same entry.
    may_control(current, &thread).then(|| (thread.for_queues(), doing(&thread)))
}

/// What the thread is doing.
fn doing(thread: &Tcb) -> ExchangeState {
    // A transfer goes on while its side tells its pager of a missing page.
    let doing = ipc::transfer_continuation(thread).unwrap_or(thread.continuation());
    ExchangeState {
        halted: thread.has(flag::HALTED),
        receiving: doing.receiving().is_some(),
        sending: doing.sending().is_some() || doing == Continuation::RaiseException,
    }
}

impl Values {
    /// What the call tells of `thread`, which has the UTCB `block`, was named `id`, and is doing
    /// `state`.
    pub fn of(thread: &Tcb, block: &Utcb, id: ThreadId, state: ExchangeState) -> Self {
        let registers = &thread.registers;
        Self {
            id: if id.is_global() { thread.local_id.get() } else { thread.id().raw() },
            control: state.raw(),
            sp: registers.rsp.get(),
            ip: registers.rip.get(),
            flags: registers.rflags.get(),
            handle: block.read(utcb::USER_DEFINED_HANDLE),
            pager: block.read(utcb::PAGER),
        }
    }
}

struct Request<'entry> {
    thread: Here<'entry>,
    block: &'static Utcb,
    /// The id by which the caller names the thread.
    id: ThreadId,
    control: ExchangeControl,
    sp: u64,
    ip: u64,
    flags: u64,
    handle: u64,
    pager: ThreadId,
}

pub(super) fn system_call(current: ThreadRef) -> Next {
    let entry = Entry::of_handler();
    let arguments = arguments::ExchangeRegisters::of(current);
    let id = arguments.thread();
    let request = match object(&entry, current, id, Call::ExchangeRegisters) {
        Object::Elsewhere(next) => return next,
        Object::None => Err(ErrorCode::InvalidThread),
        Object::Here(thread) => decode(current, thread, id),
    };
    match request {
        Ok(request) => perform(current, &request),
        Err(error) => {
            set_error(current, error);
            arguments.set_thread(ThreadId::NIL.raw());
            Next::Return
        }
    }
}

fn decode<'entry>(
    current: ThreadRef,
    thread: Here<'entry>,
    id: ThreadId,
) -> Result<Request<'entry>, ErrorCode> {
    let block = thread.utcb.get().filter(|_| thread.is_active()).ok_or(ErrorCode::InvalidThread)?;
    if !may_control(current, &thread) {
        return Err(ErrorCode::InvalidThread);
    }
    // A local id means something in the caller's space only.
    let arguments = arguments::ExchangeRegisters::of(current);
    let pager = arguments.pager();
    let pager = match ipc::resolve_thread(current, pager) {
        Some(resolved) if pager.is_local() && !thread.shares_space_with(current) => resolved.id(),
        _ => pager,
    };
    Ok(Request {
        thread,
        block,
        id,
        control: arguments.control(),
        sp: arguments.sp(),
        ip: arguments.ip(),
        flags: arguments.flags(),
        handle: arguments.handle(),
        pager,
    })
}

/// Whether `current` may use the call on `thread`: one of its own space, of a space that its space
/// owns, or, where neither space is owned, one whose pager is in its space (the behaviour called
/// "pagerexregs").
fn may_control(current: ThreadRef, thread: &Tcb) -> bool {
    let (Some(own), Some(space)) = (current.space.get(), thread.space.get()) else { return false };
    eq(own, space)
        || space.is_owned_by(own)
        || !own.is_owned() && !space.is_owned() && is_paged_from(thread, current)
}

fn is_paged_from(thread: &Tcb, current: ThreadRef) -> bool {
    ipc::resolve_thread(thread, thread.pager()).is_some_and(|pager| pager.shares_space_with(current))
}

/// Whether `current` decides to which handlers `thread` reports, and whether it runs: in an owned
/// space only the owner does (K13). A program that could stop its threads could keep the owner from
/// ending them. One that could resume them, or end what the kernel does in their names, would make
/// threads run that the owner has stopped or not yet started.
fn governs(current: ThreadRef, thread: &Tcb) -> bool {
    thread.space.get().is_some_and(|space| {
        !space.is_owned() || current.space.get().is_some_and(|own| space.is_owned_by(own))
    })
}

/// Whether `thread` is in an IPC that its program has begun, and nothing that the kernel makes in
/// its name goes on in there.
fn is_in_own_ipc(thread: &Tcb) -> bool {
    let doing = thread.continuation();
    let kind = doing.sending().or(doing.receiving());
    kind == Some(IpcKind::User) && ipc::transfer_continuation(thread).is_none()
}

/// Carries the request out in the order of X.2 rule 5.32: read, abort, set, halt or resume.
fn perform(current: ThreadRef, request: &Request<'_>) -> Next {
    let &Request { ref thread, block, control, .. } = request;
    let registers = &thread.registers;
    let before = Values::of(thread, block, request.id, doing(thread));
    let governs = governs(current, thread);
    if control.contains(ExchangeControl::CANCEL_SEND) && (governs || is_in_own_ipc(thread)) {
        ipc::cancel_send(thread.for_queues());
    }
    if control.contains(ExchangeControl::CANCEL_RECEIVE) && (governs || is_in_own_ipc(thread)) {
        ipc::cancel_receive(thread.for_queues());
    }
    if control.contains(ExchangeControl::SP) {
        registers.rsp.set(request.sp);
    }
    if control.contains(ExchangeControl::IP) {
        // The new instruction pointer may be one that SYSRET cannot return to.
        thread.withdraw_offer();
        registers.rip.set(request.ip);
    }
    if control.contains(ExchangeControl::FLAGS) {
        registers.rflags.set(ipc::user_flags(request.flags));
    }
    if control.contains(ExchangeControl::HANDLE) {
        block.write(utcb::USER_DEFINED_HANDLE, request.handle);
    }
    if control.contains(ExchangeControl::PAGER) && governs {
        if thread.space.get().is_some_and(Space::is_owned) {
            thread.set_pager(request.pager);
        } else {
            // The kernel's copy is not set: it must not hold a program's choice when the space is
            // given an owner (K13).
            block.write(utcb::PAGER, request.pager.raw());
        }
    }
    if control.contains(ExchangeControl::HALT_VALID) && governs {
        set_halted(current, thread, control.contains(ExchangeControl::HALT));
    }
    let results = arguments::ExchangeRegisters::of(current);
    results.set_thread(before.id);
    results.set_control(before.control);
    results.set_sp(before.sp);
    results.set_ip(before.ip);
    results.set_flags(before.flags);
    results.set_handle(before.handle);
    results.set_pager(before.pager);
    if current.is_runnable() { Next::Return } else { Next::Schedule }
}

/// Stops or resumes user-level execution; IPC in progress goes on (X.2 rule 5.30).
fn set_halted(current: ThreadRef, thread: &Here<'_>, halted: bool) {
    thread.set_flag(flag::HALTED, halted);
    if eq(&**thread, current) {
        return;
    }
    let scheduler = &processor::this().scheduler;
    if thread.is_runnable() {
        scheduler.make_ready(thread.for_queues());
    } else if thread.continuation() == Continuation::ReturnToUser {
        scheduler.ready.withdraw(thread.for_queues());
    }
}
