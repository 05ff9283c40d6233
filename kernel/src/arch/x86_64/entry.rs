//! Entries from user level, and the way back.
use core::arch::global_asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};

use x2::control::{ExchangeControl, UnmapControl};
use x2::extension::{FORWARD, MapItem, ONE_MAP_ITEM, SystemCallMode};
use x2::message::{MESSAGE_REGISTERS, REGISTER_MESSAGE_REGISTERS};
use x2::protocol::{self, page_fault_tag};
use x2::utcb;
use x2::{ErrorCode, Fpage, Rights, ThreadId, Time};

use super::cpu_local::{BITMAP_OFFSET, CpuLocal, cpu_local};
use super::extended_state;
use super::features::{self, Features};
use super::gdt::TaskState;
use super::idt::FIRST_INTERRUPT;
use super::instructions::{msr, read_cr2, write_msr};
use super::layout::{STUB_PAGE, USER_END};
use super::ports::Owner;
use super::{
    Interrupt, clock, cpu_count, gdt, poll_interrupt, serve_requests, take_interrupt, time, tlb,
    wait_for_interrupt,
};
use crate::arch::exit::{self, Exit};
use crate::dispatch::{self, Outcome, after_interrupt, receive_requests, timer_interrupt};
use crate::interrupt;
use crate::mapping;
use crate::processor::{self, Processor, Public};
use crate::scheduler::{Next, Scheduler};
use crate::space::{Ownership, PORTS, PORTS_TOO, REMEMBERED, Space};
use crate::sync::SEVERAL;
use crate::sync::delay::{self, Point};
use crate::syscall::{self, Call, MEMORY_CONTROL_PREFIX, STUB_SPACING};
use crate::thread::ipc::{SYSTEM_CALL_TAG, exception_tag, fast};
use crate::thread::{Offer, Registers, Tcb, ThreadRef, USER_FLAGS, exception, fault, mark, redirect, table};
use crate::trace::{self, Event};

/// A field of the executing processor's [`Processor`], relative to GS.
macro_rules! processor {
    ($name:ident) => {
        offset_of!(CpuLocal, processor) + offset_of!(Processor, $name)
    };
}

macro_rules! register {
    ($name:ident) => {
        offset_of!(Tcb, registers) + offset_of!(Registers, $name)
    };
}

global_asm!(
    concat!(
        include_str!("entry.S"),
        include_str!("fast_path.S"),
        include_str!("short_calls.S"),
        include_str!("fast_report.S")
    ),
    scratch = const offset_of!(CpuLocal, scratch),
    stack_top = const offset_of!(CpuLocal, stack_top),
    entry_top = const offset_of!(CpuLocal, entry_top),
    scratch2 = const offset_of!(CpuLocal, scratch2),
    ipc_return = const offset_of!(CpuLocal, ipc_return),
    foreign_limit = const offset_of!(CpuLocal, foreign_limit),
    schedule_return = const STUB_PAGE + Call::Schedule.return_offset(),
    exchange_offset = const Call::ExchangeRegisters.return_offset(),
    thread_offset = const Call::ThreadControl.return_offset(),
    clock_offset = const Call::SystemClock.return_offset(),
    switch_offset = const Call::ThreadSwitch.return_offset(),
    schedule_offset = const Call::Schedule.return_offset(),
    unmap_offset = const Call::Unmap.return_offset(),
    space_offset = const Call::SpaceControl.return_offset(),
    processor_offset = const Call::ProcessorControl.return_offset(),
    memory_offset = const Call::MemoryControl.return_offset(),
    options_offset = const Call::SpaceOptions.return_offset(),
    map_offset = const Call::MapControl.return_offset(),
    state_offset = const Call::ThreadState.return_offset(),
    notify_offset = const Call::Notify.return_offset(),
    more_than_a_page = const !UnmapControl::new(1, true).raw() as i64,
    not_done = const NOT_DONE,
    flush = const UnmapControl::new(1, true).raw(),
    exchanged = const !ExchangeControl::DELIVER.raw() as i64,
    slice_owner = const processor!(scheduler) + Scheduler::SLICE_OWNER,
    slice_end = const processor!(scheduler) + Scheduler::SLICE_END,
    delayed = const processor!(scheduler) + Scheduler::DELAYED,
    timeslice = const offset_of!(Tcb, timeslice),
    timeslice_left = const offset_of!(Tcb, timeslice_left),
    clock_scale = sym time::SCALE,
    clock_shift = const time::SHIFT,
    current = const processor!(current),
    several = const SEVERAL as u32,
    active_root = const processor!(public) + offset_of!(Public, active_root),
    farthest = const processor!(scheduler) + Scheduler::FARTHEST,
    highest_ready = const processor!(scheduler) + Scheduler::HIGHEST_READY,
    running_priority = const processor!(scheduler) + Scheduler::RUNNING_PRIORITY,
    threads = sym table::THREADS,
    last_number = const table::NUMBERS - 1,
    local_ids = const offset_of!(Space, local_ids),
    last_local_id = const REMEMBERED - 1,
    utcb_bits = const utcb::SIZE.trailing_zeros(),
    id = const offset_of!(Tcb, id),
    offer = const offset_of!(Tcb, offer),
    senders = const offset_of!(Tcb, senders),
    where = const Tcb::WHERE,
    named = const (mark::NAMED as u32) << 8,
    named_here = const offset_of!(CpuLocal, named_here),
    extended_state = const offset_of!(Tcb, extended_state),
    space = const offset_of!(Tcb, space),
    local_id = const offset_of!(Tcb, local_id),
    pending_interrupts = const offset_of!(Tcb, pending_interrupts),
    notification = const offset_of!(Tcb, notification),
    restriction = const offset_of!(Space, restriction),
    privileged = const offset_of!(Space, privileged),
    entry_root = const offset_of!(Space, entry_root),
    owner = const offset_of!(Space, ownership) + Ownership::OWNER,
    ports_bit = const PORTS.trailing_zeros(),
    root_bits = const PORTS_TOO.leading_ones(),
    ports_root = const offset_of!(CpuLocal, ports) + Owner::ROOT,
    bitmap_offset = const BITMAP_OFFSET,
    bitmap = const TaskState::BITMAP,
    no_bitmap = const TaskState::NO_BITMAP,
    system_call_mode = const offset_of!(Space, ownership) + Ownership::MODE,
    emulation_entry = const offset_of!(Space, ownership) + Ownership::EMULATION_ENTRY,
    bounce = const SystemCallMode::Bounce as u64,
    exception = const SystemCallMode::Exception as u64,
    keeps_handlers = const offset_of!(Space, ownership) + Ownership::KEEPS_HANDLERS,
    exception_handler = const offset_of!(Tcb, owned_exception_handler),
    pager = const offset_of!(Tcb, owned_pager),
    fault = const offset_of!(Tcb, fault),
    system_call_tag = const SYSTEM_CALL_TAG.raw(),
    page_fault_tag = const page_fault_tag(Rights::NONE).raw(),
    page_fault = const PAGE_FAULT,
    invalid_opcode = const redirect::INVALID_OPCODE,
    breakpoint = const exception::BREAKPOINT,
    always_reported = const exception::ALWAYS_REPORTED,
    first_interrupt = const FIRST_INTERRUPT,
    exception_offer = const Offer::EXCEPTION,
    exception_bit = const (Offer::EXCEPTION & !Offer::FAULT).trailing_zeros(),
    exception_tag = sym EXCEPTION_TAG,
    exception_words = const protocol::exception::WORDS,
    reply_words = const protocol::exception::REPLY_WORDS,
    user_bits = const USER_END.ilog2() + 1,
    forward = const FORWARD,
    forwarded_flags = const redirect::FORWARDED_FLAGS,
    program_flags = const x2::control::PROGRAM_FLAGS,
    fixed_flags = const USER_FLAGS,
    read = const Rights::READ.bits(),
    write = const Rights::WRITE.bits(),
    execute = const Rights::EXECUTE.bits(),
    // The marks are no possible counts of words.
    end_call = const MESSAGE_REGISTERS,
    end_fault = const MESSAGE_REGISTERS + 1,
    end_exception = const MESSAGE_REGISTERS + 2,
    end_report = const MESSAGE_REGISTERS + 3,
    map_item = const fast::MAP_ITEM,
    utcb = const offset_of!(Tcb, utcb),
    utcb_pager = const utcb::byte_offset(utcb::PAGER),
    utcb_exception_handler = const utcb::byte_offset(utcb::EXCEPTION_HANDLER),
    handle = const utcb::byte_offset(utcb::USER_DEFINED_HANDLE),
    memory = const offset_of!(Space, memory),
    sigma0 = sym mapping::SIGMA0,
    message_register_8 = const utcb::byte_offset(utcb::message_register(REGISTER_MESSAGE_REGISTERS)),
    components = sym extended_state::COMPONENTS,
    initial_state = sym extended_state::INITIAL,
    task_switched = const extended_state::TASK_SWITCHED,
    fs_base = const register!(fs_base),
    gs_base = const register!(gs_base),
    message = const register!(message),
    rip = const register!(rip),
    rsp = const register!(rsp),
    rflags = const register!(rflags),
    rdi = const register!(rdi),
    rsi = const register!(rsi),
    rbp = const register!(rbp),
    rcx = const register!(rcx),
    rdx = const register!(rdx),
    r8 = const register!(r8),
    r11 = const register!(r11),
    entered_by_syscall = const offset_of!(Tcb, entered_by_syscall),
    user_data = const gdt::USER_DATA,
    user_code = const gdt::USER_CODE,
    features = sym features::PRESENT,
    smap = const features::Features::SMAP.bits(),
);

global_asm!(
    include_str!("stubs.S"),
    spacing = const STUB_SPACING,
    memory_control_prefix = const MEMORY_CONTROL_PREFIX
);

// Entry code knows a call by the lowest byte of its return address. No call may have the lowest
// byte of the address of the end of the user area.
const _: () = assert!((STUB_PAGE | USER_END).is_multiple_of(256) && Call::Notify.return_offset() < 256);

// The assembly takes a thread as the pointer that it is, and knows only the fields whose offsets it
// is given.
#[allow(improper_ctypes)]
unsafe extern "C" {
    fn system_call_entry();
    fn plain_system_call_entry();
    fn other_call_entry();
    fn resume_by_sysret(thread: ThreadRef) -> !;
    fn resume_by_iret(thread: ThreadRef) -> !;
}

/// The tag of an exception's message, which a boot option can lengthen.
static EXCEPTION_TAG: AtomicU64 = AtomicU64::new(0);

/// Lets system calls on the executing processor take the fast path in assembly, or not.
pub fn allow_fast_entry(allowed: bool) {
    let local = cpu_local();
    // Without FSGSBASE a switch of threads is too long for the fast path.
    let allowed = allowed && features::has(Features::FSGSBASE);
    local.foreign_limit.set(if allowed { USER_END } else { 0 });
    EXCEPTION_TAG.store(exception_tag().raw(), Ordering::Relaxed);
    local.ipc_return.set(STUB_PAGE + Call::Ipc.return_offset());
    let entry = if allowed { system_call_entry } else { plain_system_call_entry };
    // SAFETY: both entry points save the registers that they use.
    unsafe { write_msr(msr::LSTAR, entry as *const () as u64) };
}

/// Lets the executing processor enter by SYSCALL.
pub fn init() {
    // SAFETY: STAR and the flag mask are set; the entry points save what they use.
    unsafe {
        write_msr(msr::STAR, gdt::STAR);
        write_msr(msr::LSTAR, plain_system_call_entry as *const () as u64);
        write_msr(msr::CSTAR, other_call_entry as *const () as u64);
    }
}

/// Called by `entry.S` on the empty kernel stack with the registers of the current thread saved.
#[unsafe(no_mangle)]
extern "C" fn system_call_entered(current: &'static Tcb) -> ! {
    processor::this().entered_from(current);
    let offset = current.registers.rip.get().wrapping_sub(STUB_PAGE);
    match syscall::entered(current, offset) {
        // SAFETY: it has come by SYSCALL, from a stub; its space and registers are still loaded.
        Next::Unchanged if dispatch::returns_unchanged(current) => unsafe { resume_by_sysret(current) },
        Next::Switched(thread) => resume_thread(thread),
        next => return_to_user(next),
    }
}

/// Called by `fast_path.S`: the current thread, whose registers are not saved, is about to wait
/// with this receive timeout. Returns whether it is one of those that the fast path knows, and runs
/// now.
#[unsafe(no_mangle)]
extern "C" fn begin_receive_timeout(current: &'static Tcb, timeout: u16) -> bool {
    fast::begin_receive_timeout(current, Time::from_raw(timeout))
}

/// Called by `fast_report.S`: `pager` answers the page fault of `thread` with the map item of these
/// words. Returns whether that is done; else nothing is.
#[unsafe(no_mangle)]
extern "C" fn answer_fault(pager: &'static Tcb, thread: &'static Tcb, first: u64, second: u64) -> bool {
    fast::give_page(pager, thread, [first, second])
}

/// Called by `fast_report.S`: the current thread, whose registers are saved, has caused an invalid
/// opcode. Returns whether it asks for the kernel interface page.
#[unsafe(no_mangle)]
extern "C" fn asks_for_kernel_interface(current: &'static Tcb) -> bool {
    exception::asks_for_kernel_interface(current)
}

/// The result of [`find_readable`], in RAX and RDX: the thread, if there is one, and what it is
/// doing.
#[repr(C)]
struct Readable {
    thread: Option<ThreadRef>,
    state: u64,
}

/// Called by `short_calls.S`: an ExchangeRegisters that changes nothing, of which only registers
/// that a function may change are saved.
#[unsafe(no_mangle)]
extern "C" fn find_readable(current: &'static Tcb, id: u64) -> Readable {
    match syscall::find_readable(current, ThreadId::from_raw(id)) {
        Some((thread, state)) => Readable { thread: Some(thread), state: state.raw() },
        None => Readable { thread: None, state: 0 },
    }
}

/// The results of Schedule, in RAX and RDX. No state is 0: there are none.
#[repr(C)]
struct ScheduleResults {
    state: u64,
    times: u64,
}

/// Called by `short_calls.S`: a Schedule that changes nothing, of which no registers are saved.
/// (Those that it may change are all ones, or no matter.)
#[unsafe(no_mangle)]
extern "C" fn read_schedule(current: &'static Tcb, id: u64) -> ScheduleResults {
    match syscall::read_schedule(current, ThreadId::from_raw(id)) {
        Some((state, times)) => ScheduleResults { state: state as u64, times },
        None => ScheduleResults { state: 0, times: 0 },
    }
}

/// The results of MapControl, in RAX and RDX: [`MAP_DONE`] and the item's answer, or
/// [`MAP_FAILED`], or 0: nothing was done.
#[repr(C)]
struct MapResults {
    done: u64,
    answer: u64,
}

/// Bit 0 of the result: the caller gets this status.
const MAP_DONE: u64 = 1;
const MAP_FAILED: u64 = 2;

/// Called by `short_calls.S`: a MapControl with one item, of which only registers that a function
/// may change are saved.
#[unsafe(no_mangle)]
extern "C" fn short_map_control(
    current: &'static Tcb,
    target: u64,
    control: u64,
    source: u64,
    space: u64,
) -> MapResults {
    let item = MapItem { target, control: control & !ONE_MAP_ITEM, source, answer: 0 };
    match syscall::try_map_control(current, ThreadId::from_raw(space), &item) {
        Some(Ok(answer)) => MapResults { done: MAP_DONE, answer },
        Some(Err(error)) => {
            syscall::set_error(current, error);
            MapResults { done: MAP_FAILED, answer: 0 }
        }
        None => MapResults { done: 0, answer: 0 },
    }
}

/// The result of [`create_thread`] and [`delete_thread`] when the general path has to do the call.
const NOT_DONE: u32 = 2;

/// Called by `short_calls.S`: a ThreadControl with a space, by a caller with the privilege; only
/// registers that a function may change are saved. Returns what the caller gets, 1: it is done, or
/// 0: it has failed; or [`NOT_DONE`]: nothing was done.
#[unsafe(no_mangle)]
extern "C" fn create_thread(
    id: u64,
    pager: u64,
    scheduler: u64,
    current: &'static Tcb,
    specifier: u64,
    location: u64,
) -> u32 {
    let [id, pager, scheduler, specifier] = [id, pager, scheduler, specifier].map(ThreadId::from_raw);
    let new = syscall::NewThread { id, pager, scheduler, specifier, location };
    answer(current, syscall::try_create_thread(current, &new))
}

/// ThreadControl without a space, which deletes the thread. It returns what [`create_thread`]
/// returns.
#[unsafe(no_mangle)]
extern "C" fn delete_thread(id: u64, current: &'static Tcb) -> u32 {
    answer(current, syscall::try_delete_thread(current, ThreadId::from_raw(id)))
}

#[inline(always)]
fn answer(current: &'static Tcb, result: Option<Result<(), ErrorCode>>) -> u32 {
    match result {
        None => NOT_DONE,
        Some(Ok(())) => 1,
        Some(Err(error)) => {
            syscall::set_error(current, error);
            0
        }
    }
}

/// The result of [`short_unmap`] and [`short_flush`] when they have done nothing. It is no fpage,
/// as its size is none.
const NOT_UNMAPPED: u64 = u64::MAX;

/// Called by `short_calls.S`: an Unmap of one fpage, of which only registers that a function may
/// change are saved. Returns what becomes of the fpage, or [`NOT_UNMAPPED`]: nothing was done.
#[unsafe(no_mangle)]
extern "C" fn short_unmap(current: &'static Tcb, fpage: u64) -> u64 {
    syscall::try_unmap(current, Fpage::from_raw(fpage), false).map_or(NOT_UNMAPPED, Fpage::raw)
}

/// Like [`short_unmap`], with flush. It is a function of its own, as the registers do not suffice
/// for both in one; nor do they for both a page that goes and one that can still be read.
#[unsafe(no_mangle)]
extern "C" fn short_flush(current: &'static Tcb, fpage: u64) -> u64 {
    let fpage = Fpage::from_raw(fpage);
    if !fpage.rights().contains(Rights::READ) {
        return short_reduce(current, fpage);
    }
    syscall::try_unmap(current, fpage, true).map_or(NOT_UNMAPPED, Fpage::raw)
}

#[inline(never)]
extern "C" fn short_reduce(current: &'static Tcb, fpage: Fpage) -> u64 {
    syscall::try_unmap(current, fpage, true).map_or(NOT_UNMAPPED, Fpage::raw)
}

const PAGE_FAULT: u64 = 14;

/// Called by `entry.S` on the empty kernel stack with the registers of the current thread saved.
#[unsafe(no_mangle)]
extern "C" fn interrupt_entered(current: &'static Tcb, vector: u64, error_code: u64) -> ! {
    processor::this().entered_from(current);
    return_to_user(match vector {
        PAGE_FAULT => fault::page_fault(current, read_cr2(), faulting_access(error_code)),
        vector if vector >= FIRST_INTERRUPT => serve(vector as u8),
        _ => exception::raised(current, vector, error_code),
    })
}

/// The one right that the access that faulted lacked (X.2 rule 12.2).
fn faulting_access(error_code: u64) -> Rights {
    const WRITE: u64 = 1 << 1;
    const FETCH: u64 = 1 << 4;
    match error_code {
        code if code & WRITE != 0 => Rights::WRITE,
        code if code & FETCH != 0 => Rights::EXECUTE,
        _ => Rights::READ,
    }
}

/// Serves an interrupt that the processor has taken.
fn serve(vector: u8) -> Next {
    serve_with(vector, receive_requests)
}

/// Like [`serve`]; cross-processor requests are served by `attend`.
#[inline(always)]
fn serve_with(vector: u8, attend: fn() -> Next) -> Next {
    match take_interrupt(vector) {
        Interrupt::Timer => timer_interrupt(),
        Interrupt::Line(line) => {
            interrupt::occurred(line);
            after_interrupt()
        }
        Interrupt::Message(number) => {
            interrupt::message_arrived(number);
            after_interrupt()
        }
        Interrupt::Request => {
            trace::event(Event::IpiReceive, 0, 0);
            attend()
        }
        Interrupt::Spurious => after_interrupt(),
    }
}

/// How long an idle processor looks for cross-processor requests before it sleeps, in microseconds:
/// about as long as an interrupt takes. (By the clock, not by rounds: an emulator in which
/// processors take turns lets the others run in every round.)
const POLL_TIME: u64 = 3;

/// Looks for cross-processor requests for [`POLL_TIME`]. Returns whether one has come.
#[inline]
fn poll(public: &Public) -> bool {
    if public.has_requests() {
        return true;
    }
    let end = clock() + POLL_TIME;
    loop {
        serve_requests();
        core::hint::spin_loop();
        if public.has_requests() {
            return true;
        }
        if clock() >= end {
            return false;
        }
    }
}

/// Waits for interrupts and cross-processor requests.
fn idle() -> Next {
    if cpu_count() == 1 {
        return serve(wait_for_interrupt());
    }
    let public = &cpu_local().processor.public;
    // From here to the end another processor may touch the state of this one's threads (K6).
    // Nothing here does.
    public.idle.begin();
    public.attention.start_polling();
    let found = poll(public);
    public.attention.stop_polling();
    if found || public.has_requests() {
        public.idle.end();
        return receive_requests();
    }
    delay::at(Point::Sleep);
    tlb::unload_any();
    let vector = wait_for_interrupt();
    public.idle.end();
    serve(vector)
}

/// Starts the first thread, or waits for one. The boot code's stack is left for good.
pub fn start_scheduling() -> ! {
    let local = cpu_local();
    local.processor.update_fast_path();
    local.processor.public.runs.set(true);
    return_to_user(Next::Schedule)
}

/// Leaves the kernel as `next` says, or waits for interrupts.
#[inline]
fn return_to_user(next: Next) -> ! {
    match next {
        Next::Schedule => return_to_user_by_dispatch(next),
        next => return_to_user_directly(next),
    }
}

/// Like [`return_to_user`], without the dispatcher if there is a shorter way.
#[inline(never)]
fn return_to_user_directly(next: Next) -> ! {
    let thread = match next {
        Next::Switched(thread) => Some(thread),
        Next::Return | Next::Unchanged => dispatch::returning(),
        Next::SwitchTo(thread) => dispatch::switching(thread),
        _ => None,
    };
    match thread {
        Some(thread) => resume_thread(thread),
        None => return_to_user_by_dispatch(next),
    }
}

#[inline(never)]
fn return_to_user_by_dispatch(next: Next) -> ! {
    let mut next = next;
    let mut has_waited = false;
    loop {
        match dispatch::dispatch(next) {
            Outcome::Resume(thread) => resume_thread(thread),
            // Requests may come again and again, each before the processor has stopped polling:
            // interrupts get their turn.
            Outcome::Idle if has_waited && let Some(vector) = poll_interrupt() => next = serve(vector),
            Outcome::Idle => {
                has_waited = true;
                next = idle();
                if let Next::Start(thread) = next
                    && let Some(thread) = dispatch::starting(thread)
                {
                    resume_thread(thread);
                }
            }
            Outcome::TakeInterrupts => {
                let serve = |vector| serve_with(vector, dispatch::attend_before_requests);
                next = dispatch::take_interrupts(|| poll_interrupt().map(serve));
            }
        }
    }
}

#[inline(always)]
fn resume_thread(thread: ThreadRef) -> ! {
    let registers = &thread.registers;
    match exit::path(thread.returns_by_sysret(), registers.rip.get()) {
        // SAFETY: the thread's space and state are loaded (`dispatch`), RIP is canonical.
        Exit::Sysret => unsafe { resume_by_sysret(thread) },
        // SAFETY: as above.
        Exit::Iret => unsafe { resume_by_iret(thread) },
        Exit::Impossible => unreachable!("dispatch checks where a thread goes"),
    }
}
