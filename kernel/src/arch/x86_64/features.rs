//! What the processor can do, and the protections that K14 wants turned on wherever they exist.
use bitflags::bitflags;
use core::sync::atomic::{AtomicU32, Ordering};

use super::gdt;
use super::instructions::{cpuid, msr, read_cr0, read_cr4, read_msr, write_cr0, write_cr4, write_msr};
use crate::arch::page_entry::MemoryType;
use crate::log;

bitflags! {
    /// Processor features that the kernel uses, or judges the machine by.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Features: u32 {
        /// Pages can be marked as not executable.
        const NO_EXECUTE = 1 << 0;
        /// Pages of 1 GiB.
        const GIANT_PAGES = 1 << 1;
        /// Global pages.
        const GLOBAL_PAGES = 1 << 2;
        /// The kernel cannot execute user pages.
        const SMEP = 1 << 3;
        /// The kernel cannot touch user pages.
        const SMAP = 1 << 4;
        /// User programs cannot read descriptor-table addresses.
        const UMIP = 1 << 5;
        /// User programs can use RDFSBASE, WRFSBASE, RDGSBASE and WRGSBASE.
        const FSGSBASE = 1 << 6;
        /// XSAVE.
        const XSAVE = 1 << 7;
        /// AVX.
        const AVX = 1 << 8;
        /// Local APIC.
        const APIC = 1 << 9;
        /// The time-stamp counter runs at one rate, always.
        const INVARIANT_TSC = 1 << 10;
        /// Machine-check exception.
        const MACHINE_CHECK = 1 << 11;
        /// Runs under a hypervisor or emulator.
        const HYPERVISOR = 1 << 12;
        /// Indirect branches of user programs do not steer the kernel's while one bit is set for
        /// good (Intel).
        const ENHANCED_IBRS = 1 << 13;
        /// Automatic IBRS, AMD's form of the same protection.
        const AUTOMATIC_IBRS = 1 << 14;
        /// Not vulnerable to Meltdown, by CPUID or because of its maker.
        const NO_MELTDOWN = 1 << 15;
        /// The time-stamp counter can be set by a difference.
        const TSC_ADJUST = 1 << 16;
        /// The time-stamp counter has a constant rate: the processor says so, or it is the emulator
        /// QEMU, whose counter does not depend on the host's processor.
        const STEADY_TSC = 1 << 17;
    }
}

/// The [`Features`] that were found. Entry code looks for SMAP here.
pub(super) static PRESENT: AtomicU32 = AtomicU32::new(0);

/// Whether every processor has all of these features.
#[inline]
pub fn has(features: Features) -> bool {
    present().contains(features)
}

/// The features that every processor has.
#[inline]
pub fn present() -> Features {
    Features::from_bits_retain(PRESENT.load(Ordering::Relaxed))
}

/// Asks the processor. Called by the boot processor before anything depends on a feature.
pub fn detect() {
    let highest = cpuid(0, 0).eax;
    let basic = cpuid(1, 0);
    let extended_highest = cpuid(0x8000_0000, 0).eax;
    let extended = cpuid(0x8000_0001, 0);
    let structured = (highest >= 7).then(|| cpuid(7, 0));
    let power = (extended_highest >= 0x8000_0007).then(|| cpuid(0x8000_0007, 0));
    let mut found = Features::empty();
    let mut note = |condition: bool, feature| found.set(feature, condition);
    let bit = |word: u32, number: u32| word >> number & 1 == 1;
    note(bit(extended.edx, 20), Features::NO_EXECUTE);
    note(bit(extended.edx, 26), Features::GIANT_PAGES);
    note(bit(basic.edx, 13), Features::GLOBAL_PAGES);
    note(bit(basic.edx, 7), Features::MACHINE_CHECK);
    note(bit(basic.edx, 9), Features::APIC);
    note(bit(basic.ecx, 26), Features::XSAVE);
    note(bit(basic.ecx, 26) && bit(basic.ecx, 28), Features::AVX);
    note(bit(basic.ecx, 31), Features::HYPERVISOR);
    if let Some(structured) = structured {
        note(bit(structured.ebx, 0), Features::FSGSBASE);
        note(bit(structured.ebx, 1), Features::TSC_ADJUST);
        note(bit(structured.ebx, 7), Features::SMEP);
        note(bit(structured.ebx, 20), Features::SMAP);
        note(bit(structured.ecx, 2), Features::UMIP);
    }
    let invariant = power.is_some_and(|power| bit(power.edx, 8));
    note(invariant, Features::INVARIANT_TSC);
    note(invariant || (bit(basic.ecx, 31) && is_emulated()), Features::STEADY_TSC);
    let capabilities = match structured {
        // SAFETY: CPUID says that the register exists.
        Some(structured) if bit(structured.edx, 29) => unsafe { read_msr(msr::ARCH_CAPABILITIES) },
        _ => 0,
    };
    let branch_control = structured.is_some_and(|structured| bit(structured.edx, 26));
    note(branch_control && capabilities & IBRS_ALL != 0, Features::ENHANCED_IBRS);
    note(extended_highest >= 0x8000_0021 && bit(cpuid(0x8000_0021, 0).eax, 8), Features::AUTOMATIC_IBRS);
    note(capabilities & RDCL_NO != 0 || is_amd(), Features::NO_MELTDOWN);
    PRESENT.store(found.bits(), Ordering::Relaxed);
}

/// Whether the hypervisor is the emulator QEMU without hardware support, by its name ("TCG").
fn is_emulated() -> bool {
    let leaf = cpuid(0x4000_0000, 0);
    let mut name = [0; 12];
    for (bytes, word) in name.as_chunks_mut::<4>().0.iter_mut().zip([leaf.ebx, leaf.ecx, leaf.edx]) {
        *bytes = word.to_le_bytes();
    }
    name == *b"TCGTCGTCGTCG"
}

/// IA32_ARCH_CAPABILITIES: not vulnerable to Meltdown.
const RDCL_NO: u64 = 1 << 0;
/// IA32_ARCH_CAPABILITIES: enhanced IBRS.
const IBRS_ALL: u64 = 1 << 1;

/// The makers whose processors do not speculate past the privilege check.
fn is_amd() -> bool {
    let maker = cpuid(0, 0);
    let maker = [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes);
    matches!(maker.as_flattened(), b"AuthenticAMD" | b"HygonGenuine")
}

/// The end of the physical addresses that the processor has.
pub fn physical_reach() -> u64 {
    const WITHOUT_LEAF: u32 = 36;
    let has_leaf = cpuid(0x8000_0000, 0).eax >= 0x8000_0008;
    let bits = if has_leaf { cpuid(0x8000_0008, 0).eax & 0xff } else { WITHOUT_LEAF };
    1 << bits.min(52)
}

const CR0_MONITOR_COPROCESSOR: u64 = 1 << 1;
const CR0_EMULATION: u64 = 1 << 2;
const CR0_TASK_SWITCHED: u64 = 1 << 3;
const CR0_NUMERIC_ERROR: u64 = 1 << 5;
const CR0_WRITE_PROTECT: u64 = 1 << 16;

/// Turns the protections on, on the executing processor, and makes every way into the kernel refuse
/// until the entry code sets its own (K14: SYSENTER refuses for good).
pub fn enable() {
    let mut cr4 = read_cr4() | 1 << 9 | 1 << 10; // OSFXSR, OSXMMEXCPT
    for (feature, number) in [
        (Features::MACHINE_CHECK, 6),
        (Features::GLOBAL_PAGES, 7),
        (Features::UMIP, 11),
        (Features::FSGSBASE, 16),
        (Features::XSAVE, 18),
        (Features::SMEP, 20),
        (Features::SMAP, 21),
    ] {
        if has(feature) {
            cr4 |= 1 << number;
        }
    }
    let cr0 = (read_cr0() & !(CR0_EMULATION | CR0_TASK_SWITCHED))
        | CR0_MONITOR_COPROCESSOR
        | CR0_NUMERIC_ERROR
        | CR0_WRITE_PROTECT;
    const SYSTEM_CALL_ENABLE: u64 = 1;
    /// The flags that SYSCALL clears: all but bit 1, which is fixed.
    const CLEARED_FLAGS: u64 = 0x3f_7fd5;
    let automatic_ibrs = if has(Features::AUTOMATIC_IBRS) { 1 << 21 } else { 0 };
    // SAFETY: only bits whose features were found are set; the kernel keeps to what they forbid (it
    // never touches user pages through user addresses and has no writable code). The registers
    // exist in every 64-bit processor.
    unsafe {
        write_cr0(cr0);
        write_cr4(cr4);
        write_msr(msr::STAR, gdt::STAR);
        write_msr(msr::SFMASK, CLEARED_FLAGS);
        write_msr(msr::SYSENTER_CS, 0);
        write_msr(msr::PAGE_ATTRIBUTES, MemoryType::TABLE);
        write_msr(msr::EFER, read_msr(msr::EFER) | SYSTEM_CALL_ENABLE | automatic_ibrs);
        if has(Features::ENHANCED_IBRS) {
            write_msr(msr::SPECULATION_CONTROL, 1);
        }
    }
}

/// Prints the processor and which of its features are used.
pub fn log_features() {
    let mut name = [0u8; 48];
    if cpuid(0x8000_0000, 0).eax >= 0x8000_0004 {
        for (part, chunk) in name.chunks_exact_mut(16).enumerate() {
            let words = cpuid(0x8000_0002 + part as u32, 0);
            for (word, bytes) in
                [words.eax, words.ebx, words.ecx, words.edx].iter().zip(chunk.chunks_exact_mut(4))
            {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
    }
    let name = name.split(|&byte| byte == 0).next().unwrap_or(&[]);
    log::info!("processor: {}", core::str::from_utf8(name).unwrap_or("unnamed").trim());
    log::info!("processor features: {}", Names(present()));
    let wanted = Features::NO_EXECUTE | Features::SMEP | Features::SMAP | Features::UMIP;
    let missing = wanted.difference(present());
    if !missing.is_empty() {
        log::warning!("protections that this processor lacks: {}", Names(missing));
    }
    if !has(Features::NO_MELTDOWN) {
        log::warning!(
            "this processor does not say that it is free of Meltdown: programs may be able to read kernel memory; no \
             isolation is claimed"
        );
    }
}

struct Names(Features);

impl core::fmt::Display for Names {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (index, (name, _)) in self.0.iter_names().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            write!(formatter, "{gap}{name}")?;
        }
        Ok(())
    }
}
