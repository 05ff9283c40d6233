//! The code that the programs of the tests execute: a page that the server writes into them. It is
//! position-independent, uses no stack, and makes foreign system calls to the server.
#![allow(unsafe_code)]

use core::arch::global_asm;

/// The system call by which the servant asks for its next command: RDI is the result of the last.
pub const NEXT: u64 = 0;

/// A system call of the loops: allocates a page. Its address is the result.
pub const ALLOCATE: u64 = 100;
/// A system call of the loops: deallocates the page at RDI.
pub const DEALLOCATE: u64 = 101;
/// A system call of the loops that does nothing.
pub const NOTHING: u64 = 102;

/// The commands of the servant, which are passed in RAX.
pub mod command {
    /// Loads the word at address RDI, which is the result.
    pub const LOAD: u64 = 1;
    /// Stores the word RSI at address RDI.
    pub const STORE: u64 = 2;
    /// Increments the word at address RDI for ever.
    pub const COUNT: u64 = 3;
    /// Executes an undefined instruction. If it is skipped, the result is RDI.
    pub const UNDEFINED: u64 = 4;
    /// Increments RBX for ever, without accesses to memory.
    pub const SPIN: u64 = 5;
    /// Writes into RCX pages from address RDI on: the first word of each becomes its number plus
    /// RSI.
    pub const FILL: u64 = 6;
    /// Checks RCX pages from address RDI on. The result is the number of pages without the word
    /// that FILL has written.
    pub const CHECK: u64 = 7;
    /// Calls the stub at R11 with all other registers unchanged. The result is R9.
    pub const CALL: u64 = 8;
    /// Adds 1 to XMM0. The result is its low word.
    pub const VECTOR: u64 = 9;
    /// Repeats RBX times: the system call [`ALLOCATE`](super::ALLOCATE), a write to the address
    /// that it returns, and the system call [`DEALLOCATE`](super::DEALLOCATE) with this address in
    /// RDI.
    pub const ALLOCATE_LOOP: u64 = 10;
    /// Repeats RBX times: a system call that does nothing ([`NOTHING`](super::NOTHING)).
    pub const CALL_LOOP: u64 = 11;
}

global_asm!(
    ".pushsection .rodata",
    ".global servant_code, servant_code_end",
    "servant_code:",
    "    xor edi, edi",
    "1:  xor eax, eax",
    "    syscall",
    "    cmp eax, 1",
    "    je 11f",
    "    cmp eax, 2",
    "    je 12f",
    "    cmp eax, 3",
    "    je 13f",
    "    cmp eax, 4",
    "    je 14f",
    "    cmp eax, 5",
    "    je 15f",
    "    cmp eax, 6",
    "    je 16f",
    "    cmp eax, 7",
    "    je 17f",
    "    cmp eax, 8",
    "    je 18f",
    "    cmp eax, 9",
    "    je 19f",
    "    cmp eax, 10",
    "    je 20f",
    "    cmp eax, 11",
    "    je 21f",
    "    hlt",
    "11: mov rdi, [rdi]",
    "    jmp 1b",
    "12: mov [rdi], rsi",
    "    jmp 1b",
    "13: inc qword ptr [rdi]",
    "    jmp 13b",
    "14: ud2",
    "    jmp 1b",
    "15: inc rbx",
    "    jmp 15b",
    "16: mov [rdi], rsi",
    "    inc rsi",
    "    add rdi, 4096",
    "    dec rcx",
    "    jnz 16b",
    "    jmp 1b",
    "17: xor ebx, ebx",
    "2:  cmp [rdi], rsi",
    "    je 3f",
    "    inc rbx",
    "3:  inc rsi",
    "    add rdi, 4096",
    "    dec rcx",
    "    jnz 2b",
    "    mov rdi, rbx",
    "    jmp 1b",
    "18: call r11",
    "    mov rdi, r9",
    "    jmp 1b",
    "19: movq rdi, xmm0",
    "    inc rdi",
    "    movq xmm0, rdi",
    "    jmp 1b",
    "20: mov eax, 100",
    "    syscall",
    "    mov [rax], rbx",
    "    mov rdi, rax",
    "    mov eax, 101",
    "    syscall",
    "    dec rbx",
    "    jnz 20b",
    "    jmp 1b",
    "21: mov eax, 102",
    "    syscall",
    "    dec rbx",
    "    jnz 21b",
    "    jmp 1b",
    "servant_code_end:",
    ".popsection",
);

/// The code of the servant. Its entry is its first byte.
pub fn servant() -> &'static [u8] {
    unsafe extern "C" {
        static servant_code: u8;
        static servant_code_end: u8;
    }
    // SAFETY: the labels enclose bytes of read-only data.
    unsafe {
        let (start, end) = (&raw const servant_code, &raw const servant_code_end);
        core::slice::from_raw_parts(start, end.offset_from_unsigned(start))
    }
}
