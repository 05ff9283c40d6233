//! What a thread has in the processor in addition to its integer registers: FS base, GS base (K5)
//! and the extended state.
use core::arch::asm;

use super::extended_state::switch_extended_state;
use super::features::{self, Features};
use super::instructions::{msr, write_msr};
use crate::thread::{Tcb, ThreadRef};

/// Saves what the processor holds of `from` and loads `to`'s.
pub fn switch_thread_state(from: Option<ThreadRef>, to: ThreadRef) {
    if let Some(from) = from {
        from.registers.fs_base.set(fs_base(from));
    }
    clear_selectors();
    load_bases(to);
    switch_extended_state(from, Some(to));
}

/// Saves what the processor holds of `thread`, and holds no thread's state afterwards.
pub fn drop_thread_state(thread: ThreadRef) {
    thread.registers.fs_base.set(fs_base(thread));
    switch_extended_state(Some(thread), None);
}

/// The FS base with which `thread`, whose state is loaded, runs.
fn fs_base(thread: &Tcb) -> u64 {
    if !features::has(Features::FSGSBASE) {
        // Without the feature programs cannot set another FS base than the kernel knows.
        return thread.registers.fs_base.get();
    }
    let base;
    // SAFETY: CR4.FSGSBASE is set where the feature exists.
    unsafe { asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    base
}

/// Makes DS, ES, FS and GS null. They are no part of a thread's state, since 64-bit code does not
/// use them; but what one thread has loaded must not be seen by the next. Both bases are lost: the
/// caller loads them.
fn clear_selectors() {
    let found: u32;
    // SAFETY: the instruction only reads registers.
    unsafe {
        asm!(
            "mov {found:e}, ds",
            "mov {next:e}, es",
            "or {found:e}, {next:e}",
            "mov {next:e}, fs",
            "or {found:e}, {next:e}",
            "mov {next:e}, gs",
            "or {found:e}, {next:e}",
            found = out(reg) found,
            next = out(reg) _,
            options(nomem, nostack)
        );
    }
    if found == 0 {
        return;
    }
    // SAFETY: the kernel uses none of these segments but GS, whose base is the kernel's again after
    // the second SWAPGS; between the two nothing uses it: interrupts are off, and what does not
    // wait for that does not trust GS.
    unsafe {
        asm!(
            "mov ds, {null:e}",
            "mov es, {null:e}",
            "mov fs, {null:e}",
            "swapgs",
            "mov gs, {null:e}",
            "swapgs",
            null = in(reg) 0,
            options(nostack, preserves_flags)
        );
    }
}

/// The GS base is always loaded from the TCB: what the user's WRGSBASE did to it must not become
/// another's (K5).
fn load_bases(thread: &Tcb) {
    let (fs, gs) = (thread.registers.fs_base.get(), thread.registers.gs_base.get());
    // SAFETY: both are user values and canonical: UTCB addresses, or read from the processor. The
    // user's GS base is the inactive one now; between the two SWAPGS nothing uses GS: interrupts
    // are off, and NMIs do not trust it.
    unsafe {
        if features::has(Features::FSGSBASE) {
            asm!(
                "wrfsbase {fs}",
                "swapgs",
                "wrgsbase {gs}",
                "swapgs",
                fs = in(reg) fs,
                gs = in(reg) gs,
                options(nostack, preserves_flags)
            );
        } else {
            write_msr(msr::FS_BASE, fs);
            write_msr(msr::KERNEL_GS_BASE, gs);
        }
    }
}
