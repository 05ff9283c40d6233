//! Where this processor's local APIC is, and in which mode.
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

use super::instructions::{msr, read_msr, write_msr};
use super::paging;
use crate::arch::local_apic::{Access, LocalApic};
use crate::memory::{PAGE_SIZE, PhysAddr, PhysRange};

const BASE_ENABLED: u64 = 1 << 11;
const BASE_X2APIC: u64 = 1 << 10;

/// Where the registers are mapped; 0 = they are model-specific registers.
static REGISTERS: AtomicU64 = AtomicU64::new(0);

/// The local APIC of the executing processor.
pub(super) const LOCAL_APIC: LocalApic<Registers> = LocalApic(Registers);

/// Access to the registers in memory (xAPIC) or by model-specific registers (x2APIC).
pub(super) struct Registers;

impl Registers {
    #[inline]
    fn at(offset: u32) -> *mut u32 {
        (REGISTERS.load(Ordering::Relaxed) + u64::from(offset)) as *mut u32
    }
}

impl Access for Registers {
    #[inline]
    fn is_x2apic(&self) -> bool {
        REGISTERS.load(Ordering::Relaxed) == 0
    }

    #[inline]
    fn read_memory(&self, offset: u32) -> u32 {
        // SAFETY: the registers stay mapped there while the kernel runs.
        unsafe { Self::at(offset).read_volatile() }
    }

    #[inline]
    fn write_memory(&self, offset: u32, value: u32) {
        // The registers' memory is uncached, so this write comes after all earlier ones.
        // SAFETY: the registers are mapped there for ever; the values are those that the local
        // APIC's module means.
        unsafe { Self::at(offset).write_volatile(value) }
    }

    #[inline]
    fn read_msr(&self, number: u32) -> u64 {
        // SAFETY: x2APIC mode is on, so the register exists.
        unsafe { read_msr(number) }
    }

    #[inline]
    fn write_msr(&self, number: u32, value: u64) {
        // SAFETY: x2APIC mode is on, so the register exists; the values are those that the local
        // APIC's module means.
        unsafe { write_msr(number, value) }
    }

    #[inline]
    fn complete_writes(&self) {
        // WRMSR to these registers does not wait for earlier stores, and MFENCE alone does not hold
        // it up (Intel SDM 3A, "x2APIC Register Access"). SAFETY: every 64-bit processor has both.
        unsafe { asm!("mfence", "lfence", options(nostack, preserves_flags)) }
    }
}

/// Finds and maps the registers; returns the memory they take, which is the kernel's. Once, by the
/// boot processor.
pub(super) fn map() -> Option<PhysRange> {
    // SAFETY: every processor with a local APIC has the register.
    let base = unsafe { read_msr(msr::APIC_BASE) };
    if base & BASE_X2APIC != 0 {
        return None;
    }
    // SAFETY: as above; the address stays as the firmware set it.
    unsafe { write_msr(msr::APIC_BASE, base | BASE_ENABLED) }
    let address = PhysAddr::new(base & paging::ADDRESS);
    REGISTERS.store(paging::map_device(address, PAGE_SIZE) as u64, Ordering::Relaxed);
    Some(PhysRange::new(address, address.offset(PAGE_SIZE)))
}

/// Brings the local APIC of another processor into the mode of the first one's.
pub(super) fn follow_first() {
    let mode = if LOCAL_APIC.0.is_x2apic() { BASE_X2APIC } else { 0 };
    // SAFETY: every processor with a local APIC has the register; the first processor found the
    // mode to exist, and the address of the registers stays as it is.
    unsafe { write_msr(msr::APIC_BASE, read_msr(msr::APIC_BASE) | BASE_ENABLED | mode) }
}
