//! Layouts of registers as tracers and core files have them (sys/user.h, linux/ptrace.h).

use super::{Fields, Writer};
use alloc::vec::Vec;
use mach::machine::ThreadState;
use unix::{Error, Result};

/// Bytes of struct user_regs_struct.
pub const REGISTERS_SIZE: usize = 216;
/// Bytes of the x87 and SSE state (struct user_fpregs_struct).
pub const LEGACY_SIZE: usize = 512;
/// Bytes of struct user.
pub const USER_SIZE: u64 = 912;
/// Offset in struct user of the debug registers.
pub const DEBUG_REGISTERS: u64 = 848;
/// The index of the number of the system call among the registers.
const CALL: usize = 15;
/// The trap flag: an exception comes after the next instruction.
pub const TRAP_FLAG: u64 = 1 << 8;
/// The flags that a tracer may change: arithmetic, trap, direction, nested task, resume, alignment
/// check.
const FLAGS: u64 = 0x5_4dd5;
const CODE_SEGMENT: u64 = 0x33;
const STACK_SEGMENT: u64 = 0x2b;
/// Where the enabled components of the extended state are recorded in its first 512 bytes.
const ENABLED: usize = 464;

/// Writes registers as a struct user_regs_struct. `call` is the number of the system call in which
/// the thread is.
pub fn to_registers(state: &ThreadState, call: Option<u64>) -> [u8; REGISTERS_SIZE] {
    let words = [
        state.r15,
        state.r14,
        state.r13,
        state.r12,
        state.rbp,
        state.rbx,
        state.r11,
        state.r10,
        state.r9,
        state.r8,
        state.rax,
        state.rcx,
        state.rdx,
        state.rsi,
        state.rdi,
        call.unwrap_or(u64::MAX),
        state.rip,
        CODE_SEGMENT,
        state.rflags,
        state.rsp,
        STACK_SEGMENT,
        state.fs_base,
        state.gs_base,
    ];
    let writer = Writer::<REGISTERS_SIZE>::new();
    words.into_iter().enumerate().fold(writer, |writer, (index, word)| writer.u64(8 * index, word)).done()
}

/// Reads a struct user_regs_struct, for a thread with the flags of `current`: the registers, and
/// the number of the system call. `EIO` for addresses that no program can have.
pub fn registers(bytes: &[u8; REGISTERS_SIZE], current: &ThreadState) -> Result<(ThreadState, Option<u64>)> {
    let word = |index: usize| bytes.u64_at(8 * index);
    let base =
        |index: usize| word(index).and_then(|base| if base < 1 << 47 { Ok(base) } else { Err(Error::EIO) });
    let state = ThreadState {
        r15: word(0)?,
        r14: word(1)?,
        r13: word(2)?,
        r12: word(3)?,
        rbp: word(4)?,
        rbx: word(5)?,
        r11: word(6)?,
        r10: word(7)?,
        r9: word(8)?,
        r8: word(9)?,
        rax: word(10)?,
        rcx: word(11)?,
        rdx: word(12)?,
        rsi: word(13)?,
        rdi: word(14)?,
        rip: base(16)?,
        rflags: word(18)? & FLAGS | current.rflags & !FLAGS,
        rsp: word(19)?,
        fs_base: base(21)?,
        gs_base: base(22)?,
    };
    let call = word(CALL)?;
    Ok((state, (call as i64 >= 0).then_some(call)))
}

/// The extended state as tracers see it, at least `size` bytes: in its description of which
/// components there are.
pub fn to_extended(mut state: Vec<u8>, size: usize) -> Vec<u8> {
    const LEGACY: u64 = 3;
    const VECTORS: u64 = 4;
    if state.len() < size {
        state.resize(size, 0);
    }
    let enabled = if state.len() > 576 { LEGACY | VECTORS } else { LEGACY };
    if let Some(area) = state.get_mut(ENABLED..LEGACY_SIZE) {
        area.fill(0);
        area[..8].copy_from_slice(&enabled.to_le_bytes());
    }
    state
}

/// The extended state that a tracer has written, in the form that the processor takes.
pub fn extended(mut state: Vec<u8>) -> Vec<u8> {
    if let Some(area) = state.get_mut(ENABLED..LEGACY_SIZE) {
        area.fill(0);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_survive_both_ways_and_bad_addresses_are_refused() {
        let state = ThreadState {
            r15: 1,
            rax: 2,
            rdi: 3,
            rip: 4,
            rsp: 5,
            fs_base: 6,
            gs_base: 7,
            ..Default::default()
        };
        let bytes = to_registers(&state, Some(59));
        assert_eq!(registers(&bytes, &state), Ok((state, Some(59))));
        assert_eq!(bytes.u64_at(8 * 15), Ok(59));
        assert_eq!(registers(&to_registers(&state, None), &state), Ok((state, None)));
        let wrong = ThreadState { rip: 1 << 47, ..state };
        assert_eq!(registers(&to_registers(&wrong, None), &state), Err(Error::EIO));
        // A tracer cannot enable I/O ports or disable interrupts.
        let flags = ThreadState { rflags: u64::MAX, ..state };
        let (read, _) = registers(&to_registers(&flags, None), &state).unwrap();
        assert_eq!(read.rflags, 0x5_4dd5);
    }

    #[test]
    fn the_extended_state_says_which_components_it_has() {
        let shown = to_extended(vec![1; 600], 832);
        assert_eq!((shown.len(), shown.u64_at(464)), (832, Ok(7)));
        assert_eq!(extended(shown).u64_at(464), Ok(0));
    }
}
