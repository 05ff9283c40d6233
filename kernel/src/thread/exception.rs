//! Processor exceptions of user code (X.2 rules 11): a few have a meaning of their own, the rest is
//! reported to the thread's exception handler, which answers with the registers to go on with.

use x2::kip;

use super::{Continuation, IpcKind, ThreadRef, breakpoints, fault, ipc, port_fault, redirect, user_memory};
use crate::arch::{DebugStatus, ProgramBreakpoints, RESUME_FLAG};
use crate::scheduler::Next;
use crate::space::Space;
use crate::trace::{self, Event};
use crate::{arch, config, kdb};

/// The page-fault vector: raised as an exception where a fault cannot be served for want of memory
/// (K4).
pub const PAGE_FAULT: u64 = 14;

/// The general-protection vector.
pub const GENERAL_PROTECTION: u64 = 13;

/// The breakpoint vector: INT3.
pub const BREAKPOINT: u64 = 3;

/// Vectors that mean nothing but what is reported, as a bit each: division, overflow, bounds, the
/// segments', x87's, alignment, SIMD.
pub const ALWAYS_REPORTED: u32 = 1 << 0 | 1 << 4 | 1 << 5 | 1 << 11 | 1 << 12 | 1 << 16 | 1 << 17 | 1 << 19;

/// Exception vectors that this module handles.
mod vector {
    pub(super) const DEBUG: u64 = 1;
    pub(super) const INVALID_OPCODE: u64 = 6;
    pub(super) const DEVICE_NOT_AVAILABLE: u64 = 7;
}

/// `lock nop`: where is the kernel interface page? (ABI 4)
const KERNEL_INTERFACE: [u8; 2] = [0xf0, 0x90];

/// The current thread has caused an exception other than a page fault.
pub fn raised(current: ThreadRef, vector: u64, error_code: u64) -> Next {
    if vector == vector::INVALID_OPCODE
        && let Some(next) = redirect::forwarded(current)
    {
        return next;
    }
    let handled = match vector {
        vector::INVALID_OPCODE if !is_confined(current) => kernel_interface(current),
        vector::DEBUG => return debug_exception(current),
        vector::DEVICE_NOT_AVAILABLE => use_extended_state(current),
        BREAKPOINT if may_use_debugger(current) => return kdb::user_breakpoint(current),
        GENERAL_PROTECTION => match port_fault::general_protection(current) {
            Some(next) => return next,
            None => false,
        },
        _ => false,
    };
    if handled { Next::Return } else { report_exception(current, vector, error_code) }
}

/// A step or a breakpoint of the current thread: the kernel debugger's, or the program's own
/// affair.
fn debug_exception(current: ThreadRef) -> Next {
    let status = arch::take_debug_status();
    if kdb::user_debug_exception(status, current) {
        return Next::Return;
    }
    let own = current.breakpoints().filter(|_| !arch::debugger_stops()).unwrap_or(ProgramBreakpoints::NONE);
    let reached = own.enabled_of(status.breakpoints);
    if reached == 0 && status.breakpoints != 0 && !status.step {
        // The debugger's, which was removed on another processor and is still in this one.
        current.registers.rflags.set(current.registers.rflags.get() | RESUME_FLAG);
        return Next::Return;
    }
    if own.stop_before_instruction(reached) {
        // The thread would stop again before it has done anything.
        current.registers.rflags.set(current.registers.rflags.get() | RESUME_FLAG);
    }
    let status = DebugStatus { breakpoints: reached, ..status }.bits();
    breakpoints::note_status(current, status);
    report_exception(current, vector::DEBUG, status)
}

/// Reports an exception to the current thread's handler; without one the thread is halted.
pub fn report_exception(current: ThreadRef, vector: u64, error_code: u64) -> Next {
    trace::event(Event::Exception, vector, current.registers.rip.get());
    current.fault[0].set(vector);
    current.fault[1].set(error_code);
    report_again(current)
}

/// Reports the exception whose words are in the TCB.
pub fn report_again(current: ThreadRef) -> Next {
    current.set_continuation(Continuation::ReturnToUser);
    // The reply may set registers that SYSRET cannot load.
    current.return_with_all_registers();
    match current.exception_handler() {
        handler if handler.is_nil() => fault::halt(current),
        handler => ipc::send_report(current, IpcKind::Exception, handler),
    }
}

/// Whether the instruction that the current thread is at asks where the kernel interface page is.
pub fn asks_for_kernel_interface(current: ThreadRef) -> bool {
    let mut instruction = [0; 2];
    let rip = current.registers.rip.get();
    current.space.get().is_some_and(|space| user_memory::read(space, rip, &mut instruction) == 2)
        && instruction == KERNEL_INTERFACE
}

fn kernel_interface(current: ThreadRef) -> bool {
    if !asks_for_kernel_interface(current) {
        return false;
    }
    let registers = &current.registers;
    let Some(area) = current.space.get().and_then(Space::kip_area) else { return false };
    registers.rip.set(registers.rip.get() + 2);
    registers.rax().set(area.base);
    registers.rcx.set(kip::API_VERSION_VALUE);
    registers.rdx.set(kip::API_FLAGS_VALUE);
    registers.rsi.set(crate::kip::KERNEL_ID);
    true
}

/// The first use of x87, SSE or AVX: the thread gets room for their registers (K14).
fn use_extended_state(current: ThreadRef) -> bool {
    current.extended_state.get().is_none()
        && arch::allocate_extended_state(current.account.get())
            .map(|state| {
                current.extended_state.set(Some(state));
                arch::enter_extended_state(state);
            })
            .is_ok()
}

/// INT3 operations of the kernel debugger work for privileged spaces, for others only by boot
/// option (issue of the kernel debugger: no program can stop the machine).
fn may_use_debugger(current: ThreadRef) -> bool {
    !config::get().no_kdb
        && current
            .space
            .get()
            .is_some_and(|space| space.is_privileged() || config::get().user_kdb && !space.is_owned())
}

/// Whether the thread's program has no business with the kernel's own conventions (K13).
fn is_confined(current: ThreadRef) -> bool {
    current.space.get().is_some_and(Space::is_owned)
}
