//! ThreadControl(RDI dest, R8 space, RDX scheduler, RSI pager, R9 UTCB location): result in RAX.
//! Creates, activates, renames, moves and deletes threads, and associates interrupts. Privileged
//! (X.2 rules 5.4 to 5.22).

use core::ptr::eq;

use x2::{ErrorCode, ThreadId, utcb};

use super::{Call, Entry, arguments, check_privilege, return_result, space_control};
use crate::arch;
use crate::interrupt::{self, Interrupt};
use crate::mapping::{self, Progress};
use crate::memory::OutOfMemory;
use crate::scheduler::Next;
use crate::space::{CONTROL, Space, SpaceRef};
use crate::thread::table::threads;
use crate::thread::{Continuation, Found, Here, ThreadRef, Utcb, Work, ipc, lifecycle, location};

/// UtcbLocation "unchanged".
const UNCHANGED: u64 = u64::MAX;

/// A valid call: its parameters are right.
enum Request<'entry> {
    /// An interrupt gets this handler, or loses its handler.
    Associate(&'static Interrupt, Option<Found>),
    /// Deletion of a thread that does not exist.
    Nothing,
    Delete(Here<'entry>),
    /// The call is about a thread that is elsewhere: the current thread goes there.
    Follow(Found),
    /// A new thread; `space` is `None` for a new space.
    Create {
        id: ThreadId,
        space: Option<SpaceRef>,
        scheduler: Found,
        pager: Option<ThreadId>,
        location: Option<u64>,
    },
    /// Changes a thread; fields that are `None` stay as they are.
    Modify {
        thread: Here<'entry>,
        id: Option<ThreadId>,
        move_to: Option<SpaceRef>,
        scheduler: Option<Found>,
        pager: Option<ThreadId>,
        location: Option<u64>,
    },
}

pub(super) fn system_call(current: ThreadRef) -> Next {
    if let Some(next) = go_to_interrupt(current) {
        return next;
    }
    let entry = Entry::of_handler();
    // Under this lock no number changes from one thread to another.
    let control = CONTROL.lock();
    let result = match decode(&entry, current) {
        Ok(Request::Follow(thread)) => {
            drop(control);
            return thread.follow(current, Continuation::Call(Call::ThreadControl));
        }
        Ok(request) => perform(request),
        Err(error) => Err(error),
    };
    drop(control);
    match result {
        Ok(Some(work)) => resume_thread_control(current, work),
        Ok(None) => {
            return_result(current, Ok(()));
            Next::Unchanged
        }
        Err(error) => {
            return_result(current, Err(error));
            Next::Unchanged
        }
    }
}

/// What [`try_create`] and [`try_delete`] answer. `None`: nothing is done, and the call
/// goes on as any.
type Attempt = Option<Result<(), ErrorCode>>;

/// The parameters of a creation, in the order of ThreadControl's registers.
pub struct NewThread {
    /// RDI.
    pub id: ThreadId,
    /// RSI: the pager; nil makes the thread inactive.
    pub pager: ThreadId,
    /// RDX.
    pub scheduler: ThreadId,
    /// R8: a thread that names the space, not nil.
    pub specifier: ThreadId,
    /// R9.
    pub location: u64,
}

/// The most frequent creations, without a preemption point, for `current`, which has the privilege
/// and is at home: a new thread, in a space that exists, with all its memory at hand. Out of line
/// it calls only what is seldom needed, so that few registers are to be saved; what is rare or
/// wrong is left to [`system_call`]. Only the fast paths of entry code lead here: they are closed
/// while events are recorded.
#[inline(always)]
pub fn try_create(current: ThreadRef, new: &NewThread) -> Attempt {
    let &NewThread { id, pager, scheduler, specifier, location } = new;
    if !ipc::is_user_number(id) {
        return refuse(id);
    }
    let _control = CONTROL.try_lock()?;
    if threads().by_number(id.number()).is_some() {
        return None;
    }
    let own_id = current.id();
    // In the commonest case a thread makes another one in its own space, and is its scheduler.
    // Where the creator is active, others can be.
    let space = if specifier == own_id {
        current.space.get()
    } else {
        threads().find(specifier)?.space().filter(|space| pager.is_nil() || space.is_configured())
    }?;
    debug_assert!(pager.is_nil() || space.is_configured());
    let scheduler = if scheduler == own_id { Found::new(current) } else { threads().find(scheduler)? };
    if pager != own_id && !pager.is_nil() && !pager.is_global() {
        return None;
    }
    let utcb =
        if location == UNCHANGED && pager.is_nil() { None } else { Some(space.utcb_at_hand(location)?) };
    let home = current.home();
    let thread = lifecycle::allocate_at_hand(space.account(), pager, home)?;
    // POINT OF NO RETURN.
    lifecycle::install(thread, id, space, home);
    lifecycle::set_scheduler(thread, scheduler);
    if let Some(utcb) = utcb {
        let block = space.take_utcb(utcb);
        lifecycle::set_first_utcb(thread, id, home, block, location);
        if !pager.is_nil() {
            lifecycle::activate_new::<true>(thread, space, block, pager);
        }
    }
    Some(Ok(()))
}

/// The most frequent deletions, without a preemption point, as in [`try_create`]: the end of
/// the thread concerns no other thread ([`lifecycle::goes_unnoticed`]).
#[inline(always)]
pub fn try_delete(current: ThreadRef, id: ThreadId) -> Attempt {
    if !ipc::is_user_number(id) {
        return refuse(id);
    }
    let _control = CONTROL.try_lock()?;
    let thread = threads().find(id)?.if_here().filter(|&thread| !eq(thread, current))?;
    let space = thread.space.get().filter(|space| lifecycle::goes_unnoticed(thread, space))?;
    lifecycle::delete_unnoticed(thread, id.number(), space);
    Some(Ok(()))
}

/// What is answered to an id that is no user thread's.
#[inline(always)]
fn refuse(id: ThreadId) -> Attempt {
    if is_interrupt(id) { None } else { Some(Err(ErrorCode::InvalidThread)) }
}

/// If the call is about an interrupt that is elsewhere, the current thread goes there.
fn go_to_interrupt(current: ThreadRef) -> Option<Next> {
    let id = arguments::ThreadControl::of(current).thread();
    let interrupt = Some(id).filter(|&id| is_interrupt(id)).and_then(interrupt::find)?;
    let call = Continuation::Call(Call::ThreadControl);
    (!interrupt.is_here()).then(|| location::continue_on(current, interrupt.processor(), call))
}

/// Does what remains of a successful call: `work`, and what follows from it.
///
/// Preemption points.
pub(super) fn resume_thread_control(current: ThreadRef, work: Work) -> Next {
    let mut work = work;
    loop {
        let progress = match work {
            Work::EndRelations { thread, id, next, delete, left, processors } => {
                match lifecycle::end_relations(thread, id, next) {
                    Ok(()) if processors > 0 => {
                        let processors = processors - 1;
                        let rest = Work::EndRelations { thread, id, next: 0, delete, left, processors };
                        lifecycle::save_work(current, rest);
                        return location::continue_on(
                            current,
                            location::next_processor(),
                            Continuation::SystemCall,
                        );
                    }
                    Ok(()) if delete && lifecycle::finish_walk(thread) == Progress::Preempted => {
                        Err(Work::EndRelations { thread, id, next: u32::MAX, delete, left, processors })
                    }
                    Ok(()) if delete => {
                        let _control = CONTROL.lock();
                        Ok(lifecycle::remove(thread, id.number()))
                    }
                    Ok(()) => Ok(left),
                    Err(next) => Err(Work::EndRelations { thread, id, next, delete, left, processors }),
                }
            }
            Work::DestroySpace(space) => match destroy(current, space) {
                Progress::Done(()) => Ok(None),
                Progress::Preempted => Err(work),
            },
            Work::Redirect { .. } => match space_control::redirect_senders(current, work) {
                Ok(()) => Ok(None),
                Err(next) => return next,
            },
            _ if is_still_to_delete(current) => return system_call(current),
            _ => {
                return_result(current, Ok(()));
                return Next::Return;
            }
        };
        work = match progress {
            Ok(Some(space)) => Work::DestroySpace(space),
            Ok(None) => Work::Idle,
            Err(work) => {
                lifecycle::save_work(current, work);
                return Next::Interrupted;
            }
        };
    }
}

/// Whether the call is a deletion that has only finished what its thread had left undone.
fn is_still_to_delete(current: ThreadRef) -> bool {
    let arguments = arguments::ThreadControl::of(current);
    arguments.space().is_nil()
        && threads().by_number(arguments.thread().number()).is_some_and(|thread| !thread.id().is_nil())
}

fn destroy(current: ThreadRef, space: SpaceRef) -> Progress<()> {
    match current.transfer_record.get() {
        Some(record) => record.with_cursor(|cursor| space.destroy(cursor)),
        None => Progress::Done(()),
    }
}

/// Whether `id` has the form of an interrupt thread's id.
fn is_interrupt(id: ThreadId) -> bool {
    id.is_global() && id.number() < interrupt::system_base()
}

/// The argument `pager`, unless it is nil.
fn some_pager(pager: ThreadId) -> Option<ThreadId> {
    Some(pager).filter(|pager| !pager.is_nil())
}

/// The argument `location`, if it says something.
#[inline(always)]
fn some_location(location: u64) -> Option<u64> {
    Some(location).filter(|&location| location != UNCHANGED)
}

fn decode<'entry>(entry: &'entry Entry, current: ThreadRef) -> Result<Request<'entry>, ErrorCode> {
    check_privilege(current)?;
    let arguments = arguments::ThreadControl::of(current);
    let id = arguments.thread();
    if is_interrupt(id) {
        return decode_association(current, id, arguments.space(), arguments.pager());
    }
    decode_thread(entry, current, id)
}

/// [`decode`] where the call is about the thread `id`.
fn decode_thread<'entry>(
    entry: &'entry Entry,
    current: ThreadRef,
    id: ThreadId,
) -> Result<Request<'entry>, ErrorCode> {
    let arguments = arguments::ThreadControl::of(current);
    let (specifier, scheduler) = (arguments.space(), arguments.scheduler());
    let pager = arguments.pager();
    if !ipc::is_user_number(id) {
        return Err(ErrorCode::InvalidThread);
    }
    // Local ids are the caller's; they get the global form.
    let pager = if pager.is_local() {
        ipc::resolve_thread(current, pager).map_or(pager, |pager| pager.id())
    } else {
        pager
    };
    let (pager, location) = (some_pager(pager), some_location(arguments.utcb()));
    let Some(found) = threads().by_number(id.number()) else {
        return decode_creation(current, id, specifier, scheduler, pager, location);
    };
    if found.found_id().is_nil() {
        // The thread's deletion is under way.
        return Err(ErrorCode::InvalidThread);
    }
    let Some(thread) = found.here(entry) else { return Ok(Request::Follow(found)) };
    if !specifier.is_nil() {
        decode_modification(current, thread, id, specifier, scheduler, pager, location)
    } else if eq(&*thread, current) {
        Err(ErrorCode::InvalidThread)
    } else {
        Ok(Request::Delete(thread))
    }
}

/// Checks the association of an interrupt with a handler (X.2 rule 5.19).
fn decode_association(
    current: ThreadRef,
    id: ThreadId,
    specifier: ThreadId,
    pager: ThreadId,
) -> Result<Request<'static>, ErrorCode> {
    let interrupt = interrupt::find(id).ok_or(ErrorCode::InvalidThread)?;
    if specifier != id {
        return Err(ErrorCode::InvalidSpace);
    }
    if pager == id {
        return Ok(Request::Associate(interrupt, None));
    }
    let handler = ipc::resolve_thread(current, pager).ok_or(ErrorCode::InvalidThread)?;
    Ok(Request::Associate(interrupt, Some(handler)))
}

fn decode_creation(
    current: ThreadRef,
    id: ThreadId,
    specifier: ThreadId,
    scheduler: ThreadId,
    pager: Option<ThreadId>,
    location: Option<u64>,
) -> Result<Request<'static>, ErrorCode> {
    if specifier.is_nil() {
        return Ok(Request::Nothing);
    }
    let space = if specifier == id { None } else { Some(space_of(specifier)?) };
    if pager.is_some() && !space.is_some_and(Space::is_configured) {
        return Err(ErrorCode::InvalidSpace);
    }
    let scheduler = decode_scheduler(current, scheduler)?.ok_or(ErrorCode::InvalidScheduler)?;
    match location {
        Some(location) if space.is_some_and(|space| !may_be_given(space, location)) => {
            return Err(ErrorCode::InvalidUtcbArea);
        }
        None if pager.is_some() => return Err(ErrorCode::InvalidUtcbArea),
        _ => {}
    }
    Ok(Request::Create { id, space, scheduler, pager, location })
}

fn decode_modification<'entry>(
    current: ThreadRef,
    thread: Here<'entry>,
    id: ThreadId,
    specifier: ThreadId,
    scheduler: ThreadId,
    pager: Option<ThreadId>,
    location: Option<u64>,
) -> Result<Request<'entry>, ErrorCode> {
    let own = thread.space.get().ok_or(ErrorCode::InvalidThread)?;
    let space = if specifier == id { own } else { space_of(specifier)? };
    let move_to = Some(space).filter(|space| !eq(*space, own));
    let activated = pager.is_some() && !thread.is_active();
    if (activated || move_to.is_some()) && !space.is_configured() {
        return Err(ErrorCode::InvalidSpace);
    }
    let scheduler = decode_scheduler(current, scheduler)?;
    let present = thread.utcb.get().map(|_| thread.local_id.get() - utcb::MR0_OFFSET);
    let location = location.filter(|&location| move_to.is_some() || Some(location) != present);
    let kept = thread.kept_location().filter(|_| activated && move_to.is_none() && present.is_none());
    let location = location.or(kept);
    let needs_location = match move_to {
        Some(_) => thread.is_active() || activated,
        None => activated && present.is_none(),
    };
    let allowed = match location {
        Some(location) => may_be_given(space, location) && (move_to.is_some() || !thread.is_active()),
        None => !needs_location,
    };
    if !allowed {
        return Err(ErrorCode::InvalidUtcbArea);
    }
    let id = Some(id).filter(|&id| id != thread.id());
    Ok(Request::Modify { thread, id, move_to, scheduler, pager, location })
}

/// Whether a thread can be given the location in `space`. As long as that has no areas, any is kept
/// until the thread's activation, which has it checked (X.2 rule 5.11).
fn may_be_given(space: SpaceRef, location: u64) -> bool {
    !space.is_configured() || space.is_utcb_location(location)
}

/// The space of the user thread that `specifier` names.
fn space_of(specifier: ThreadId) -> Result<SpaceRef, ErrorCode> {
    threads().find(specifier).and_then(Found::space).ok_or(ErrorCode::InvalidSpace)
}

/// The scheduler; `None` if it is not to change. Most often it is the caller itself.
fn decode_scheduler(current: ThreadRef, scheduler: ThreadId) -> Result<Option<Found>, ErrorCode> {
    if scheduler == current.id() {
        return Ok(Some(Found::new(current)));
    }
    if scheduler.is_nil() {
        return Ok(None);
    }
    ipc::resolve_thread(current, scheduler).map(Some).ok_or(ErrorCode::InvalidScheduler)
}

/// Performs the call; all that can fail comes first. Returns what is left to do; `None` if there is
/// nothing, and no other thread has anything to do because of the call.
fn perform(request: Request<'_>) -> Result<Option<Work>, ErrorCode> {
    match request {
        Request::Nothing | Request::Follow(_) => return Ok(None),
        Request::Associate(interrupt, Some(handler)) => interrupt.associate(handler),
        Request::Associate(interrupt, None) => interrupt.disassociate(),
        Request::Delete(thread) => {
            let thread = thread.for_queues();
            if lifecycle::has_unfinished(thread)
                && let Some(unfinished) = lifecycle::take_unfinished(thread)
            {
                return Ok(Some(unfinished));
            }
            let id = thread.id();
            let alone = thread.has_not_started();
            lifecycle::retire_id(thread, None);
            if lifecycle::has_no_relations(thread) {
                return match lifecycle::remove(thread, id.number()) {
                    Some(left) => Ok(Some(Work::DestroySpace(left))),
                    None => Ok((!alone).then_some(Work::Idle)),
                };
            }
            return Ok(Some(lifecycle::relations_to_end(thread, id, true, None)));
        }
        Request::Create { id, space, scheduler, pager, location } => {
            create(id, space, scheduler, pager, location)?;
            return Ok(None);
        }
        Request::Modify { thread, id, move_to, scheduler, pager, location } => {
            return modify(thread.for_queues(), id, move_to, scheduler, pager, location).map(Some);
        }
    }
    Ok(Some(Work::Idle))
}

/// Takes the UTCB that a thread is to get into use, in a space that has its areas. `space` pays for
/// it.
fn reserve_utcb(space: SpaceRef, location: Option<u64>) -> Result<Option<(&'static Utcb, u64)>, ErrorCode> {
    let Some(location) = location.filter(|_| space.is_configured()) else { return Ok(None) };
    let block = mapping::or_from_spare(|| space.allocate_utcb(location));
    let block = block.map_err(|_: OutOfMemory| ErrorCode::NoMemory)?.ok_or(ErrorCode::InvalidUtcbArea)?;
    Ok(Some((block, location)))
}

/// Creates a thread, active if there is a pager; `space` is `None` for a new space.
fn create(
    id: ThreadId,
    space: Option<SpaceRef>,
    scheduler: Found,
    pager: Option<ThreadId>,
    location: Option<u64>,
) -> Result<(), ErrorCode> {
    let Some(space) = space else {
        return mapping::or_from_spare(|| lifecycle::create_with_space(id, scheduler, location))
            .map_err(|_: OutOfMemory| ErrorCode::NoMemory);
    };
    let pager = pager.unwrap_or(ThreadId::NIL);
    let (here, home) = (arch::cpu_number() as u16, lifecycle::creators_home());
    let place = reserve_utcb(space, location)?;
    let thread = mapping::or_from_spare(|| lifecycle::allocate(space.account(), pager, here));
    let Ok(thread) = thread else {
        if let Some((block, location)) = place {
            space.free_utcb(block, location);
        }
        return Err(ErrorCode::NoMemory);
    };
    // POINT OF NO RETURN.
    lifecycle::install_recorded(thread, id, space, home);
    lifecycle::set_scheduler(thread, scheduler);
    if !space.is_configured() {
        thread.keep_location(location);
    }
    if let Some((block, location)) = place {
        lifecycle::set_first_utcb(thread, id, home, block, location);
        if !pager.is_nil() {
            lifecycle::activate_new::<false>(thread, space, block, pager);
        }
    }
    Ok(())
}

fn modify(
    thread: ThreadRef,
    id: Option<ThreadId>,
    move_to: Option<SpaceRef>,
    scheduler: Option<Found>,
    pager: Option<ThreadId>,
    location: Option<u64>,
) -> Result<Work, ErrorCode> {
    let space = move_to.or(thread.space.get()).ok_or(ErrorCode::InvalidThread)?;
    let place = reserve_utcb(space, location)?;
    // POINT OF NO RETURN.
    if let Some(scheduler) = scheduler {
        lifecycle::set_scheduler(thread, scheduler);
    }
    let mut left = None;
    if move_to.is_some() {
        left = lifecycle::relocate(thread, space, place);
    } else if let Some((block, location)) = place {
        lifecycle::drop_utcb(thread);
        lifecycle::set_utcb(thread, block, location);
    } else if location.is_some() {
        thread.keep_location(location);
    }
    let before = thread.id();
    let work = if id.is_some() {
        lifecycle::retire_id(thread, id);
        lifecycle::relations_to_end(thread, before, false, left)
    } else if move_to.is_some() {
        // A thread that has moved has left the originators of propagated messages in its old space:
        // they are no longer its partners.
        lifecycle::relations_to_end(thread, ThreadId::NIL, false, left)
    } else {
        Work::Idle
    };
    match pager {
        Some(pager) if thread.is_active() => thread.set_pager(pager),
        Some(pager) => lifecycle::activate(thread, pager),
        None => {}
    }
    Ok(work)
}
