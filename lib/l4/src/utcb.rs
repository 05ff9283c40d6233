//! The calling thread's UTCB: message registers, buffer registers and thread control registers (ABI
//! 7).

use x2::message::{BUFFER_REGISTERS, MESSAGE_REGISTERS};
use x2::{Acceptor, ErrorCode, IpcError, ThreadId, Timeouts, utcb};

/// The UTCB pointer: the address of MR0, which is also the local id of the thread.
#[inline(always)]
pub fn pointer() -> u64 {
    let pointer;
    // SAFETY: the kernel gives every thread a GS base at which its UTCB pointer is. It does not
    // change while the thread stays in its space.
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
    // SAFETY: `word` lies in the thread's UTCB, which is readable as long as the thread exists. The
    // access is volatile, because the kernel changes the word.
    unsafe { word_pointer(word).read_volatile() }
}

/// Writes a word of the UTCB.
#[inline(always)]
fn store(word: isize, value: u64) {
    // SAFETY: `word` lies in the thread's UTCB. The kernel relies on no word of it, and no Rust
    // object lies there.
    unsafe { word_pointer(word).write_volatile(value) }
}

/// Reads message register `index`, 0..=63.
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

/// Reads buffer register `index`, 0..=32.
pub fn buffer_register(index: usize) -> u64 {
    assert!(index < BUFFER_REGISTERS, "no such buffer register");
    load(utcb::buffer_register(index))
}

/// Sets buffer register `index`, 0..=32.
///
/// # Safety
/// Rust code must not rely on memory in the receive window (BR0) or in the string buffers (the
/// others), as long as the thread can receive with them.
pub unsafe fn set_buffer_register(index: usize, value: u64) {
    assert!(index < BUFFER_REGISTERS, "no such buffer register");
    store(utcb::buffer_register(index), value);
}

/// Sets BR0, which says what the thread accepts in messages.
///
/// # Safety
/// Rust code must not rely on memory in the receive window or in the string buffers, as long as the
/// thread can receive with them.
pub unsafe fn accept(acceptor: Acceptor) {
    store(utcb::buffer_register(0), acceptor.raw());
}

/// Accepts untyped words only.
pub fn accept_untyped_words() {
    store(utcb::buffer_register(0), Acceptor::UNTYPED_WORDS.raw());
}

/// The thread's global id (MyGlobalId).
pub fn my_global_id() -> ThreadId {
    ThreadId::from_raw(load(utcb::MY_GLOBAL_ID))
}

/// The thread's local id (MyLocalId), which is the UTCB pointer.
pub fn my_local_id() -> ThreadId {
    ThreadId::local(pointer())
}

/// The number of the processor on which the thread runs.
pub fn processor_number() -> u64 {
    load(utcb::PROCESSOR_NUMBER)
}

/// The user-defined handle of the thread.
pub fn user_defined_handle() -> u64 {
    load(utcb::USER_DEFINED_HANDLE)
}

/// Sets the user-defined handle of the thread.
pub fn set_user_defined_handle(value: u64) {
    store(utcb::USER_DEFINED_HANDLE, value);
}

/// The pager of the thread.
pub fn pager() -> ThreadId {
    ThreadId::from_raw(load(utcb::PAGER))
}

/// Sets the pager of the thread.
pub fn set_pager(pager: ThreadId) {
    store(utcb::PAGER, pager.raw());
}

/// The exception handler of the thread.
pub fn exception_handler() -> ThreadId {
    ThreadId::from_raw(load(utcb::EXCEPTION_HANDLER))
}

/// Sets the exception handler of the thread.
pub fn set_exception_handler(handler: ThreadId) {
    store(utcb::EXCEPTION_HANDLER, handler.raw());
}

/// The word with the preemption flags in byte 0 ([`x2::utcb::preempt_flags`]) and the coprocessor
/// flags in byte 1.
pub fn flags() -> u64 {
    load(utcb::FLAGS)
}

/// Sets the preemption flags byte and returns the old one. If a preemption sets the "pending" flag
/// between the read and the write, the flag is lost; it only says that the thread should yield.
pub fn set_preempt_flags(flags: u8) -> u8 {
    let byte = word_pointer(utcb::FLAGS).cast::<u8>();
    // SAFETY: the byte lies in the thread's own UTCB; a plain store is how the interface sets it.
    unsafe {
        let old = byte.read_volatile();
        byte.write_volatile(flags);
        old
    }
}

/// The raw word ErrorCode.
pub fn error_word() -> u64 {
    load(utcb::ERROR_CODE)
}

/// Sets the ErrorCode word (the kernel overwrites it at the next error).
pub fn set_error_word(value: u64) {
    store(utcb::ERROR_CODE, value);
}

/// The IPC error in ErrorCode, if it holds one; valid after a failed IPC.
pub fn ipc_error() -> Option<IpcError> {
    IpcError::from_raw(error_word())
}

/// The error code in ErrorCode, if it holds one; valid after a failed system call other than Ipc.
pub fn error_code() -> Option<ErrorCode> {
    ErrorCode::from_raw(error_word())
}

/// The timeouts of page faults in string transfers (XferTimeouts).
pub fn xfer_timeouts() -> Timeouts {
    Timeouts::from_raw(load(utcb::XFER_TIMEOUTS))
}

/// Sets the timeouts of page faults in string transfers (XferTimeouts).
pub fn set_xfer_timeouts(timeouts: Timeouts) {
    store(utcb::XFER_TIMEOUTS, timeouts.raw());
}

/// The intended receiver of a message that was received with the redirection flag (R).
pub fn intended_receiver() -> ThreadId {
    ThreadId::from_raw(load(utcb::INTENDED_RECEIVER))
}

/// The real sender of a message that was received with the propagation flag (P).
pub fn actual_sender() -> ThreadId {
    ThreadId::from_raw(load(utcb::ACTUAL_SENDER))
}

/// Sets the originator for a message that will be sent with the propagation flag (P).
pub fn set_virtual_sender(sender: ThreadId) {
    store(utcb::VIRTUAL_SENDER, sender.raw());
}

/// Reads one of the two words that the kernel never changes; `index` is 0 or 1.
pub fn thread_word(index: usize) -> u64 {
    load(thread_word_index(index))
}

/// Sets one of the two words that the kernel never changes; `index` is 0 or 1.
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
