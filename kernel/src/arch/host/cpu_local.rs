//! The processor of the model: one per test thread, as statics of the kernel belong to one test at a time.
use std::cell::Cell;

use crate::arch::extended_image::{AVX, ExtendedImage, LARGEST_EXTENDED_STATE, X87_SSE};
use crate::memory::{Account, OutOfMemory, PhysAddr};
use crate::processor::Processor;
use crate::thread::ThreadRef;

/// What the processor has for itself.
pub struct CpuLocal {
    /// The portable part.
    pub processor: Processor,
    clock: Cell<u64>,
    timer: Cell<u64>,
}

thread_local! {
    static LOCAL: Cell<&'static CpuLocal> = Cell::new(new_processor());
}

fn new_processor() -> &'static CpuLocal {
    Box::leak(Box::new(CpuLocal {
        processor: Processor::new(),
        clock: Cell::new(0),
        timer: Cell::new(u64::MAX),
    }))
}

/// The test thread's processor.
pub fn cpu_local() -> &'static CpuLocal {
    LOCAL.get()
}

/// Gives the test thread a new processor, for a new machine.
pub fn reset_processor() {
    LOCAL.set(new_processor());
}

/// The system clock, which tests advance.
pub fn clock() -> u64 {
    cpu_local().clock.get()
}

/// The time-stamp counter: the system clock, here.
pub fn read_time_stamp() -> u64 {
    clock()
}

/// Sets the system clock.
pub fn set_clock(microseconds: u64) {
    cpu_local().clock.set(microseconds);
}

/// For when the timer is set; `u64::MAX` = for nothing.
pub fn timer() -> u64 {
    cpu_local().timer.get()
}

/// Sets the timer.
pub fn set_timer(microseconds: u64) {
    cpu_local().timer.set(microseconds);
}

/// The processor's number.
pub fn cpu_number() -> u32 {
    0
}

/// How many processors there are.
pub fn cpu_count() -> u32 {
    1
}

/// Interrupt lines of the model have no controller.
pub fn mask_interrupt(_line: u32) {}

/// Interrupt lines of the model have no controller.
pub fn unmask_interrupt(_line: u32) {}

/// The kernel's own space.
pub fn load_kernel_space() {}

/// Users' memory has no contents in the model.
pub fn user_memory_to_virt(_address: PhysAddr) -> Option<*mut u8> {
    None
}

/// Threads of the model have no extended registers.
pub struct ExtendedState;

/// Room for extended registers.
pub fn allocate_extended_state(_account: Account) -> Result<&'static ExtendedState, OutOfMemory> {
    Ok(&ExtendedState)
}

/// The components that threads can use.
pub fn extended_components() -> u64 {
    X87_SSE | AVX
}

/// Bytes of a whole image.
pub fn extended_state_size() -> usize {
    LARGEST_EXTENDED_STATE
}

/// The model keeps no registers: they are always in their initial state.
pub fn read_extended_state(_state: &'static ExtendedState) -> ExtendedImage {
    ExtendedImage::new()
}

/// The model keeps no registers.
pub fn write_extended_state(_state: &'static ExtendedState, _image: &ExtendedImage) {}

/// Returns the room.
pub fn free_extended_state(_state: &'static ExtendedState, _account: Account) {}

/// The running thread has extended registers from now on.
pub fn enter_extended_state(_state: &'static ExtendedState) {}

/// Nothing to save or load.
pub fn switch_thread_state(_from: Option<ThreadRef>, _to: ThreadRef) {}

/// Nothing to save.
pub fn drop_thread_state(_thread: ThreadRef) {}
