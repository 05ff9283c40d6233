//! The system calls that this crate makes on threads of programs. They could break a running
//! program of this address space. They cannot do so here, because each thread concerned lives in a
//! space that the server owns, and executes no code of the server.
#![allow(unsafe_code)]

use l4::extension::{self, Registers, State};
use l4::syscall::ExchangedRegisters;
use l4::x2::control::{ExchangeControl, ThreadState, UNCHANGED};
use l4::x2::extension::MapItem;
use l4::x2::{ErrorCode, ThreadId};
use l4::{registers, thread, utcb};
use mach::machine::Breakpoints;
use mach::{KernError, KernResult};

use crate::event::Words;

/// The library's error for an error code of the kernel.
pub(crate) fn error(error: Option<ErrorCode>) -> KernError {
    match error {
        Some(ErrorCode::InvalidThread | ErrorCode::InvalidSpace) => KernError::Terminated,
        Some(ErrorCode::InvalidParameter) => KernError::InvalidArgument,
        Some(ErrorCode::NoMemory) => KernError::ResourceShortage,
        _ => KernError::Failure,
    }
}

fn exchange(thread: ThreadId, control: ExchangeControl) -> KernResult {
    // SAFETY: the thread belongs to a program and executes no code of the server.
    unsafe { thread::exchange_registers(thread, control, ExchangedRegisters::default()) }
        .map(drop)
        .map_err(error)
}

/// Stops user-level execution of a thread: after this call it executes no instruction. An IPC in
/// which the thread is continues.
pub(crate) fn halt(thread: ThreadId) -> KernResult {
    exchange(thread, ExchangeControl::STOP)
}

/// Lets a halted thread execute.
pub(crate) fn unhalt(thread: ThreadId) -> KernResult {
    exchange(thread, ExchangeControl::RESUME)
}

/// Stops user-level execution of a thread and aborts the IPC in which it is, if any.
pub(crate) fn halt_and_abort(thread: ThreadId) -> KernResult {
    exchange(thread, ExchangeControl::STOP.with(ExchangeControl::ABORT_IPC))
}

/// Aborts the IPC in which a thread is, if any.
pub(crate) fn abort(thread: ThreadId) -> KernResult {
    exchange(thread, ExchangeControl::ABORT_IPC)
}

/// Goes to the processor of a thread and back. What runs there is interrupted; the thread itself is
/// left as it is.
pub(crate) fn visit(thread: ThreadId) -> KernResult {
    exchange(thread, ExchangeControl::NONE)
}

/// Starts a thread that is new or cached, with the registers that it has. If `halted`, it executes
/// nothing until [`unhalt`] is called.
pub(crate) fn start(thread: ThreadId, halted: bool) -> KernResult {
    let halt = if halted { ExchangeControl::HALT } else { ExchangeControl::NONE };
    exchange(thread, ExchangeControl::RESUME.with(ExchangeControl::CANCEL_RECEIVE).with(halt))
}

/// Whether a thread is in an IPC that it has begun by an IPC system call, not one that the kernel
/// has begun in its name.
pub(crate) fn is_in_own_ipc(state: State) -> bool {
    use ThreadState::{PendingSend, Receiving, Sending, Waiting};
    matches!(ThreadState::from_raw(state.0 & 0xf), Some(PendingSend | Receiving | Sending | Waiting))
}

/// Recalls a thread: it sends an exception message before its next instruction. Returns what it was
/// doing before.
pub(crate) fn recall(thread: ThreadId) -> KernResult<State> {
    extension::recall(thread).map_err(error)
}

/// Reads the registers of a thread that does not run. They are left in the message registers, too.
pub(crate) fn read_registers(thread: ThreadId) -> KernResult<Registers> {
    extension::read_registers(thread).map_err(error)
}

/// Writes the registers of a thread that does not run. They are left in the message registers, too.
/// Returns what the thread is doing.
pub(crate) fn write_registers(thread: ThreadId, registers: &Registers) -> KernResult<State> {
    // SAFETY: the thread belongs to a program and executes no code of the server.
    unsafe { extension::write_registers(thread, registers) }.map_err(error)
}

/// Reads the registers of a thread that does not run, and exchanges its extended state for the one
/// that begins in `image`. They are left in the message registers, too. Returns the size of the old
/// extended state.
pub(crate) fn exchange_extended_state(thread: ThreadId, image: &mut [u8]) -> KernResult<(Registers, usize)> {
    extension::exchange_extended_state(thread, image).map_err(error)
}

/// Writes the registers and the extended state of a thread that does not run.
pub(crate) fn write_all(thread: ThreadId, registers: &Registers, image: &[u8]) -> KernResult {
    // SAFETY: the thread belongs to a program and executes no code of the server.
    unsafe { extension::write_all(thread, registers, image) }.map_err(error)
}

/// Reads the extended state of a thread that does not run.
pub(crate) fn read_extended_state(thread: ThreadId, buffer: &mut [u8]) -> KernResult<usize> {
    extension::read_extended_state(thread, buffer).map_err(error)
}

/// Writes the extended state of a thread that does not run.
pub(crate) fn write_extended_state(thread: ThreadId, image: &[u8]) -> KernResult {
    extension::write_extended_state(thread, image).map_err(error)
}

/// Writes the breakpoints of a thread that does not run.
pub(crate) fn write_breakpoints(thread: ThreadId, breakpoints: &Breakpoints) -> KernResult {
    let Breakpoints { addresses, control } = *breakpoints;
    let breakpoints = extension::Breakpoints { addresses, control, status: 0 };
    extension::write_breakpoints(thread, &breakpoints).map(drop).map_err(error)
}

/// Why the last debug exception came of a thread with breakpoints that does not run.
pub(crate) fn debug_status(thread: ThreadId) -> KernResult<u64> {
    extension::read_breakpoints(thread).map(|breakpoints| breakpoints.status).map_err(error)
}

/// Sets priority and time slice of a thread; `time` is encoded as for the system call Schedule.
pub(crate) fn schedule(thread: ThreadId, priority: u8, time: u64) -> KernResult {
    thread::schedule(thread, time, UNCHANGED, priority.into(), UNCHANGED).map(drop).map_err(error)
}

/// Moves a thread to another processor, on which it continues.
pub(crate) fn move_to(thread: ThreadId, processor: usize) -> KernResult {
    thread::schedule(thread, UNCHANGED, processor as u64, UNCHANGED, UNCHANGED).map(drop).map_err(error)
}

/// Makes `handler`, a worker, the receiver of all messages that the kernel sends in a thread's
/// name: faults, exceptions, system calls. If the thread is waiting for an answer, it still waits
/// for the worker that it asked. The caller's message registers up to MR20 are preserved.
pub(crate) fn set_handlers(thread: ThreadId, handler: ThreadId) -> KernResult {
    extension::set_handlers(thread, Some(handler), Some(handler)).map_err(error)
}

/// Reads the time-stamp counter.
#[inline]
pub(crate) fn time_stamp() -> u64 {
    // SAFETY: the instruction only reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Carries out a batch of MapControl items on the space of `thread`. The error is the index of the
/// item that failed.
pub(crate) fn map_control(thread: ThreadId, items: &mut [MapItem]) -> Result<(), usize> {
    if let [item] = items {
        item.answer = extension::map_control_one(thread, item).map_err(|_| 0usize)?;
        return Ok(());
    }
    extension::map_control(thread, items).map_err(|(failed, _)| failed)
}

/// Reads the message registers MR1..MR7.
pub(crate) fn register_words() -> Words {
    core::array::from_fn(|index| utcb::message_register(index + 1))
}

pub(crate) use registers::ipc;
