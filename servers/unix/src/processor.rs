//! The description of the processor that Linux programs get.

use alloc::string::String;
use alloc::vec::Vec;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use linux::Processor;

/// CPUID leaf 7, EBX: the processor has the FSGSBASE instructions, by which programs read and write
/// FS and GS base. The kernel enables them.
const FSGSBASE: u32 = 1;
/// The bit of AT_HWCAP2 that tells programs that they may use the FSGSBASE instructions.
const MAY_WRITE_BASES: u64 = 2;

/// Describes the processor that this program runs on. `extended_size` is the size of a thread's
/// extended state in bytes.
pub(crate) fn describe(extended_size: usize) -> Processor {
    let basic = __cpuid(1);
    let extended = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
    Processor {
        features: basic.edx.into(),
        more_features: if extended & FSGSBASE != 0 { MAY_WRITE_BASES } else { 0 },
        extended_size,
        shared_object: Some(crate::shared_object::ADDRESS),
    }
}

/// The processor's name; empty if it has none.
pub(crate) fn name() -> String {
    const FIRST: u32 = 0x8000_0002;
    const LAST: u32 = FIRST + 2;
    if __cpuid(0x8000_0000).eax < LAST {
        return String::new();
    }
    let leaves = (FIRST..=LAST).map(__cpuid).flat_map(|leaf| [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx]);
    let bytes: Vec<u8> = leaves.flat_map(u32::to_le_bytes).take_while(|&byte| byte != 0).collect();
    String::from(String::from_utf8_lossy(&bytes).trim())
}

/// CPUID leaf 1, ECX: the processor has the RDRAND instruction.
const RDRAND: u32 = 1 << 30;

/// Values that no program can predict: words of the processor's random source where it has one, and
/// its time-stamp counter.
pub(crate) fn entropy() -> [u64; 3] {
    let has_source = __cpuid(1).ecx & RDRAND != 0;
    let random = || if has_source { random_word() } else { 0 };
    [random(), random(), time_stamp()]
}

/// Reads the time-stamp counter.
#[allow(unsafe_code, reason = "one instruction")]
pub(crate) fn time_stamp() -> u64 {
    // SAFETY: the instruction only reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// A word of the processor's random source, or 0 if the source is exhausted. The processor must
/// have RDRAND.
#[allow(unsafe_code, reason = "one instruction")]
fn random_word() -> u64 {
    let word: u64;
    // SAFETY: the processor has the instruction, which writes only a register and the flags. If it
    // does not succeed the register is 0.
    unsafe { core::arch::asm!("rdrand {}", out(reg) word, options(nomem, nostack)) };
    word
}
