//! Makes calls with arbitrary registers.

/// The general registers except the stack pointer, in the order of [`invoke`].
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Registers {
    pub(crate) rax: u64,
    pub(crate) rbx: u64,
    pub(crate) rcx: u64,
    pub(crate) rdx: u64,
    pub(crate) rsi: u64,
    pub(crate) rdi: u64,
    pub(crate) rbp: u64,
    pub(crate) r8: u64,
    pub(crate) r9: u64,
    pub(crate) r10: u64,
    pub(crate) r11: u64,
    pub(crate) r12: u64,
    pub(crate) r13: u64,
    pub(crate) r14: u64,
    pub(crate) r15: u64,
}

/// Calls `target` with `registers`, and stores the registers there after the call.
///
/// # Safety
/// `target` must be a stub of the kernel, or code that ends with a return. The caller is
/// responsible for the effects of a call with these registers.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn invoke(registers: *mut Registers, target: u64) {
    core::arch::naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "push rdi",
        "push rsi",
        "mov rax, [rdi]",
        "mov rbx, [rdi + 8]",
        "mov rcx, [rdi + 16]",
        "mov rdx, [rdi + 24]",
        "mov rsi, [rdi + 32]",
        "mov rbp, [rdi + 48]",
        "mov r8, [rdi + 56]",
        "mov r9, [rdi + 64]",
        "mov r10, [rdi + 72]",
        "mov r11, [rdi + 80]",
        "mov r12, [rdi + 88]",
        "mov r13, [rdi + 96]",
        "mov r14, [rdi + 104]",
        "mov r15, [rdi + 112]",
        "mov rdi, [rdi + 40]",
        "call [rsp]",
        "xchg rdi, [rsp + 8]",
        "cld",
        "mov [rdi], rax",
        "mov [rdi + 8], rbx",
        "mov [rdi + 16], rcx",
        "mov [rdi + 24], rdx",
        "mov [rdi + 32], rsi",
        "mov [rdi + 48], rbp",
        "mov [rdi + 56], r8",
        "mov [rdi + 64], r9",
        "mov [rdi + 72], r10",
        "mov [rdi + 80], r11",
        "mov [rdi + 88], r12",
        "mov [rdi + 96], r13",
        "mov [rdi + 104], r14",
        "mov [rdi + 112], r15",
        "mov rax, [rsp + 8]",
        "mov [rdi + 40], rax",
        "add rsp, 16",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret"
    )
}
