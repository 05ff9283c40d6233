//! The processors of the model: each test thread has its own, as statics of the kernel belong to
//! one test at a time. One of them at a time executes, as the test says: what several do
//! interleaves between entries into the kernel.
use std::cell::Cell;

use super::lines;
use crate::arch::ProgramBreakpoints;
use crate::arch::extended_image::{AVX, ExtendedImage, LARGEST_EXTENDED_STATE, X87_SSE};
use crate::memory::{Account, OutOfMemory, PhysAddr};
use crate::processor::{Processor, Public};
use crate::space::Space;
use crate::thread::ThreadRef;

/// The data of one processor of the model.
pub struct CpuLocal {
    /// The part that does not depend on the architecture.
    pub processor: Processor,
    timer: Cell<u64>,
    /// Another processor has sent a cross-processor request.
    attention: Cell<bool>,
    /// Messages of devices that have come and not been taken, one bit each.
    messages: Cell<u64>,
    /// Lines that have interrupted and were not taken, one bit each.
    pub(super) lines: Cell<u64>,
}

/// The most processors that a model has.
const MOST: usize = 4;

thread_local! {
    static LOCALS: [Cell<&'static CpuLocal>; MOST] = core::array::from_fn(|_| Cell::new(new_processor()));
    static NUMBER: Cell<u32> = const { Cell::new(0) };
    static COUNT: Cell<u32> = const { Cell::new(1) };
    static CLOCK: Cell<u64> = const { Cell::new(0) };
}

fn new_processor() -> &'static CpuLocal {
    Box::leak(Box::new(CpuLocal {
        processor: Processor::new(),
        timer: Cell::new(u64::MAX),
        attention: Cell::new(false),
        messages: Cell::new(0),
        lines: Cell::new(0),
    }))
}

pub(super) fn local(number: u32) -> &'static CpuLocal {
    LOCALS.with(|locals| locals[number as usize].get())
}

/// The executing processor of the test thread's machine.
pub fn cpu_local() -> &'static CpuLocal {
    local(NUMBER.get())
}

/// Gives the test thread `count` new processors, for a new machine. The first executes.
pub fn reset_processors(count: u32) {
    LOCALS.with(|locals| locals.iter().for_each(|local| local.set(new_processor())));
    NUMBER.set(0);
    COUNT.set(count);
    CLOCK.set(0);
    lines::reset();
}

/// Makes processor `number` the executing one.
pub fn select_processor(number: u32) {
    assert!(number < cpu_count());
    NUMBER.set(number);
}

/// All of a processor, for tests that look at it from outside.
pub fn local_processor(number: u32) -> &'static Processor {
    &local(number).processor
}

/// The part of a processor's data that other processors read.
pub fn processor(number: u32) -> &'static Public {
    &local(number).processor.public
}

/// Unloads the space from all processors.
pub(super) fn unload(space: &'static Space) {
    for number in 0..cpu_count() {
        let loaded = &local(number).processor.loaded_space;
        if loaded.get().is_some_and(|loaded| core::ptr::eq(loaded, space)) {
            loaded.set(None);
        }
    }
}

/// Interrupts another processor.
pub fn request_attention(number: u32) {
    local(number).attention.set(true);
}

/// Whether the executing processor was sent a cross-processor request, which it takes now.
pub fn take_attention() -> bool {
    cpu_local().attention.take()
}

/// Whether the executing processor was sent a cross-processor request, which it does not take yet.
pub fn attention_is_wanted() -> bool {
    cpu_local().attention.get()
}

/// A device interrupts a processor by message `number`, below 64.
pub fn raise_message(number: u32, processor: u32) {
    let messages = &local(processor).messages;
    messages.set(messages.get() | 1 << number);
}

/// The next message that interrupts the executing processor.
pub fn take_message() -> Option<u32> {
    let messages = &cpu_local().messages;
    let number = messages.get().trailing_zeros();
    messages.set(messages.get() & messages.get().wrapping_sub(1));
    (number < u64::BITS).then_some(number)
}

/// The model has one processor, which has no requests to serve.
pub fn serve_requests() {}

/// The system clock, which tests advance.
pub fn clock() -> u64 {
    CLOCK.get()
}

/// The time-stamp counter: the system clock, here.
pub fn read_time_stamp() -> u64 {
    clock()
}

/// Sets the system clock.
pub fn set_clock(microseconds: u64) {
    CLOCK.set(microseconds);
}

/// The time for which the timer is set, or `u64::MAX` if it is not set.
pub fn timer() -> u64 {
    cpu_local().timer.get()
}

/// Sets the timer.
pub fn set_timer(microseconds: u64) {
    cpu_local().timer.set(microseconds);
}

/// The processor's number.
pub fn cpu_number() -> u32 {
    NUMBER.get()
}

/// How many processors there are.
pub fn cpu_count() -> u32 {
    COUNT.get()
}

/// The kernel's own space.
pub fn load_kernel_space() {}

/// Users' memory has no contents in the model.
pub fn user_memory_to_virt(_address: PhysAddr) -> Option<*mut u8> {
    None
}

/// Extended registers, which threads of the model do not have, and breakpoints.
pub struct ExtendedState(Cell<ProgramBreakpoints>);

/// Room for extended registers.
pub fn allocate_extended_state(_account: Account) -> Result<&'static ExtendedState, OutOfMemory> {
    Ok(Box::leak(Box::new(ExtendedState(Cell::new(ProgramBreakpoints::NONE)))))
}

/// The breakpoints of a thread.
pub fn read_breakpoints(state: &'static ExtendedState) -> ProgramBreakpoints {
    state.0.get()
}

/// Sets the breakpoints of a thread.
pub fn write_breakpoints(state: &'static ExtendedState, breakpoints: &ProgramBreakpoints) {
    state.0.set(*breakpoints);
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

/// Frees the memory for extended registers.
pub fn free_extended_state(_state: &'static ExtendedState, _account: Account) {}

/// Gives the running thread extended registers: nothing to do in the model.
pub fn enter_extended_state(_state: &'static ExtendedState) {}

/// Switches the registers of two threads: the model has none to save or load.
pub fn switch_thread_state(_from: Option<ThreadRef>, _to: ThreadRef) {}

/// Drops a thread's registers: the model has none.
pub fn drop_thread_state(_thread: ThreadRef) {}
