//! The debug registers: breakpoints of the kernel debugger or of the program that runs, and why a
//! debug exception came. Only the executing processor's are reached; user code cannot touch them.
use core::arch::asm;

use super::cpu_local::cpu_local;
use super::instructions::cpuid;
use crate::arch::{BREAKPOINTS, Breakpoint, DebugStatus, ProgramBreakpoints, STEP_FLAG, StopAt};
use crate::thread::ThreadRef;

/// DR7 without breakpoints: bit 10 is always set.
const NONE: u64 = 1 << 10;
/// The value of DR6 after a reset.
const QUIET: u64 = 0xffff_0ff0;
const SINGLE_STEP: u64 = 1 << 14;

/// The debugger is left: loads its breakpoints into the processor's debug registers. If it has
/// none, the registers are the program's, which runs.
pub fn load_breakpoints(breakpoints: &[Option<Breakpoint>; BREAKPOINTS]) {
    let local = cpu_local();
    let held = breakpoints.iter().any(Option::is_some);
    local.debugger_stops.set(held);
    if !held {
        return load_program_breakpoints(local.processor.loaded_thread.get());
    }
    let mut control = NONE;
    for (index, breakpoint) in breakpoints.iter().enumerate() {
        let Some(breakpoint) = breakpoint else { continue };
        set_address(index, breakpoint.address);
        let condition = match breakpoint.at {
            StopAt::Execution => 0b0000,
            StopAt::Write { bytes: 1 } => 0b0001,
            StopAt::Write { bytes: 2 } => 0b0101,
            StopAt::Write { bytes: 4 } => 0b1101,
            StopAt::Write { .. } => 0b1001,
        };
        control |= 1 << (2 * index + 1) | condition << (16 + 4 * index);
    }
    set_control(control);
}

/// Whether what this processor's debug registers hold is the debugger's.
pub fn debugger_stops() -> bool {
    cpu_local().debugger_stops.get()
}

/// Switches every breakpoint off.
pub fn disable_breakpoints() {
    set_control(NONE);
}

/// The processor goes to `thread`: it or the one before has breakpoints. Those of the debugger
/// stay: programs meet none of theirs meanwhile.
#[cold]
pub(super) fn load_program_breakpoints(thread: Option<ThreadRef>) {
    if debugger_stops() {
        return;
    }
    // Between two addresses the control word must not enable what it meant for others.
    set_control(NONE);
    let Some(thread) = thread else { return };
    let Some(ProgramBreakpoints { addresses, control, .. }) = thread.breakpoints() else { return };
    if thread.registers.rflags.get() & STEP_FLAG != 0 && raises_twice() {
        return;
    }
    addresses.into_iter().enumerate().for_each(|(index, address)| set_address(index, address));
    set_control(NONE | control);
}

/// Whether the processor raises two debug exceptions, one after the other, if an instruction that
/// is executed as a single step accesses what is watched, and not one for both. The second one
/// overwrites the frame of the first. So QEMU's translator does.
fn raises_twice() -> bool {
    const HYPERVISOR: u32 = 1 << 31;
    const TCG: u32 = u32::from_le_bytes(*b"TCGT");
    cpuid(1, 0).ecx & HYPERVISOR != 0 && cpuid(0x4000_0000, 0).ebx == TCG
}

fn set_address(index: usize, address: u64) {
    // SAFETY: an address register has no effect but with its enable bit, and what it then stops is
    // the debugger's, or a program's access to its own memory, at which the kernel's own are
    // harmless.
    unsafe {
        match index {
            0 => asm!("mov dr0, {}", in(reg) address, options(nomem, nostack, preserves_flags)),
            1 => asm!("mov dr1, {}", in(reg) address, options(nomem, nostack, preserves_flags)),
            2 => asm!("mov dr2, {}", in(reg) address, options(nomem, nostack, preserves_flags)),
            _ => asm!("mov dr3, {}", in(reg) address, options(nomem, nostack, preserves_flags)),
        }
    }
}

fn set_control(control: u64) {
    // SAFETY: the kernel survives a debug exception wherever it comes (its own stack, GS base as
    // the stack says).
    unsafe { asm!("mov dr7, {}", in(reg) control, options(nomem, nostack, preserves_flags)) }
}

/// Why the debug exception came that is being handled; forgotten by the processor afterwards.
pub fn take_debug_status() -> DebugStatus {
    let status: u64;
    // SAFETY: the register only reports.
    unsafe {
        asm!("mov {}, dr6", out(reg) status, options(nomem, nostack, preserves_flags));
        asm!("mov dr6, {}", in(reg) QUIET, options(nomem, nostack, preserves_flags));
    }
    DebugStatus { breakpoints: (status & 0xf) as u8, step: status & SINGLE_STEP != 0 }
}
