//! A minimal emulation library for bounce mode. It forwards each system call to the server by an
//! X.2 IPC, with a stack of its own, and returns as SYSCALL would. It is copied into each program's
//! space.

use core::arch::naked_asm;

/// Upper bound of the size of the library's code in bytes.
const CODE_SIZE: usize = 512;
/// Distance of the library's page of data and stack from the start of its code.
pub(crate) const DATA: u64 = 4096;
/// Offset in the data page: the server's id.
pub(crate) const SERVER: usize = 0;
/// Offset in the data page: the address of the Ipc stub.
pub(crate) const IPC: usize = 8;
/// Offset in the data page: the program's stack pointer while the library uses its own stack.
const SAVED_STACK_POINTER: usize = 16;
/// Label with which the library's requests arrive.
pub(crate) const LABEL: u64 = 0x5c;

/// The bytes of the library's code.
pub(crate) fn code() -> &'static [u8] {
    // SAFETY: the program's code is readable, and more code of this program follows the entry, so
    // that `CODE_SIZE` bytes can be read.
    unsafe { core::slice::from_raw_parts(entry as *const u8, CODE_SIZE) }
}

/// The code begins at a page boundary, and the data page follows it. At the entry the registers are
/// as SYSCALL leaves them: RCX is the return address, R11 the flags. The number of the call is
/// passed in MR1 (RAX), the six arguments in MR2..MR7; the result is returned in MR1.
#[unsafe(naked)]
extern "C" fn entry() -> ! {
    naked_asm!(
        "3:",
        "mov [rip + 3b + {saved}], rsp",
        "lea rsp, [rip + 3b + {stack}]",
        "push rcx",
        "push r11",
        "push rbx",
        "push rbp",
        "push rdi",
        "push rsi",
        "push rdx",
        "push r10",
        "push r8",
        "push r9",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        // MR2 = RDI, MR3 = RSI, MR4 = RDX, MR5 = R10, MR6 = R8, MR7 = R9.
        "mov rbx, rdi",
        "mov r12, rdx",
        "mov r13, r10",
        "mov r10, rsi",
        "mov r14, r8",
        "mov r15, r9",
        "mov r9, {tag}",
        "mov rsi, [rip + 3b + {server}]",
        "mov rdx, rsi",
        "xor r8d, r8d",
        "mov rdi, gs:[0]",
        "call [rip + 3b + {ipc}]",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop r9",
        "pop r8",
        "pop r10",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rbp",
        "pop rbx",
        "pop r11",
        "pop rcx",
        "mov rsp, [rip + 3b + {saved}]",
        "jmp rcx",
        saved = const DATA as usize + SAVED_STACK_POINTER,
        stack = const DATA as usize + 4096,
        server = const DATA as usize + SERVER,
        ipc = const DATA as usize + IPC,
        tag = const LABEL << 16 | 7,
    )
}
