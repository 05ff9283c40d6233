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

/// Arguments of ThreadControl in addition to the thread itself; the default changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadControl {
    /// A thread of the space that the thread shall be in; nil deletes.
    pub space: ThreadId,
    /// The thread's scheduler; nil = unchanged.
    pub scheduler: ThreadId,
    /// The thread's pager; nil = unchanged, otherwise an inactive thread becomes active.
    pub pager: ThreadId,
    /// The address of the thread's UTCB; `None` = unchanged.
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

/// The state of a thread as ExchangeRegisters has returned it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchanged {
    /// The other form of the id: local for a global one and the other way round.
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

/// ExchangeRegisters on `thread`, with `control` and the values for the bits set in it (its `id`
/// and `control` fields are ignored).
///
/// # Safety
/// If the thread runs on at another IP, with another SP or other flags, or without the answer to
/// its IPC, it must find there what its code expects.
pub unsafe fn exchange_registers(
    thread: ThreadId,
    control: ExchangeControl,
    values: ExchangedRegisters,
) -> Result<Exchanged> {
    let registers = ExchangedRegisters { id: thread.raw(), control: control.raw(), ..values };
    // SAFETY: the caller answers for what the thread does next.
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

/// The other form of a thread's id, and its state. Changes nothing.
pub fn inspect(thread: ThreadId) -> Result<Exchanged> {
    // SAFETY: nothing is changed.
    unsafe { exchange_registers(thread, ExchangeControl::DELIVER, ExchangedRegisters::default()) }
}

/// Local id of a thread of this space.
pub fn local_id_of(thread: ThreadId) -> Result<ThreadId> {
    if thread.is_local() { Ok(thread) } else { inspect(thread).map(|old| old.id) }
}

/// Global id of a thread of this space.
pub fn global_id_of(thread: ThreadId) -> Result<ThreadId> {
    if thread.is_local() { inspect(thread).map(|old| old.id) } else { Ok(thread) }
}

/// Starts an active thread of this space at `ip` with `sp`.
///
/// # Safety
/// `ip` is code that can run with that stack and nothing else.
pub unsafe fn start(thread: ThreadId, ip: u64, sp: u64) -> Result<()> {
    let values = ExchangedRegisters { ip, sp, ..Default::default() };
    // SAFETY: the caller answers for ip and sp.
    unsafe { exchange_registers(thread, ExchangeControl::START, values) }.map(drop)
}

/// Halts a thread of this space: it runs no user code until [`resume`].
pub fn stop(thread: ThreadId) -> Result<Exchanged> {
    // SAFETY: the thread goes on later as if it had not been scheduled in between.
    unsafe { exchange_registers(thread, ExchangeControl::STOP, ExchangedRegisters::default()) }
}

/// Lets a halted thread of this space run on.
pub fn resume(thread: ThreadId) -> Result<Exchanged> {
    // SAFETY: as for `stop`.
    unsafe { exchange_registers(thread, ExchangeControl::RESUME, ExchangedRegisters::default()) }
}

/// Ends the IPC that a thread of this space is in: it gets an error.
pub fn abort_ipc(thread: ThreadId) -> Result<Exchanged> {
    // SAFETY: any IPC can fail, and the thread is told.
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

/// Schedule with raw control words ([`x2::control`]); all ones leave a word unchanged. Returns the
/// state and the raw time word.
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

/// Clock in microseconds.
pub fn system_clock() -> u64 {
    syscall::system_clock()
}
