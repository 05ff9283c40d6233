//! The registers of a thread.

/// The integer registers of an x86-64 thread in user mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "registers are named after themselves")]
pub struct ThreadState {
    pub rax: u64,
    pub rbx: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rbp: u64,
    pub rsp: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rip: u64,
    /// The flags. When they are set, the machine keeps the flags that a program may not change.
    pub rflags: u64,
    /// The base of FS: the thread pointer of most systems.
    pub fs_base: u64,
    pub gs_base: u64,
}

impl ThreadState {
    /// The registers with which a program starts at this instruction with this stack pointer: all
    /// others are 0, and interrupts are enabled.
    pub fn at_start(instruction: u64, stack: u64) -> ThreadState {
        const INTERRUPTS: u64 = 1 << 9;
        // Bit 1 of the flags is always 1.
        const ALWAYS: u64 = 1 << 1;
        ThreadState { rip: instruction, rsp: stack, rflags: INTERRUPTS | ALWAYS, ..ThreadState::default() }
    }

    /// The address of the next instruction.
    pub fn instruction(&self) -> u64 {
        self.rip
    }

    /// The stack pointer.
    pub fn stack(&self) -> u64 {
        self.rsp
    }

    /// The result of a system call (RAX).
    pub fn result(&self) -> u64 {
        self.rax
    }
}

/// The breakpoints of a thread, in the formats of the debug registers. A thread raises
/// [`ExceptionCause::Step`](super::ExceptionCause::Step) at each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakpoints {
    /// The addresses, as in DR0 to DR3.
    pub addresses: [u64; 4],
    /// Which are enabled (bits 0 to 7), conditions and sizes (bits 16 to 31), as in DR7.
    pub control: u64,
}

impl Breakpoints {
    /// Whether one of them is enabled.
    pub fn are_enabled(&self) -> bool {
        self.control & 0xff != 0
    }
}
