//! ThreadState(RDI thread, RSI control, RDX buffer, R8 size): an owner reads and writes the
//! registers of a thread that does not run, and recalls one that does (K15). Result in RAX, state
//! in RSI, bytes read in R8.

use x2::extension::thread_state as control;
use x2::protocol::exception;
use x2::{ErrorCode, Rights, utcb};

use super::{Call, Entry, Object, arguments, object, return_result, schedule};
use crate::arch::extended_image::{EXTENDED_STATE_HEADER_END, ExtendedImage};
use crate::arch::{self, ProgramBreakpoints};
use crate::mapping;
use crate::processor;
use crate::scheduler::Next;
use crate::space::Space;
use crate::thread::{
    Continuation, Here, IpcKind, Tcb, ThreadRef, Utcb, breakpoints, flag, ipc, lifecycle, redirect,
    user_memory,
};
use crate::trace::{self, Event};

/// Message register: the exception handler to set.
const EXCEPTION_HANDLER: usize = 21;
/// Message register: the pager to set.
const PAGER: usize = 22;

const INTEGER: u64 = control::READ_REGISTERS | control::WRITE_REGISTERS;
const EXTENDED: u64 = control::READ_EXTENDED | control::WRITE_EXTENDED;
const BREAKPOINTS: u64 = control::READ_BREAKPOINTS | control::WRITE_BREAKPOINTS;
/// What is in the thread's room for extended registers. Most calls want nothing of it.
const IN_ROOM: u64 = EXTENDED | BREAKPOINTS;
/// What needs a thread that does not run.
const STATE: u64 = INTEGER | IN_ROOM;

/// MR0 to MR20.
type Words = [u64; redirect::FULL_WORDS + 1];

/// A call that is complete: nothing of it fails any more.
struct Request<'entry> {
    thread: Here<'entry>,
    /// The caller's message registers.
    words: &'static Utcb,
    control: u64,
    /// Address of the caller's buffer for the extended state.
    buffer: u64,
    size: usize,
}

/// What is to be written, fetched once and checked. Apart from the request, as it is large.
struct Fetched {
    /// MR0..
    registers: Option<Words>,
    /// The extended state.
    image: Option<ExtendedImage>,
    /// The breakpoints.
    breakpoints: Option<ProgramBreakpoints>,
}

pub(super) fn system_call(current: ThreadRef) -> Next {
    let entry = Entry::of_handler();
    let arguments = arguments::ThreadState::of(current);
    let id = arguments.thread();
    let mut fetched = Fetched { registers: None, image: None, breakpoints: None };
    let request = match object(&entry, current, id, Call::ThreadState) {
        Object::Elsewhere(next) => return next,
        Object::Here(thread) if id.is_global() => decode(current, thread, &mut fetched),
        _ => Err(ErrorCode::InvalidThread),
    };
    match request {
        Ok(request) => {
            let state = state(&request.thread);
            let read = perform(current, &request, &fetched);
            return_result(current, Ok(()));
            arguments.set_state(state);
            arguments.set_read(read as u64);
        }
        Err(error) => return_result(current, Err(error)),
    }
    Next::Return
}

fn decode<'entry>(
    current: ThreadRef,
    thread: Here<'entry>,
    fetched: &mut Fetched,
) -> Result<Request<'entry>, ErrorCode> {
    let arguments = arguments::ThreadState::of(current);
    let (Some(own), Some(words)) = (current.space.get(), current.utcb.get()) else {
        return Err(ErrorCode::NoPrivilege);
    };
    if !thread.space.get().is_some_and(|space| space.is_owned_by(own)) {
        return Err(ErrorCode::NoPrivilege);
    }
    if !thread.is_active() {
        return Err(ErrorCode::InvalidThread);
    }
    let control = arguments.control();
    if control & !control::ALL != 0 || control & STATE != 0 && runs(&thread) {
        return Err(ErrorCode::InvalidParameter);
    }
    if control & control::WRITE_REGISTERS != 0 {
        let registers = core::array::from_fn(|index| words.read(utcb::message_register(index)));
        if !are_user_addresses(&thread, fetched.registers.insert(registers)) {
            return Err(ErrorCode::InvalidParameter);
        }
    }
    let buffer = arguments.buffer();
    let size = if control & IN_ROOM == 0 {
        0
    } else {
        decode_in_room(own, &thread, words, (control, buffer, arguments.size()), fetched)?
    };
    Ok(Request { thread, words, control, buffer, size })
}

/// The part of [`decode`] for the extended state, with the caller's buffer and its size, and the
/// breakpoints. Returns how many bytes of the buffer are used.
#[cold]
#[inline(never)]
fn decode_in_room(
    own: &Space,
    thread: &Here<'_>,
    words: &Utcb,
    (control, buffer, size): (u64, u64, u64),
    fetched: &mut Fetched,
) -> Result<usize, ErrorCode> {
    if control & control::WRITE_BREAKPOINTS != 0 {
        let word = |index| words.read(utcb::message_register(index));
        let breakpoints = ProgramBreakpoints {
            addresses: core::array::from_fn(|index| word(control::BREAKPOINT_ADDRESSES + index)),
            control: word(control::BREAKPOINT_CONTROL),
            status: 0,
        };
        if !breakpoints.are_valid() {
            return Err(ErrorCode::InvalidParameter);
        }
        fetched.breakpoints = Some(breakpoints);
    }
    let size = usize::try_from(size).unwrap_or(usize::MAX).min(arch::extended_state_size());
    if control & EXTENDED != 0 {
        if size < EXTENDED_STATE_HEADER_END {
            return Err(ErrorCode::InvalidParameter);
        }
        fetched.image = decode_image(own, control, buffer, size)?;
    }
    if fetched.image.is_some() || fetched.breakpoints.is_some_and(|new| new.are_enabled()) {
        provide_room(thread)?;
    }
    Ok(size)
}

/// Checks the buffer, and fetches and checks what is to be written.
fn decode_image(
    own: &Space,
    control: u64,
    buffer: u64,
    size: usize,
) -> Result<Option<ExtendedImage>, ErrorCode> {
    let access = if control & control::READ_EXTENDED != 0 { Rights::READ_WRITE } else { Rights::READ };
    if !user_memory::is_accessible(own, buffer, size as u64, access) {
        return Err(ErrorCode::InvalidParameter);
    }
    if control & control::WRITE_EXTENDED == 0 {
        return Ok(None);
    }
    let mut image = ExtendedImage::new();
    user_memory::read(own, buffer, &mut image.bytes_mut()[..size]);
    if !image.is_valid(size, arch::extended_components()) {
        return Err(ErrorCode::InvalidParameter);
    }
    Ok(Some(image))
}

/// Makes sure that the thread has room for extended registers and breakpoints.
fn provide_room(thread: &Here<'_>) -> Result<(), ErrorCode> {
    if thread.extended_state.get().is_none() {
        let state = mapping::or_from_spare(|| arch::allocate_extended_state(thread.account.get()));
        let state = state.map_err(|_| ErrorCode::NoMemory)?;
        // The new area holds the initial state; the processor must learn that there is an area now.
        lifecycle::forget_loaded(thread.for_queues());
        thread.extended_state.set(Some(state));
    }
    Ok(())
}

/// Whether the thread runs at user level, or would if it were given the processor.
fn runs(thread: &Tcb) -> bool {
    match thread.continuation() {
        Continuation::ReturnToUser => !thread.has(flag::HALTED),
        Continuation::SystemCall
        | Continuation::SendAgain(_)
        | Continuation::Call(_)
        | Continuation::RaiseException
        | Continuation::RaiseFault
        | Continuation::ResumeTransfer => true,
        _ => false,
    }
}

/// Whether the registers to write are such that a user may have them. RIP may stay as it is: that
/// of a thread in an X.2 system call lies in the stub page.
fn are_user_addresses(thread: &Tcb, words: &Words) -> bool {
    let is_user = |index: usize| words[index] < arch::USER_END;
    (is_user(exception::RIP) || words[exception::RIP] == thread.registers.rip.get())
        && is_user(redirect::FS_BASE)
        && is_user(redirect::GS_BASE)
}

/// Carries the request out in the order of the reference: reads, writes, recall. Returns how many
/// bytes of extended state were read.
fn perform(current: ThreadRef, request: &Request<'_>, fetched: &Fetched) -> usize {
    let &Request { ref thread, words, control, .. } = request;
    if control & STATE != 0 {
        // FS base, extended state and breakpoints may still be in the processor.
        lifecycle::forget_loaded(thread.for_queues());
    }
    if control & control::READ_REGISTERS != 0 {
        let registers = &thread.registers;
        for (register, index) in ipc::exception_registers(registers).into_iter().zip(1..) {
            words.write(utcb::message_register(index), register.get());
        }
        words.write(utcb::message_register(redirect::FS_BASE), registers.fs_base.get());
        words.write(utcb::message_register(redirect::GS_BASE), registers.gs_base.get());
    }
    if let Some(words) = &fetched.registers {
        ipc::set_exception_registers(thread.for_queues(), |index| words[index]);
        for index in [redirect::FS_BASE, redirect::GS_BASE] {
            redirect::set_base(thread.for_queues(), index, words[index]);
        }
        thread.return_with_all_registers();
    }
    // Nothing above depends on this, nor this on what is above.
    let read = if control & IN_ROOM == 0 { 0 } else { perform_in_room(current, request, fetched) };
    if control & control::SET_EXCEPTION_HANDLER != 0 {
        thread.set_exception_handler(words.read_id(utcb::message_register(EXCEPTION_HANDLER)));
    }
    if control & control::SET_PAGER != 0 {
        thread.set_pager(words.read_id(utcb::message_register(PAGER)));
    }
    if control & control::RECALL != 0 {
        trace::event(Event::Recall, thread.id().raw(), 0);
        thread.set_flag(flag::RECALLED, true);
        // If the thread is halted, it sends the message without running.
        if thread.is_runnable() {
            processor::this().scheduler.make_ready(thread.for_queues());
        }
    }
    read
}

/// The part of [`perform`] for the extended state and the breakpoints. Returns how many bytes of
/// extended state were read.
#[cold]
#[inline(never)]
fn perform_in_room(current: ThreadRef, request: &Request<'_>, fetched: &Fetched) -> usize {
    let &Request { ref thread, words, control, buffer, size } = request;
    let mut read = 0;
    if control & control::READ_EXTENDED != 0
        && let Some(own) = current.space.get()
    {
        let present = thread.extended_state.get().map_or_else(ExtendedImage::new, arch::read_extended_state);
        read = user_memory::write(own, buffer, &present.bytes()[..size]);
    }
    if control & control::READ_BREAKPOINTS != 0 {
        let ProgramBreakpoints { addresses, control, status } =
            thread.breakpoints().unwrap_or(ProgramBreakpoints::NONE);
        let first = control::BREAKPOINT_ADDRESSES;
        for (word, index) in addresses.into_iter().chain([control, status]).zip(first..) {
            words.write(utcb::message_register(index), word);
        }
    }
    if let (Some(image), Some(state)) = (&fetched.image, thread.extended_state.get()) {
        arch::write_extended_state(state, image);
    }
    if let (Some(new), Some(state)) = (&fetched.breakpoints, thread.extended_state.get()) {
        breakpoints::set(state, new);
    }
    read
}

/// What the thread does, before the call changes anything.
fn state(thread: &Tcb) -> u64 {
    let awaits_answer =
        thread.continuation().receiving().or(thread.continuation().sending()).is_some_and(|kind| {
            matches!(kind, IpcKind::PageFault | IpcKind::PortFault | IpcKind::Exception | IpcKind::SystemCall)
        });
    // A missing page of a transfer belongs to the IPC. Recall ends that IPC to stop the thread,
    // which otherwise could go on to wait for ever.
    let doing = ipc::transfer_continuation(thread).unwrap_or(thread.continuation());
    schedule::doing(doing) as u64
        | if thread.has(flag::HALTED) { control::IS_HALTED } else { 0 }
        | if awaits_answer { control::AWAITS_ANSWER } else { 0 }
        | if thread.has(flag::RECALLED) { control::RECALL_PENDING } else { 0 }
        | if thread.extended_state.get().is_some() { control::HAS_EXTENDED_STATE } else { 0 }
}
