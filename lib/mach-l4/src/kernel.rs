//! The system calls that this crate uses on threads of programs: what can break a running program
//! in theory, and cannot here, because each thread concerned lies in a space that the server owns
//! and runs no code of the server's.
#![allow(unsafe_code)]

use l4::extension::{self, Registers, State};
use l4::syscall::ExchangedRegisters;
use l4::x2::control::{ExchangeControl, ThreadState, UNCHANGED};
use l4::x2::extension::MapItem;
use l4::x2::{ErrorCode, ThreadId};
use l4::{registers, thread, utcb};
use mach::{KernError, KernResult};

use crate::event::Words;

/// What a failed call means to the library.
pub(crate) fn error(error: Option<ErrorCode>) -> KernError {
    match error {
        Some(ErrorCode::InvalidThread | ErrorCode::InvalidSpace) => KernError::Terminated,
        Some(ErrorCode::InvalidParameter) => KernError::InvalidArgument,
        Some(ErrorCode::NoMemory) => KernError::ResourceShortage,
        _ => KernError::Failure,
    }
}

fn exchange(thread: ThreadId, control: ExchangeControl) -> KernResult {
    // SAFETY: a thread of a program; see the head of the module.
    unsafe { thread::exchange_registers(thread, control, ExchangedRegisters::default()) }
        .map(drop)
        .map_err(error)
}

/// Stops user-level execution of a thread: after this it executes no instruction. IPC in its name
/// goes on.
pub(crate) fn halt(thread: ThreadId) -> KernResult {
    exchange(thread, ExchangeControl::STOP)
}

/// Lets a halted thread execute.
pub(crate) fn unhalt(thread: ThreadId) -> KernResult {
    exchange(thread, ExchangeControl::RESUME)
}

/// Stops a thread and ends whatever IPC it is in.
pub(crate) fn halt_and_abort(thread: ThreadId) -> KernResult {
    exchange(thread, ExchangeControl::STOP.with(ExchangeControl::ABORT_IPC))
}

/// Ends the IPC that a thread is in.
pub(crate) fn abort(thread: ThreadId) -> KernResult {
    exchange(thread, ExchangeControl::ABORT_IPC)
}

/// Lets a thread that waits for its start, or is cached, go on with the registers that it has;
/// `halted`: it executes nothing until [`unhalt`] lets it go.
pub(crate) fn start(thread: ThreadId, halted: bool) -> KernResult {
    let halt = if halted { ExchangeControl::HALT } else { ExchangeControl::NONE };
    exchange(thread, ExchangeControl::RESUME.with(ExchangeControl::CANCEL_RECEIVE).with(halt))
}

/// Whether a thread is in an IPC that it has begun itself.
pub(crate) fn is_in_own_ipc(state: State) -> bool {
    use ThreadState::{PendingSend, Receiving, Sending, Waiting};
    matches!(ThreadState::from_raw(state.0 & 0xf), Some(PendingSend | Receiving | Sending | Waiting))
}

/// Recalls a thread. Returns what it did before.
pub(crate) fn recall(thread: ThreadId) -> KernResult<State> {
    extension::recall(thread).map_err(error)
}

/// Reads the registers of a thread that does not run; they are in the message registers, too.
pub(crate) fn read_registers(thread: ThreadId) -> KernResult<Registers> {
    extension::read_registers(thread).map_err(error)
}

/// Writes the registers of a thread that does not run; they are in the message registers, too.
/// Returns what it does.
pub(crate) fn write_registers(thread: ThreadId, registers: &Registers) -> KernResult<State> {
    // SAFETY: a thread of a program; see the head of the module.
    unsafe { extension::write_registers(thread, registers) }.map_err(error)
}

/// Reads the extended state of a thread that does not run.
pub(crate) fn read_extended_state(thread: ThreadId, buffer: &mut [u8]) -> KernResult<usize> {
    extension::read_extended_state(thread, buffer).map_err(error)
}

/// Writes the extended state of a thread that does not run.
pub(crate) fn write_extended_state(thread: ThreadId, image: &[u8]) -> KernResult {
    extension::write_extended_state(thread, image).map_err(error)
}

/// Sets priority and time slice (raw time, see `Schedule`) of a thread.
pub(crate) fn schedule(thread: ThreadId, priority: u8, time: u64) -> KernResult {
    thread::schedule(thread, time, UNCHANGED, priority.into(), UNCHANGED).map(drop).map_err(error)
}

/// Moves a thread to another processor, on which it goes on.
pub(crate) fn move_to(thread: ThreadId, processor: usize) -> KernResult {
    thread::schedule(thread, UNCHANGED, processor as u64, UNCHANGED, UNCHANGED).map(drop).map_err(error)
}

/// From now on a worker gets what the kernel reports in a thread's name: faults, exceptions, system
/// calls. A thread that waits for an answer goes on waiting for the worker that it asked. The
/// caller's message registers up to MR20 stay as they are.
pub(crate) fn set_handlers(thread: ThreadId, handler: ThreadId) -> KernResult {
    extension::set_handlers(thread, Some(handler), Some(handler)).map_err(error)
}

/// The time-stamp counter.
#[inline]
pub(crate) fn time_stamp() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// A batch of MapControl items on the space of `thread`; the error is the item that failed.
pub(crate) fn map_control(thread: ThreadId, items: &mut [MapItem]) -> Result<(), usize> {
    if let [item] = items {
        item.answer = extension::map_control_one(thread, item).map_err(|_| 0usize)?;
        return Ok(());
    }
    extension::map_control(thread, items).map_err(|(failed, _)| failed)
}

/// Words of the message registers MR1..MR7.
pub(crate) fn register_words() -> Words {
    core::array::from_fn(|index| utcb::message_register(index + 1))
}

/// Puts words where functions that read a received message in the message registers find them.
pub(crate) fn set_register_words(words: &Words) {
    for (index, &word) in words.iter().enumerate() {
        utcb::set_message_register(index + 1, word);
    }
}

pub(crate) use registers::ipc;
