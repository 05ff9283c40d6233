//! A model of the machine for tests on the host: physical memory is an arena, translations are
//! looked up by a simulated TLB, interrupts are pending when a test says so.
//!
//! The kernel's statics exist once per process, so a test that uses them makes a [`Machine`] first:
//! it waits for the other tests' machines to go away, and resets everything.
mod cpu_local;
mod interrupts;
mod lines;
mod machine;
pub mod ports;
pub mod serial;
pub mod tlb;

use crate::arch::{BREAKPOINTS, Breakpoint, Crash, DebugStatus};
use crate::memory::PhysAddr;

use cpu_local::unload;
pub use cpu_local::{
    CpuLocal, ExtendedState, allocate_extended_state, attention_is_wanted, clock, cpu_count, cpu_local,
    cpu_number, drop_thread_state, enter_extended_state, extended_components, extended_state_size,
    free_extended_state, load_kernel_space, local_processor, processor, raise_message, read_breakpoints,
    read_extended_state, read_time_stamp, request_attention, reset_processors, select_processor,
    serve_requests, set_clock, set_timer, switch_thread_state, take_attention, take_message, timer,
    user_memory_to_virt, write_breakpoints, write_extended_state,
};
pub use interrupts::{POLL_INTERVAL, interrupt_message, interrupt_pending, interrupt_table};
pub use lines::{
    assert_line, direct_interrupt, line_destination, mask_interrupt, raise_line, take_line, unmask_interrupt,
};
pub use machine::{IS_MODEL, Machine, kernel_half, machine, phys_to_virt, virt_to_phys};
pub use tlb::flush_caches;

/// First address that is not the user's.
pub const USER_END: u64 = (1 << 47) - 4096;

/// The emulator's exit device: the model has none.
pub fn debug_exit(_code: u32) {}

/// Clears `count` words.
///
/// # Safety
/// They are the caller's to write.
pub unsafe fn clear_words(words: *mut u64, count: usize) {
    // SAFETY: the caller promises that the words may be written.
    unsafe { words.write_bytes(0, count) };
}

/// Copies `count` words.
///
/// # Safety
/// They are the caller's to read, and to write. They do not overlap.
pub unsafe fn copy_words(to: *mut u64, from: *const u64, count: usize) {
    // SAFETY: the caller promises that both areas exist and do not overlap.
    unsafe { to.copy_from_nonoverlapping(from, count) };
}

/// The flags with which the kernel runs: the model has none.
pub fn flags() -> u64 {
    0
}

/// Users' memory has no contents in the model.
///
/// # Safety
/// Nothing is copied.
pub unsafe fn copy_user_memory(_to: *mut u8, _from: *const u8, _size: usize) {}

/// The model has no debug registers.
pub fn load_breakpoints(_breakpoints: &[Option<Breakpoint>; BREAKPOINTS]) {}

/// The model has no debug registers.
pub fn disable_breakpoints() {}

/// Whether what the debug registers hold is the debugger's: the model has none.
pub fn debugger_stops() -> bool {
    false
}

/// In the model, one processor at a time executes.
pub fn stop_others() -> bool {
    false
}

/// Lets the other processors go on: in the model, the test chooses the one that executes.
pub fn resume_others() {}

/// The model has no other processors to stop.
pub fn stopped_others() -> impl Iterator<Item = (u32, Option<u64>)> {
    core::iter::empty()
}

/// In the model every debug exception is the program's own.
pub fn take_debug_status() -> DebugStatus {
    DebugStatus { breakpoints: 0, step: false }
}

/// Calls `function`.
pub fn call_seldom(function: extern "C" fn(u64, u64), first: u64, second: u64) {
    function(first, second);
}

/// Calls `function`, and returns its result.
pub fn ask_seldom(function: extern "C" fn(u64, u64) -> u64, first: u64, second: u64) -> u64 {
    function(first, second)
}

/// All accesses after it come after all accesses before it; called next to an atomic exchange of
/// any kind.
pub fn fence_after_exchange() {
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
}

/// The model has no entry code.
pub fn allow_fast_entry(_allowed: bool) {}

/// Restarts the machine: in the model, the test fails.
pub fn reset() -> ! {
    unreachable!("the machine was restarted")
}

/// Stops the processor: in the model, the test fails.
pub fn stop() -> ! {
    unreachable!("the processor was stopped")
}

/// The model has no stacks of its own, so a backtrace ends immediately.
pub fn is_stack_word(_address: u64) -> bool {
    false
}

/// The model's code is not the kernel's image.
pub fn is_code(_address: u64) -> bool {
    false
}

/// The physical address of a static of the kernel: the model gives them none of their own.
pub fn image_to_phys<T>(item: *const T) -> PhysAddr {
    PhysAddr::new(item as u64)
}

/// Provokes a fault of the kernel: in the model, always a panic.
pub fn crash(how: Crash) {
    panic!("{how:?} asked for by the debugger");
}
