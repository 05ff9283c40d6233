//! The processor: everything that only x86-64 knows. The rest of the kernel uses the names of
//! `crate::arch`.
pub mod boot;
mod cpu_local;
mod crash;
mod debug_registers;
pub mod entry;
pub mod exception;
mod extended_state;
pub mod features;
pub mod gdt;
mod idt;
pub mod instructions;
mod interrupt_table;
mod interrupts;
mod io_apic;
pub mod layout;
mod local_apic;
pub mod paging;
mod pic;
pub mod ports;
pub mod serial;
mod shoot_down;
mod stacks;
mod stop_others;
mod thread_state;
mod time;
pub mod tlb;

use core::arch::asm;

use crate::memory::{PhysAddr, PhysRange};
use crate::sync::SEVERAL;

pub use cpu_local::{CpuLocal, cpu_local, processor};
pub use crash::crash;
pub use debug_registers::{debugger_stops, disable_breakpoints, load_breakpoints, take_debug_status};
pub use entry::allow_fast_entry;
pub use extended_state::{
    ExtendedState, allocate_extended_state, enter_extended_state, extended_components, extended_state_size,
    free_extended_state, read_breakpoints, read_extended_state, write_breakpoints, write_extended_state,
};
pub use instructions::{
    ask_seldom, call_seldom, clear_words, copy_words, fence_after_exchange, flags, frame_pointer,
    read_time_stamp, stop,
};
pub use interrupt_table::interrupt_table;
pub use interrupts::{
    Interrupt, POLL_INTERVAL, direct_interrupt, interrupt_lines, interrupt_message, interrupt_pending,
    mask_interrupt, message_interrupts, raise_line, raise_message, request_attention, take_interrupt,
    unmask_interrupt,
};
pub use layout::{USER_END, image_to_phys, phys_to_virt, virt_to_phys};
pub use paging::{is_direct_mapped, kernel_half, kernel_root};
pub use shoot_down::serve_requests;
pub use stop_others::{resume_others, stop_others, stopped_others};
pub use thread_state::{drop_thread_state, switch_thread_state};
pub use time::{bus_khz, clock, clock_scale, set_timer, time_stamp_khz};
pub use tlb::flush_caches;

/// The port of the emulator's `isa-debug-exit` device, as the test harness configures it.
const DEBUG_EXIT_PORT: u16 = 0xf4;

/// Ends the emulator with exit status `code * 2 + 1`, where it was started with
/// `-device isa-debug-exit,iobase=0xf4`. Elsewhere nothing happens.
pub fn debug_exit(code: u32) {
    // SAFETY: the port belongs to no device of a PC but that one.
    unsafe { instructions::out32(DEBUG_EXIT_PORT, code) }
}

/// Restarts the machine: by the keyboard controller, as a PC is, and if that does not help by its
/// reset register.
pub fn reset() -> ! {
    const KEYBOARD: u16 = 0x64;
    const PULSE_RESET: u8 = 0xfe;
    const RESET_REGISTER: u16 = 0xcf9;
    // SAFETY: nothing runs any more after this.
    unsafe {
        instructions::out8(KEYBOARD, PULSE_RESET);
        for _ in 0..1_000_000 {
            core::hint::spin_loop();
        }
        instructions::out8(RESET_REGISTER, 6);
    }
    stop()
}

/// Can the word at `address` be read without a fault? For backtraces: true for kernel stacks and
/// the image's data.
pub fn is_stack_word(address: u64) -> bool {
    address.is_multiple_of(8)
        && (stacks::contains(address)
            || (layout::rodata_end()..layout::boot_memory_start() - 8).contains(&address))
}

/// Whether `address` is inside the kernel's code.
pub fn is_code(address: u64) -> bool {
    (layout::image_start()..layout::text_end()).contains(&address)
}

/// Waits with interrupts open until one arrives and returns its vector, unacknowledged, with
/// interrupts off again.
///
/// This and [`poll_interrupt`] are the only places where the kernel opens interrupts (K2). Home
/// processor only.
pub fn wait_for_interrupt() -> u8 {
    let local = cpu_local();
    loop {
        local.idle_vector.set(0);
        // SAFETY: STI takes effect after the next instruction, so no interrupt is lost between it
        // and HLT. What takes it (vectors.S) notes the vector and returns with interrupts off.
        unsafe { asm!("sti", "hlt", "cli", options(nostack)) }
        match local.idle_vector.get() {
            0 => {}
            vector => return vector as u8,
        }
    }
}

/// Opens interrupts for a moment: the vector of the one that arrived, if any, unacknowledged.
pub fn poll_interrupt() -> Option<u8> {
    let local = cpu_local();
    local.idle_vector.set(0);
    // SAFETY: as in `wait_for_interrupt`.
    unsafe { asm!("sti", "nop", "nop", "cli", options(nostack)) }
    Some(local.idle_vector.get() as u8).filter(|&vector| vector != 0)
}

/// Whether the machine is a model, of which there are many in turn.
pub const IS_MODEL: bool = false;

/// Which machine this is: there is one. (The model for tests makes many in turn.)
#[inline]
pub const fn machine() -> u32 {
    1
}

/// The physical range of the image and all boot memory.
pub fn image_range() -> PhysRange {
    let physical = |address: u64| image_to_phys(address as *const u8);
    PhysRange::new(physical(layout::image_start()), physical(layout::boot_memory_end()))
}

/// Where memory that a user program has mapped can be reached, if it is memory: device registers
/// cannot.
pub fn user_memory_to_virt(address: PhysAddr) -> Option<*mut u8> {
    is_direct_mapped(PhysRange::new(address, address.offset(1))).then(|| phys_to_virt(address))
}

/// Copies `size` bytes of users' memory, lowest address first. Users may be changing both.
///
/// # Safety
/// Both ranges are memory that belongs to users, reached through the direct map.
#[inline]
pub unsafe fn copy_user_memory(to: *mut u8, from: *const u8, size: usize) {
    // SAFETY: the caller's promise. Instructions and not a Rust copy, because users' other threads
    // write concurrently. DF is clear in the kernel.
    unsafe {
        asm!(
            "rep movsq",
            "mov ecx, {rest:e}",
            "rep movsb",
            rest = in(reg) size % 8,
            inout("rcx") size / 8 => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
}

/// Makes the kernel's own space the active one.
pub fn load_kernel_space() {
    tlb::activate(kernel_root());
}

/// How many processors run threads.
#[inline]
pub fn cpu_count() -> u32 {
    if SEVERAL { boot::processors::count() } else { 1 }
}

/// The executing processor's number.
#[inline]
pub fn cpu_number() -> u32 {
    if SEVERAL { cpu_local().number } else { 0 }
}
