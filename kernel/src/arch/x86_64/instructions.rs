//! The processor's instructions that Rust has no word for. Each function is one instruction (or one
//! inseparable pair).
use core::arch::asm;
use core::arch::x86_64::{__cpuid_count, CpuidResult};
use core::sync::atomic::{Ordering, compiler_fence};

/// Model-specific registers in use.
pub mod msr {
    /// The time-stamp counter.
    pub const TIME_STAMP: u32 = 0x10;
    /// Local APIC base and enable.
    pub const APIC_BASE: u32 = 0x1b;
    /// The register that says by how much the time-stamp counter was set forward (IA32_TSC_ADJUST).
    pub const TIME_STAMP_ADJUSTMENT: u32 = 0x3b;
    /// Speculation control: bit 0 IBRS.
    pub const SPECULATION_CONTROL: u32 = 0x48;
    /// Page-attribute table.
    pub const PAGE_ATTRIBUTES: u32 = 0x277;
    /// Which vulnerabilities the processor does not have.
    pub const ARCH_CAPABILITIES: u32 = 0x10a;
    /// SYSENTER code segment: 0 makes SYSENTER refuse.
    pub const SYSENTER_CS: u32 = 0x174;
    /// Extended features: SCE, LME, LMA, NXE.
    pub const EFER: u32 = 0xc000_0080;
    /// SYSCALL and SYSRET segment bases.
    pub const STAR: u32 = 0xc000_0081;
    /// SYSCALL entry from 64-bit code.
    pub const LSTAR: u32 = 0xc000_0082;
    /// SYSCALL entry from compatibility mode.
    pub const CSTAR: u32 = 0xc000_0083;
    /// RFLAGS bits that SYSCALL clears.
    pub const SFMASK: u32 = 0xc000_0084;
    /// FS base.
    pub const FS_BASE: u32 = 0xc000_0100;
    /// GS base in use.
    pub const GS_BASE: u32 = 0xc000_0101;
    /// GS base that SWAPGS brings in.
    pub const KERNEL_GS_BASE: u32 = 0xc000_0102;
}

/// Clears `count` words.
///
/// # Safety
/// The caller may write the words.
#[inline]
pub unsafe fn clear_words(words: *mut u64, count: usize) {
    // SAFETY: the caller's promise; the direction flag is clear in the kernel.
    unsafe {
        asm!("rep stosq", inout("rdi") words => _, inout("rcx") count => _, in("rax") 0u64,
            options(nostack, preserves_flags));
    }
}

/// Copies `count` words, each in one access, also while another thread or processor writes them.
///
/// # Safety
/// The caller may read the words at `from` and write those at `to`. They do not overlap.
#[inline]
pub unsafe fn copy_words(to: *mut u64, from: *const u64, count: usize) {
    // SAFETY: the caller's promise; the direction flag is clear in the kernel.
    unsafe {
        asm!("rep movsq", inout("rdi") to => _, inout("rsi") from => _, inout("rcx") count => _,
            options(nostack, preserves_flags));
    }
}

/// Calls `function` where that is hardly ever done. Only RAX changes for the caller: what it has in
/// registers can stay there, and its frequent paths need not save any.
#[inline(always)]
pub fn call_seldom(function: extern "C" fn(u64, u64), first: u64, second: u64) {
    // SAFETY: `call_saving_registers` (entry.S) calls the function as the compiler would and leaves
    // all registers but RAX as they are.
    unsafe {
        asm!("call call_saving_registers", inout("rax") function => _, in("rdi") first, in("rsi") second);
    }
}

/// Like [`call_seldom`]; returns what the function does.
#[inline(always)]
pub fn ask_seldom(function: extern "C" fn(u64, u64) -> u64, first: u64, second: u64) -> u64 {
    let result;
    // SAFETY: as for `call_seldom`.
    unsafe {
        asm!("call call_saving_registers", inout("rax") function => result, in("rdi") first, in("rsi") second);
    }
    result
}

/// All accesses after it come after all accesses before it; called next to an atomic exchange of
/// any kind, which has a LOCK prefix and does that itself. So this is no instruction, and only the
/// compiler is told.
#[inline(always)]
pub fn fence_after_exchange() {
    compiler_fence(Ordering::SeqCst);
}

/// Writes a byte to an I/O port.
///
/// # Safety
/// The device that the port belongs to must be the caller's and accept the write in its present
/// state.
#[inline]
pub unsafe fn out8(port: u16, value: u8) {
    // SAFETY: the caller's promise; the instruction touches no memory that Rust knows.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags)) }
}

/// Writes a 32-bit word to an I/O port.
///
/// # Safety
/// As for [`out8`].
#[inline]
pub unsafe fn out32(port: u16, value: u32) {
    // SAFETY: the caller's promise; the instruction touches no memory that Rust knows.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack, preserves_flags)) }
}

/// Reads a byte from an I/O port.
///
/// # Safety
/// As for [`out8`]: reading can change a device's state too.
#[inline]
pub unsafe fn in8(port: u16) -> u8 {
    let value;
    // SAFETY: the caller's promise; the instruction touches no memory that Rust knows.
    unsafe { asm!("in al, dx", out("al") value, in("dx") port, options(nomem, nostack, preserves_flags)) }
    value
}

/// Reads a model-specific register.
///
/// # Safety
/// The register must exist on this processor.
#[inline]
pub unsafe fn read_msr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller's promise that the register exists.
    unsafe {
        asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags))
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register.
///
/// # Safety
/// The register must exist, and the value must keep what the rest of the kernel relies on.
#[inline]
pub unsafe fn write_msr(register: u32, value: u64) {
    // SAFETY: the caller's promise. Not `nomem`: the write may change what memory accesses mean.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32,
             options(nostack, preserves_flags))
    }
}

macro_rules! control_register {
    ($read:ident, $write:ident, $name:literal) => {
        #[doc = concat!("Reads ", $name, ".")]
        #[inline]
        pub fn $read() -> u64 {
            let value;
            // SAFETY: reading a control register has no effect.
            unsafe { asm!(concat!("mov {}, ", $name), out(reg) value, options(nomem, nostack, preserves_flags)) }
            value
        }

        #[doc = concat!("Writes ", $name, ".")]
        ///
        /// # Safety
        /// The value must be valid on this processor and keep what the rest of the kernel relies
        /// on.
        #[inline]
        pub unsafe fn $write(value: u64) {
            // SAFETY: the caller's promise. Not `nomem`: the write may change what memory accesses
            // mean.
            unsafe { asm!(concat!("mov ", $name, ", {}"), in(reg) value, options(nostack, preserves_flags)) }
        }
    };
}

control_register!(read_cr0, write_cr0, "cr0");
control_register!(read_cr3, write_cr3, "cr3");
control_register!(read_cr4, write_cr4, "cr4");

/// The address of the last page fault (CR2).
#[inline]
pub fn read_cr2() -> u64 {
    let value;
    // SAFETY: reading a control register has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

/// CPUID with a leaf and a sub-leaf.
#[inline]
pub fn cpuid(leaf: u32, sub_leaf: u32) -> CpuidResult {
    __cpuid_count(leaf, sub_leaf)
}

/// The time-stamp counter. Not ordered against surrounding instructions.
#[inline]
pub fn read_time_stamp() -> u64 {
    // SAFETY: every 64-bit processor has RDTSC, and ring 0 may always use it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The RFLAGS register as it is now.
#[inline]
pub fn flags() -> u64 {
    let flags;
    // SAFETY: copies the flags register by way of the stack.
    unsafe { asm!("pushfq", "pop {}", out(reg) flags, options(preserves_flags)) }
    flags
}

/// The frame pointer of the calling function.
#[inline(always)]
pub fn frame_pointer() -> u64 {
    let value;
    // SAFETY: the instruction only copies a register.
    unsafe { asm!("mov {}, rbp", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

/// Turns interrupts off and stops this processor for good. A non-maskable interrupt is reported and
/// then it stops again.
pub fn stop() -> ! {
    loop {
        // SAFETY: with interrupts off nothing runs after HLT but non-maskable interrupts, whose
        // handler is independent.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) }
    }
}
