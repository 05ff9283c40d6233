//! The registers of a thread in Mach's structure and in the order of the kernel's ThreadState, and
//! the size of the extended state.

use core::arch::x86_64::{__cpuid, __cpuid_count};

use l4::extension::Registers;
use l4::x2::protocol::exception;
use mach::machine::ThreadState;

use crate::user_thread::EXTENDED_STATE_HEADER_END;

/// Lists the registers: the place of each in the kernel's order, and its field in Mach's structure.
macro_rules! registers {
    ($($index:expr => $field:ident),* $(,)?) => {
        /// Converts Mach's structure to registers in the kernel's order.
        pub(crate) fn to_kernel(state: &ThreadState) -> Registers {
            let mut registers = Registers([0; 20]);
            $(registers.set($index, state.$field);)*
            registers
        }

        /// Converts registers in the kernel's order to Mach's structure.
        pub(crate) fn from_kernel(registers: &Registers) -> ThreadState {
            ThreadState { $($field: registers.get($index),)* }
        }
    };
}

registers! {
    exception::RIP => rip,
    exception::RBX => rbx,
    exception::R10 => r10,
    exception::R12 => r12,
    exception::R13 => r13,
    exception::R14 => r14,
    exception::R15 => r15,
    exception::RAX => rax,
    exception::RCX => rcx,
    exception::RDX => rdx,
    exception::RSI => rsi,
    exception::RDI => rdi,
    exception::RBP => rbp,
    exception::R8 => r8,
    exception::R9 => r9,
    exception::R11 => r11,
    exception::RSP => rsp,
    exception::RFLAGS => rflags,
    Registers::FS_BASE => fs_base,
    Registers::GS_BASE => gs_base,
}

/// CPUID leaf 1, ECX: the operating system has enabled XSAVE.
const OSXSAVE: u32 = 1 << 27;

/// The maximum size of a thread's extended state on this processor, in bytes.
pub(crate) fn extended_state_size() -> usize {
    match __cpuid(1).ecx & OSXSAVE != 0 {
        // CPUID leaf 0xd says how many bytes the enabled components need.
        true => (__cpuid_count(0xd, 0).ebx as usize).max(EXTENDED_STATE_HEADER_END),
        false => EXTENDED_STATE_HEADER_END,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_arrives_at_its_place() {
        let words = Registers(core::array::from_fn(|index| 0x100 + index as u64));
        let state = from_kernel(&words);
        assert_eq!(to_kernel(&state), words);
        assert_eq!((state.rip, state.rflags, state.gs_base), (0x100, 0x111, 0x113));
        assert_eq!(state.rsp, words.get(exception::RSP));
    }
}
