//! The debug registers: breakpoints of the kernel debugger, and why a debug exception came. Only
//! the executing processor's are reached; user code cannot touch them.
use core::arch::asm;

use crate::arch::{BREAKPOINTS, Breakpoint, DebugStatus, StopAt};

/// DR7 without breakpoints: bit 10 is always set.
const NONE: u64 = 1 << 10;
/// The value of DR6 after a reset.
const QUIET: u64 = 0xffff_0ff0;
const SINGLE_STEP: u64 = 1 << 14;

/// Loads these breakpoints into the processor's debug registers, instead of those before.
pub fn load_breakpoints(breakpoints: &[Option<Breakpoint>; BREAKPOINTS]) {
    let mut control = NONE;
    for (index, breakpoint) in breakpoints.iter().enumerate() {
        let Some(breakpoint) = breakpoint else { continue };
        // SAFETY: an address register has no effect but with its enable bit, and what it then stops
        // is the debugger's.
        unsafe {
            match index {
                0 => {
                    asm!("mov dr0, {}", in(reg) breakpoint.address, options(nomem, nostack, preserves_flags))
                }
                1 => {
                    asm!("mov dr1, {}", in(reg) breakpoint.address, options(nomem, nostack, preserves_flags))
                }
                2 => {
                    asm!("mov dr2, {}", in(reg) breakpoint.address, options(nomem, nostack, preserves_flags))
                }
                _ => {
                    asm!("mov dr3, {}", in(reg) breakpoint.address, options(nomem, nostack, preserves_flags))
                }
            }
        }
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

/// Switches every breakpoint off.
pub fn disable_breakpoints() {
    set_control(NONE);
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
