//! The calling thread's UTCB: message registers, buffer registers and thread control registers (ABI
//! 7).

use x2::message::{BUFFER_REGISTERS, MESSAGE_REGISTERS};
use x2::{Acceptor, ErrorCode, IpcError, ThreadId, Timeouts, utcb};

/// The UTCB pointer: address of MR0, and the local id of the thread.
#[inline(always)]
pub fn pointer() -> u64 {
    let pointer;
    // SAFETY: the kernel gives every thread a GS base whose first word is its UTCB pointer; it does
    // not change while the thread stays in its space.
    unsafe {
        core::arch::asm!("mov {}, gs:[0]", out(reg) pointer, options(pure, nomem, nostack, preserves_flags));
    }
    pointer
}

fn word_pointer(word: isize) -> *mut u64 {
    (pointer() as *mut u64).wrapping_offset(word)
}

/// Reads a word of the UTCB; `word` is one of the constants of [`x2::utcb`].
#[inline(always)]
fn load(word: isize) -> u64 {
    // SAFETY: callers in this module pass words of the block, which is readable as long as the
    // thread lives. Volatile, because the kernel changes it.
    unsafe { word_pointer(word).read_volatile() }
}

/// Writes a word of the UTCB.
#[inline(always)]
fn store(word: isize, value: u64) {
    // SAFETY: as in `load`; the kernel trusts nothing in the block and Rust keeps nothing in it.
    unsafe { word_pointer(word).write_volatile(value) }
}

/// Message register `index`, 0..=63.
#[inline(always)]
pub fn message_register(index: usize) -> u64 {
    assert!(index < MESSAGE_REGISTERS, "no such message register");
    load(utcb::message_register(index))
}

/// Sets message register `index`, 0..=63.
#[inline(always)]
pub fn set_message_register(index: usize, value: u64) {
    assert!(index < MESSAGE_REGISTERS, "no such message register");
    store(utcb::message_register(index), value);
}

/// Buffer register `index`, 0..=32.
pub fn buffer_register(index: usize) -> u64 {
    assert!(index < BUFFER_REGISTERS, "no such buffer register");
    load(utcb::buffer_register(index))
}

/// Sets buffer register `index`, 0..=32.
///
/// # Safety
/// In the receive window of BR0 and in the string buffers of the others lies no memory that Rust
/// code relies on, as long as the thread can receive with them.
pub unsafe fn set_buffer_register(index: usize, value: u64) {
    assert!(index < BUFFER_REGISTERS, "no such buffer register");
    store(utcb::buffer_register(index), value);
}

/// Sets BR0: what the thread accepts from now on.
///
/// # Safety
/// As for [`set_buffer_register`].
pub unsafe fn accept(acceptor: Acceptor) {
    store(utcb::buffer_register(0), acceptor.raw());
}

/// Accepts untyped words only.
pub fn accept_untyped_words() {
    store(utcb::buffer_register(0), Acceptor::UNTYPED_WORDS.raw());
}

/// MyGlobalId.
pub fn my_global_id() -> ThreadId {
    ThreadId::from_raw(load(utcb::MY_GLOBAL_ID))
}

/// MyLocalId: the UTCB pointer.
pub fn my_local_id() -> ThreadId {
    ThreadId::local(pointer())
}

/// Number of the processor that the thread runs on.
pub fn processor_number() -> u64 {
    load(utcb::PROCESSOR_NUMBER)
}

/// User-defined handle.
pub fn user_defined_handle() -> u64 {
    load(utcb::USER_DEFINED_HANDLE)
}

/// Sets the user-defined handle.
pub fn set_user_defined_handle(value: u64) {
    store(utcb::USER_DEFINED_HANDLE, value);
}

/// Pager.
pub fn pager() -> ThreadId {
    ThreadId::from_raw(load(utcb::PAGER))
}

/// Sets the pager.
pub fn set_pager(pager: ThreadId) {
    store(utcb::PAGER, pager.raw());
}

/// Exception handler.
pub fn exception_handler() -> ThreadId {
    ThreadId::from_raw(load(utcb::EXCEPTION_HANDLER))
}

/// Sets the exception handler.
pub fn set_exception_handler(handler: ThreadId) {
    store(utcb::EXCEPTION_HANDLER, handler.raw());
}

/// Word with the preemption flags in byte 0 ([`x2::utcb::preempt_flags`]) and the coprocessor flags
/// in byte 1.
pub fn flags() -> u64 {
    load(utcb::FLAGS)
}

/// Sets the preemption flags byte and returns the old one. A preemption in between can set the
/// "pending" flag, which is then lost: the flag only says that the thread should yield.
pub fn set_preempt_flags(flags: u8) -> u8 {
    let byte = word_pointer(utcb::FLAGS).cast::<u8>();
    // SAFETY: the byte lies in the thread's own UTCB; a plain store is how the interface sets it.
    unsafe {
        let old = byte.read_volatile();
        byte.write_volatile(flags);
        old
    }
}

/// Raw ErrorCode word.
pub fn error_word() -> u64 {
    load(utcb::ERROR_CODE)
}

/// Sets the ErrorCode word (the kernel overwrites it at the next error).
pub fn set_error_word(value: u64) {
    store(utcb::ERROR_CODE, value);
}

/// ErrorCode after a failed IPC, if it holds an IPC error.
pub fn ipc_error() -> Option<IpcError> {
    IpcError::from_raw(error_word())
}

/// ErrorCode after a system call other than Ipc that has failed, if it holds a code.
pub fn error_code() -> Option<ErrorCode> {
    ErrorCode::from_raw(error_word())
}

/// Transfer timeouts.
pub fn xfer_timeouts() -> Timeouts {
    Timeouts::from_raw(load(utcb::XFER_TIMEOUTS))
}

/// Sets the transfer timeouts.
pub fn set_xfer_timeouts(timeouts: Timeouts) {
    store(utcb::XFER_TIMEOUTS, timeouts.raw());
}

/// Intended receiver of a message received with R.
pub fn intended_receiver() -> ThreadId {
    ThreadId::from_raw(load(utcb::INTENDED_RECEIVER))
}

/// Real sender of a message received with P.
pub fn actual_sender() -> ThreadId {
    ThreadId::from_raw(load(utcb::ACTUAL_SENDER))
}

/// Sets the originator for a message that will be sent with P.
pub fn set_virtual_sender(sender: ThreadId) {
    store(utcb::VIRTUAL_SENDER, sender.raw());
}

/// One of the two words that the kernel leaves alone; `index` is 0 or 1.
pub fn thread_word(index: usize) -> u64 {
    load(thread_word_index(index))
}

/// Sets one of the two words that the kernel leaves alone; `index` is 0 or 1.
pub fn set_thread_word(index: usize, value: u64) {
    store(thread_word_index(index), value);
}

fn thread_word_index(index: usize) -> isize {
    match index {
        0 => utcb::THREAD_WORD_0,
        1 => utcb::THREAD_WORD_1,
        _ => panic!("no such thread word"),
    }
}
