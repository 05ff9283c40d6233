//! Registers of a thread: Mach's structure, and the order in which the kernel moves them; the size
//! of the others.

use core::arch::x86_64::{__cpuid, __cpuid_count};

use l4::extension::Registers;
use l4::x2::protocol::exception;
use mach::machine::ThreadState;

use crate::user_thread::EXTENDED_STATE_HEADER_END;

/// Each register: its place in the kernel's order, and in Mach's structure.
macro_rules! registers {
    ($($index:expr => $field:ident),* $(,)?) => {
        /// The registers in the kernel's order.
        pub(crate) fn to_kernel(state: &ThreadState) -> Registers {
            let mut registers = Registers([0; 20]);
            $(registers.set($index, state.$field);)*
            registers
        }

        /// Mach's structure.
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

/// Bit of leaf 1, ECX: XSAVE is switched on.
const OSXSAVE: u32 = 1 << 27;

/// Bytes of a thread's extended state on this processor, at most.
pub(crate) fn extended_state_size() -> usize {
    match __cpuid(1).ecx & OSXSAVE != 0 {
        // The components that are switched on need so many bytes.
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
