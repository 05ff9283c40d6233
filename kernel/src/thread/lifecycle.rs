//! How threads come into being, become active, change their names and homes, and go.
//!
//! Whatever can fail is allocated before anything changes: [`allocate`] and [`create_with_space`]
//! fail without trace, the rest cannot fail (K4).

use core::cell::UnsafeCell;
use core::mem::{MaybeUninit, offset_of};
use core::ptr::{NonNull, eq};

use x2::control::{DEFAULT_PRIORITY, DEFAULT_TIMESLICE};
use x2::{ThreadId, utcb};

use super::table::threads;
use super::tcb::{TCB_SIZE, Tcb, mark, own_gs_base};
use super::transfer_record::{TRANSFER_RECORD_SIZE, TransferRecord, Work};
use super::{Continuation, Found, ThreadRef, Utcb, breakpoints, ipc};
use crate::arch::ProgramBreakpoints;
use crate::mapping::{Cursor, Progress};
use crate::memory::{Account, ObjectSlab, OutOfMemory, Use};
use crate::scheduler::timeouts::NEVER;
use crate::space::{CONTROL, Space, SpaceRef};
use crate::trace::{self, Event};
use crate::{arch, interrupt, processor};

/// How many threads a walk through all of them looks at between two polls.
pub const LOOKED_AT: usize = 16;

/// The memory of a thread. All of it is taken when the thread is made, so that nothing can run out
/// later (K4).
#[repr(C)]
struct Memory {
    tcb: Tcb,
    /// The transfer record, written when the thread is activated.
    record: UnsafeCell<MaybeUninit<TransferRecord>>,
}

const _: () = assert!(offset_of!(Memory, tcb) == 0);
const _: () = assert!(size_of::<Memory>() == THREAD_SIZE);

/// What a thread costs, in bytes: TCB and transfer record, in whole cache lines.
pub const THREAD_SIZE: usize = (TCB_SIZE + TRANSFER_RECORD_SIZE).next_multiple_of(64);

/// While a thread's memory is free the slab keeps its link in the saved registers.
static THREADS: ObjectSlab<Memory, { offset_of!(Tcb, registers) as u32 }> = ObjectSlab::new(Use::Threads);

/// How many TCBs are in use, for leak checks.
pub fn threads_in_use() -> u32 {
    let _control = CONTROL.lock();
    THREADS.slab().usage().0
}

/// A TCB that is not in the table yet, charged to `account`; [`install`] completes it. It is
/// `here`, on this processor, and will wait for its start from `pager`, unless that is nil. Under
/// [`CONTROL`], or at boot.
pub fn allocate(account: Account, pager: ThreadId, here: u16) -> Result<ThreadRef, OutOfMemory> {
    // SAFETY: see above, and [`release`].
    let place = unsafe { THREADS.alloc_below(account)? };
    Ok(begin(place, account, pager, here))
}

/// Like [`allocate`], but other functions are called only where that is seldom needed. `None` does
/// not mean that there is no memory: [`allocate`] may still succeed.
#[inline(always)]
pub fn allocate_at_hand(account: Account, pager: ThreadId, here: u16) -> Option<ThreadRef> {
    // SAFETY: as in `allocate`.
    let place = unsafe { THREADS.alloc_at_hand(account)? };
    Some(begin(place, account, pager, here))
}

#[inline(always)]
fn begin(place: NonNull<Memory>, account: Account, pager: ThreadId, here: u16) -> ThreadRef {
    // SAFETY: the slab hands out memory that is a TCB, live or from its last use, or zero: each is
    // a valid Tcb, and the memory is never used as anything else.
    let thread: ThreadRef = unsafe { &place.as_ref().tcb };
    debug_assert!(u32::from(here) == arch::cpu_number());
    thread.reset(pager, here);
    thread.account.set(account);
    thread
}

/// Returns a TCB that is in no table, queue or space. Under [`CONTROL`].
fn release(thread: ThreadRef) {
    // SAFETY: it came from this slab; code that still refers to it checks its id again, which is
    // nil.
    unsafe { THREADS.free_below(NonNull::from(thread).cast(), thread.account.get()) };
}

/// Creates a thread, and an empty space for it (X.2 rule 5.6). Fails without trace.
pub fn create_with_space(id: ThreadId, scheduler: Found, location: Option<u64>) -> Result<(), OutOfMemory> {
    // The TCB is paid for by the space, which has no name for it before it exists.
    let space = Space::create()?;
    match allocate(space.account(), ThreadId::NIL, arch::cpu_number() as u16) {
        Ok(thread) => {
            install_recorded(thread, id, space, creators_home());
            set_scheduler(thread, scheduler);
            thread.keep_location(location);
            Ok(())
        }
        Err(error) => {
            space.discard();
            Err(error)
        }
    }
}

/// Takes the UTCBs of all threads of `space`, none of which is active, because its UTCB area is
/// about to change: those from number `next` on, then, as some may have got theirs meanwhile, of
/// all again. Returns the number of the thread to look at next if it was interrupted.
///
/// Preemption point, after every sixteenth thread.
pub fn drop_utcbs_of(space: SpaceRef, next: u32) -> Result<(), u32> {
    let mut next = next;
    while space.has_utcbs() {
        for (index, (number, thread)) in threads().iter_from(next).enumerate() {
            if index != 0 && index.is_multiple_of(LOOKED_AT) && arch::interrupt_pending() {
                return Err(number);
            }
            if thread.is_in(space) {
                // No thread of the space is active, and the caller holds the lock of ThreadControl
                // and SpaceControl: nothing else changes the thread, wherever it is.
                drop_utcb(thread.anywhere());
            }
            if !space.has_utcbs() {
                return Ok(());
            }
        }
        next = 0;
    }
    Ok(())
}

/// The home processor of the current thread, and so of threads that it makes. At boot it is the
/// first processor.
pub fn creators_home() -> u16 {
    processor::this().current.get().map_or(arch::cpu_number() as u16, |creator| creator.home())
}

/// Puts a new thread, that will live at `home`, into the table and `space`. It has no scheduler
/// yet.
#[inline(always)]
pub fn install(thread: ThreadRef, id: ThreadId, space: SpaceRef, home: u16) {
    thread.set_id(id);
    thread.space.set(Some(space));
    space.add_thread();
    thread.set_first_home(home);
    thread.priority.set(DEFAULT_PRIORITY);
    thread.sensitive_priority.set(DEFAULT_PRIORITY);
    let timeslice = DEFAULT_TIMESLICE.micros().unwrap_or(NEVER);
    thread.timeslice.set(timeslice);
    thread.timeslice_left.set(timeslice);
    threads().set(id.number(), Some(thread));
}

/// Like [`install`], where events may be recorded.
pub fn install_recorded(thread: ThreadRef, id: ThreadId, space: SpaceRef, home: u16) {
    install(thread, id, space, home);
    trace::event(Event::ThreadCreate, id.raw(), 0);
}

/// Makes `scheduler` that of `thread`.
#[inline]
pub fn set_scheduler(thread: ThreadRef, scheduler: Found) {
    thread.scheduler.set(scheduler.id());
    scheduler.mark(mark::NAMED);
}

/// Makes the room for the transfer record of `thread`, which came from [`allocate`], an unused
/// record.
#[inline(always)]
fn make_record(thread: ThreadRef) -> &'static TransferRecord {
    let memory = core::ptr::from_ref(thread).cast::<Memory>();
    // SAFETY: `allocate` makes TCBs in such memory only; the thread has no record, so there is no
    // reference to what is there: zeros, or the record of the last thread there.
    unsafe {
        let record = (*memory).record.get().cast::<TransferRecord>();
        TransferRecord::renew(record);
        &*record
    }
}

/// Gives an inactive thread its UTCB.
pub fn set_utcb(thread: ThreadRef, block: &'static Utcb, location: u64) {
    set_first_utcb(thread, thread.id(), thread.home(), block, location);
    forget_loaded(thread);
}

/// [`set_utcb`] for a thread that has never run, with this id and home processor.
#[inline(always)]
pub fn set_first_utcb(thread: ThreadRef, id: ThreadId, home: u16, block: &'static Utcb, location: u64) {
    let pointer = location + utcb::MR0_OFFSET;
    thread.utcb.set(Some(block));
    thread.local_id.set(pointer);
    block.write(utcb::SELF_POINTER, pointer);
    block.write(utcb::MY_GLOBAL_ID, id.raw());
    block.write(utcb::PROCESSOR_NUMBER, u64::from(home));
    thread.registers.gs_base.set(own_gs_base(pointer));
}

/// Takes the UTCB of a thread that is not going to run before it gets another.
pub fn drop_utcb(thread: ThreadRef) {
    if let (Some(block), Some(space)) = (thread.utcb.take(), thread.space.get()) {
        space.free_utcb(block, utcb_location(thread));
        thread.local_id.set(0);
    }
}

/// Activates an inactive thread that has a UTCB: it waits for its start message from `pager` (X.2
/// rule 5.12).
pub fn activate(thread: ThreadRef, pager: ThreadId) {
    thread.transfer_record.set(Some(make_record(thread)));
    if let Some(space) = thread.space.get() {
        space.count_active(true);
    }
    thread.set_pager(pager);
    ipc::await_start(thread, pager);
}

/// [`activate`] for a thread that has just been made for `pager`, in `space`, with `block`.
/// `SHORT`: its creator is at home, and the pager's id is a global one.
#[inline(always)]
pub fn activate_new<const SHORT: bool>(
    thread: ThreadRef,
    space: SpaceRef,
    block: &'static Utcb,
    pager: ThreadId,
) {
    thread.transfer_record.set(Some(make_record(thread)));
    space.count_active(true);
    block.write(utcb::PAGER, pager.raw());
    if SHORT || pager.is_global() && thread.is_home() {
        ipc::await_first_start(thread, pager);
    } else {
        // A local id means something in the thread's own space; and senders are looked for at home.
        ipc::await_start(thread, pager);
    }
}

/// Moves `thread` to `space`, where its UTCB, if it has one, will be `block` at `location`. Returns
/// the old space if the thread was its last.
pub fn relocate(thread: ThreadRef, space: SpaceRef, place: Option<(&'static Utcb, u64)>) -> Option<SpaceRef> {
    // A mapping operation under way starts again, in the new space.
    thread.transfer_record.get().inspect(|record| record.with_cursor(Cursor::cancel));
    let old = thread.space.get();
    let contents = thread.utcb.get();
    if let (Some((block, _)), Some(contents)) = (place, contents) {
        block.copy_all(contents);
    }
    drop_utcb(thread);
    if !thread.is_active() {
        thread.keep_location(None);
    }
    thread.space.set(Some(space));
    space.add_thread();
    if thread.is_active() {
        space.count_active(true);
        old.inspect(|old| old.count_active(false));
    }
    if let Some((block, location)) = place {
        set_utcb(thread, block, location);
    }
    // The IPC is ended only now, because it returns the new UTCB pointer.
    ipc::leave_all(thread);
    old.filter(|old| old.remove_thread())
}

/// The processor no longer holds this thread's registers, or must load them again.
pub fn forget_loaded(thread: ThreadRef) {
    let this = processor::this();
    if this.loaded_thread.get().is_some_and(|loaded| eq(loaded, thread)) {
        arch::drop_thread_state(thread);
        this.loaded_thread.set(None);
    }
}

/// The first step of an id's end: no call finds the thread by it any more. For a deletion the
/// thread stops for good.
pub fn retire_id(thread: ThreadRef, new: Option<ThreadId>) {
    let id = thread.id();
    ipc::leave_all(thread);
    // Notifications of the old id are not for the new one. Relaxed: home processor.
    thread.notification.store(0, core::sync::atomic::Ordering::Relaxed);
    match new {
        Some(new) => {
            thread.set_id(new);
            if let Some(block) = thread.utcb.get() {
                block.write(utcb::MY_GLOBAL_ID, new.raw());
            }
        }
        None => {
            trace::event(Event::ThreadDelete, id.raw(), 0);
            thread.set_id(ThreadId::NIL);
            processor::this().scheduler.forget(thread);
            forget_loaded(thread);
        }
    }
    interrupt::forget_handler(thread);
}

/// The work that ends the relations of `id`, which was the thread's (nil: the thread has only
/// moved, and left `left` as its last).
pub fn relations_to_end(thread: ThreadRef, id: ThreadId, delete: bool, left: Option<SpaceRef>) -> Work {
    Work::EndRelations { thread, id, next: 0, delete, left, processors: other_processors() }
}

/// The number of processors other than this one.
pub fn other_processors() -> u16 {
    (arch::cpu_count() - 1) as u16
}

/// Goes on with the end of an id (nil: it has only moved), on each processor in turn: partners
/// learn of it, schedulers' roles end, and a thread that is deleted disappears with all it had.
/// Returns the number of the thread to look at next if it was interrupted. A thread that is under
/// way looks for itself when it arrives.
///
/// Another call may have given the id to a thread again meanwhile. Then no thread is told that the
/// id is gone: a thread that waits for it waits for one that exists, and may have begun after the
/// end of the first.
///
/// Preemption point, once per thread that is told, and after every sixteenth that is looked at.
pub fn end_relations(thread: ThreadRef, id: ThreadId, next: u32) -> Result<(), u32> {
    if threads().find(id).is_some() {
        return Ok(());
    }
    if thread.is_home() {
        if !id.is_nil() {
            interrupt::drop_pending(thread);
        }
        while !id.is_nil() && ipc::sender_disappears_from_queue(thread, id) {
            if arch::interrupt_pending() {
                return Err(next);
            }
        }
    }
    if thread.is_marked(mark::NAMED) {
        for (index, (number, other)) in threads().iter_from(next).enumerate() {
            if index % LOOKED_AT == LOOKED_AT - 1 && arch::interrupt_pending() {
                return Err(number);
            }
            let Some(other) = other.if_here() else { continue };
            ipc::partner_disappears(other, id);
            ipc::originator_changes(other);
            if other.scheduler.get() == id {
                other.scheduler.set(ThreadId::NIL);
            }
            other.space.get().inspect(|space| space.forget_redirector(id));
        }
    }
    Ok(())
}

/// Finishes what `thread`, which is about to go, has begun to take away from others: what is
/// derived from a page that is gone must go, too. Preemption point.
pub fn finish_walk(thread: ThreadRef) -> Progress<()> {
    thread.transfer_record.get().map_or(Progress::Done(()), TransferRecord::finish_walk)
}

/// Whether nothing is left for [`end_relations`] and [`finish_walk`] to do, on any processor: the
/// thread is not named anywhere, no thread sends to it, and there is no other processor where one
/// could be about to.
#[inline(always)]
pub fn has_no_relations(thread: ThreadRef) -> bool {
    other_processors() == 0
        && !thread.is_marked(mark::NAMED)
        && thread.senders.first().is_none()
        && thread.pending_interrupts.get().is_none()
        && thread.transfer_record.get().is_none_or(|record| !record.has_walk())
}

/// Whether the end of the thread, which has not started and lives in `space`, concerns no other
/// thread, and is short: it is not named anywhere, and its space has other threads.
#[inline(always)]
pub fn goes_unnoticed(thread: ThreadRef, space: SpaceRef) -> bool {
    thread.has_not_started()
        && has_no_relations(thread)
        && !thread.is_marked(mark::HANDLES_INTERRUPTS)
        && !has_unfinished(thread)
        && space.has_several_threads()
        && thread.quantum_left.get() == NEVER
        && thread.extended_state.get().is_none()
        && THREADS.frees_to_hand()
}

/// All of the deletion of such a thread, with this number. It has never run: it is in no queue, has
/// done nothing that its record would know of, and no processor knows it. Records no event.
#[inline(always)]
pub fn delete_unnoticed(thread: ThreadRef, number: u32, space: SpaceRef) {
    debug_assert!(!thread.ready.is_queued() && thread.timeout.deadline().is_none());
    debug_assert!(thread.transfer_record.get().is_none_or(TransferRecord::is_unused));
    debug_assert!(thread.id().number() == number);
    thread.set_id(ThreadId::NIL);
    if thread.forget_start() {
        space.count_active(false);
    }
    if let Some(block) = thread.utcb.get() {
        space.free_utcb(block, utcb_location(thread));
        thread.local_id.set(0);
        thread.utcb.set(None);
    }
    thread.transfer_record.set(None);
    threads().set(number, None);
    thread.space.set(None);
    // SAFETY: as in `release`: nothing refers to the TCB any more.
    unsafe { THREADS.free_to_hand(NonNull::from(thread).cast(), thread.account.get()) };
    let last = space.remove_thread();
    debug_assert!(!last);
}

/// Where the UTCB of the thread, which has one, is.
#[inline(always)]
fn utcb_location(thread: ThreadRef) -> u64 {
    thread.local_id.get() - utcb::MR0_OFFSET
}

/// The last step of a deletion. Returns the space if this was its last thread.
pub fn remove(thread: ThreadRef, number: u32) -> Option<SpaceRef> {
    let space = thread.space.get()?;
    forget_loaded(thread);
    if thread.is_active() {
        space.count_active(false);
    }
    drop_utcb(thread);
    if let Some(record) = thread.transfer_record.take() {
        record.retire();
    }
    thread.set_continuation(Continuation::Inactive);
    threads().set(number, None);
    if let Some(state) = thread.extended_state.take() {
        breakpoints::set(state, &ProgramBreakpoints::NONE);
        arch::free_extended_state(state, thread.account.get());
    }
    thread.space.set(None);
    release(thread);
    space.remove_thread().then_some(space)
}

/// Whether [`take_unfinished`] may find something.
#[inline]
pub fn has_unfinished(thread: ThreadRef) -> bool {
    thread.transfer_record.get().is_some_and(|record| !matches!(record.work.get(), Work::Idle))
}

/// Takes the work that `thread`, which is about to be deleted, has not finished of a ThreadControl
/// or SpaceControl of its own that gave way to an interrupt. The caller that deletes the thread
/// must do this work first. Otherwise what the thread was deleting would stay half deleted for
/// ever, and messages would wait for a redirector that is none any more.
pub fn take_unfinished(thread: ThreadRef) -> Option<Work> {
    let record = thread.transfer_record.get()?;
    match record.work.get() {
        work @ (Work::EndRelations { .. } | Work::DestroySpace(_)) => {
            record.cancel();
            Some(work)
        }
        Work::Redirect { space, next, processors, .. } => {
            record.cancel();
            Some(Work::Redirect { space, next, processors, inherited: true })
        }
        _ => None,
    }
}

/// Keeps the state of a system call of the current thread that gives way to an interrupt.
pub fn save_work(current: ThreadRef, work: Work) {
    if let Some(record) = current.transfer_record.get() {
        current.set_continuation(Continuation::SystemCall);
        record.work.set(work);
    }
}
