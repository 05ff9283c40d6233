//! Threads: ids, creation, registers, scheduling (X.2 rules 3, 5).

use crate::syscall::{self, ExchangedRegisters};
use crate::utcb;
use x2::control::{ExchangeControl, ExchangeState, ThreadState, UNCHANGED};
use x2::{ErrorCode, ThreadId};

/// Result of a control call. `None` stands for an error number that the interface does not know.
pub type Result<T> = core::result::Result<T, Option<ErrorCode>>;

pub(crate) fn check(result: u64) -> Result<()> {
    if result == 0 { Err(utcb::error_code()) } else { Ok(()) }
}

/// The arguments of ThreadControl in addition to the thread; the default changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadControl {
    /// A thread of the space in which the thread is to live; nil deletes the thread.
    pub space: ThreadId,
    /// The thread's scheduler; nil leaves it unchanged.
    pub scheduler: ThreadId,
    /// The thread's pager; nil leaves it unchanged, any other value also activates an inactive
    /// thread.
    pub pager: ThreadId,
    /// The address of the thread's UTCB; `None` leaves it unchanged.
    pub utcb: Option<u64>,
}

/// ThreadControl (privileged): creates, changes, moves, activates a thread.
pub fn control(thread: ThreadId, arguments: ThreadControl) -> Result<()> {
    let ThreadControl { space, scheduler, pager, utcb } = arguments;
    check(syscall::thread_control(
        thread.raw(),
        space.raw(),
        scheduler.raw(),
        pager.raw(),
        utcb.unwrap_or(UNCHANGED),
    ))
}

/// Deletes a thread (privileged). A thread that does not exist is no error.
pub fn delete(thread: ThreadId) -> Result<()> {
    let nil = ThreadId::NIL;
    control(thread, ThreadControl { space: nil, scheduler: nil, pager: nil, utcb: None })
}

/// Makes `handler` the receiver of an interrupt (privileged).
pub fn associate_interrupt(interrupt: ThreadId, handler: ThreadId) -> Result<()> {
    let arguments = ThreadControl { space: interrupt, scheduler: ThreadId::NIL, pager: handler, utcb: None };
    control(interrupt, arguments)
}

/// Ends the association of an interrupt and masks it (privileged).
pub fn disassociate_interrupt(interrupt: ThreadId) -> Result<()> {
    associate_interrupt(interrupt, interrupt)
}

/// The state of a thread before a call of ExchangeRegisters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchanged {
    /// The other form of the thread's id: local for a global one, global for a local one.
    pub id: ThreadId,
    /// The thread's activity before the call.
    pub state: ExchangeState,
    /// The thread's stack pointer before the call.
    pub sp: u64,
    /// The thread's instruction pointer before the call.
    pub ip: u64,
    /// The thread's flags before the call.
    pub flags: u64,
    /// The thread's user-defined handle before the call.
    pub handle: u64,
    /// The thread's pager before the call.
    pub pager: ThreadId,
}

/// Makes the system call ExchangeRegisters on `thread`, with `control` and the values for the bits
/// set in it (the `id` and `control` fields of `registers` are ignored).
///
/// # Safety
/// The thread must be able to continue with the IP, SP and flags that it gets, and without the
/// answer to an IPC that is aborted.
pub unsafe fn exchange_registers(
    thread: ThreadId,
    control: ExchangeControl,
    values: ExchangedRegisters,
) -> Result<Exchanged> {
    let registers = ExchangedRegisters { id: thread.raw(), control: control.raw(), ..values };
    // SAFETY: the caller is responsible for what the thread does next.
    let old = unsafe { syscall::exchange_registers(registers) };
    check(old.id)?;
    Ok(Exchanged {
        id: ThreadId::from_raw(old.id),
        state: ExchangeState::from_raw(old.control),
        sp: old.sp,
        ip: old.ip,
        flags: old.flags,
        handle: old.handle,
        pager: ThreadId::from_raw(old.pager),
    })
}

/// Reads the other form of a thread's id, and its state, without changing anything.
pub fn inspect(thread: ThreadId) -> Result<Exchanged> {
    // SAFETY: nothing is changed.
    unsafe { exchange_registers(thread, ExchangeControl::DELIVER, ExchangedRegisters::default()) }
}

/// The local id of a thread of this space.
pub fn local_id_of(thread: ThreadId) -> Result<ThreadId> {
    if thread.is_local() { Ok(thread) } else { inspect(thread).map(|old| old.id) }
}

/// The global id of a thread of this space.
pub fn global_id_of(thread: ThreadId) -> Result<ThreadId> {
    if thread.is_local() { inspect(thread).map(|old| old.id) } else { Ok(thread) }
}

/// Starts an active thread of this space at `ip` with `sp`.
///
/// # Safety
/// `ip` must be code that can run with that stack and no other registers.
pub unsafe fn start(thread: ThreadId, ip: u64, sp: u64) -> Result<()> {
    let values = ExchangedRegisters { ip, sp, ..Default::default() };
    // SAFETY: the caller is responsible for `ip` and `sp`.
    unsafe { exchange_registers(thread, ExchangeControl::START, values) }.map(drop)
}

/// Halts a thread of this space: it runs no user code until [`resume`].
pub fn stop(thread: ThreadId) -> Result<Exchanged> {
    // SAFETY: the thread continues later as if it had been preempted.
    unsafe { exchange_registers(thread, ExchangeControl::STOP, ExchangedRegisters::default()) }
}

/// Resumes a halted thread of this space.
pub fn resume(thread: ThreadId) -> Result<Exchanged> {
    // SAFETY: the thread continues as if it had been preempted.
    unsafe { exchange_registers(thread, ExchangeControl::RESUME, ExchangedRegisters::default()) }
}

/// Aborts the IPC in which a thread of this space is: it fails.
pub fn abort_ipc(thread: ThreadId) -> Result<Exchanged> {
    // SAFETY: an aborted IPC returns an error to the thread.
    unsafe { exchange_registers(thread, ExchangeControl::ABORT_IPC, ExchangedRegisters::default()) }
}

/// Gives up the rest of the timeslice, to `thread` if it can run.
pub fn switch_to(thread: ThreadId) {
    syscall::thread_switch(thread.raw());
}

/// Gives up the rest of the timeslice.
pub fn yield_now() {
    switch_to(ThreadId::NIL);
}

/// Makes the system call Schedule with raw control words ([`x2::control`]); all ones leave a word
/// unchanged. Returns the state and the raw time word.
pub fn schedule(
    thread: ThreadId,
    time: u64,
    processor: u64,
    priority: u64,
    preemption: u64,
) -> Result<(ThreadState, u64)> {
    let (state, time) = syscall::schedule(thread.raw(), time, processor, priority, preemption);
    check(state)?;
    Ok((ThreadState::from_raw(state).ok_or(None)?, time))
}

/// Sets a thread's priority.
pub fn set_priority(thread: ThreadId, priority: u8) -> Result<()> {
    schedule(thread, UNCHANGED, UNCHANGED, priority.into(), UNCHANGED).map(drop)
}

/// The system clock in microseconds.
pub fn system_clock() -> u64 {
    syscall::system_clock()
}
