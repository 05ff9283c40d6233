//! Exceptions that arrive while the kernel runs. The kernel never faults (K3), so these are a
//! non-maskable interrupt and bugs, which are reported with everything the processor knows.
use core::fmt;

use super::debug_registers::take_debug_status;
use super::instructions::{frame_pointer, msr, read_cr2, read_cr3, read_msr, write_msr};
use super::{gdt, idt, stacks, stop_others};
use crate::arch::RESUME_FLAG;
use crate::thread::USER_FLAGS;
use crate::{kdb, log, panic};

/// The registers as `vectors.S` pushes them, lowest address first.
#[derive(Debug)]
#[repr(C)]
pub struct Frame {
    registers: [u64; 15],
    vector: u64,
    error_code: u64,
    rip: u64,
    cs: u64,
    rflags: u64,
    rsp: u64,
    ss: u64,
}

const REGISTER_NAMES: [&str; 15] =
    ["r15", "r14", "r13", "r12", "r11", "r10", "r9", "r8", "rdi", "rsi", "rbp", "rbx", "rdx", "rcx", "rax"];
const RBP: usize = 10;
const DEBUG: u64 = 1;
const NON_MASKABLE: u64 = 2;

/// The exception's name in the manuals.
pub fn name(vector: u64) -> &'static str {
    const NAMES: [&str; 22] = [
        "divide error",
        "debug exception",
        "non-maskable interrupt",
        "breakpoint",
        "overflow",
        "bound range exceeded",
        "invalid opcode",
        "device not available",
        "double fault",
        "coprocessor segment overrun",
        "invalid TSS",
        "segment not present",
        "stack fault",
        "general protection",
        "page fault",
        "reserved exception",
        "x87 floating-point error",
        "alignment check",
        "machine check",
        "SIMD floating-point error",
        "virtualization exception",
        "control protection",
    ];
    NAMES.get(vector as usize).copied().unwrap_or("interrupt")
}

/// Called by `vectors.S` with the frame on the stack; returns only to resume what was interrupted.
#[unsafe(no_mangle)]
extern "C" fn kernel_mode_exception(frame: &mut Frame) {
    match frame.vector {
        NON_MASKABLE if stop_others::stand_still(frame.rip) => {}
        NON_MASKABLE => with_kernel_gs(|| {
            log::warning!("non-maskable interrupt");
            log::warning!("{frame}");
            panic::backtrace(frame.rip, frame.registers[RBP]);
            kdb::overview();
        }),
        // A second exception has come before the first's handler has done anything, and has
        // overwritten where the program was. A program can bring this about (MOV SS from memory
        // that it watches, then INT1): it goes on at address 0, with its other registers.
        DEBUG if idt::is_debug_entry(frame.rip) => {
            take_debug_status();
            (frame.rip, frame.cs, frame.rflags) = (0, gdt::USER_CODE.into(), USER_FLAGS);
            (frame.rsp, frame.ss) = (0, gdt::USER_DATA.into());
        }
        DEBUG => with_kernel_gs(|| {
            let status = take_debug_status();
            match kdb::kernel_debug_exception(status, frame.rip, frame, frame.rflags) {
                Some(flags) => frame.rflags = flags,
                // The kernel has accessed memory that the program watches, or an instruction of the
                // program has, after which the exception had to wait (MOV SS, then SYSCALL). Or it
                // has reached a breakpoint that the debugger has removed on another processor.
                None if status.breakpoints != 0 => frame.rflags |= RESUME_FLAG,
                None => report_kernel_exception(frame),
            }
        }),
        _ => with_kernel_gs(|| report_kernel_exception(frame)),
    }
}

/// Runs `code` with GS base at this processor's data, whatever it was: an exception on the way in
/// or out of the kernel, or one that does not wait for the kernel, may find the user's.
fn with_kernel_gs(code: impl FnOnce()) {
    let here = frame_pointer();
    // Before there is per-processor data, the code runs on the boot stack and knows so itself.
    let Some(owner) = stacks::owner(here) else { return code() };
    // SAFETY: GS base exists in every 64-bit processor, `owner` is the executing processor's data,
    // since this is its stack, and what was there is put back.
    unsafe {
        let found = read_msr(msr::GS_BASE);
        write_msr(msr::GS_BASE, owner as u64);
        code();
        write_msr(msr::GS_BASE, found);
    }
}

fn report_kernel_exception(frame: &Frame) -> ! {
    panic::begin_report();
    log::error!(
        "kernel stopped: {} (vector {}, error code {:#x}) at {:#018x}",
        name(frame.vector),
        frame.vector,
        frame.error_code,
        frame.rip
    );
    log::error!("{frame}");
    panic::backtrace(frame.rip, frame.registers[RBP]);
    panic::end_report()
}

impl fmt::Display for Frame {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "cs {:#04x}  rflags {:#08x}  ss {:#04x}  rsp {:#018x}  rip {:#018x}",
            self.cs, self.rflags, self.ss, self.rsp, self.rip
        )?;
        for (index, (name, value)) in REGISTER_NAMES.iter().zip(&self.registers).rev().enumerate() {
            let gap = if index % 4 == 3 { "\n" } else { "  " };
            write!(formatter, "{name:>3} {value:#018x}{gap}")?;
        }
        // SAFETY: both registers exist in every 64-bit processor.
        let (gs, kernel_gs) = unsafe { (read_msr(msr::GS_BASE), read_msr(msr::KERNEL_GS_BASE)) };
        let (cr2, cr3) = (read_cr2(), read_cr3());
        write!(formatter, "\ncr2 {cr2:#018x}  cr3 {cr3:#018x}  gs base {gs:#018x}  swapped {kernel_gs:#018x}")
    }
}
