//! The registers of a thread while the kernel has it.

use core::cell::Cell;

/// The registers with which a thread runs at user level, as saved at its last entry into the
/// kernel.
///
/// The order is that of use: the message registers of an IPC fill one cache line, what else SYSRET
/// needs the next.
#[repr(C)]
pub struct Registers {
    /// MR0..MR7 during Ipc and Unmap: R9, RAX, RBX, R10, R12, R13, R14, R15.
    pub message: [Cell<u64>; 8],
    /// Stack pointer.
    pub rsp: Cell<u64>,
    /// Instruction pointer.
    pub rip: Cell<u64>,
    /// Flags; only those that a user may have, and the fixed ones.
    pub rflags: Cell<u64>,
    /// General register.
    pub rdi: Cell<u64>,
    /// General register.
    pub rsi: Cell<u64>,
    /// General register.
    pub rbp: Cell<u64>,
    /// FS base, the thread's own.
    pub fs_base: Cell<u64>,
    /// GS base: where the thread's UTCB pointer lies (K5).
    pub gs_base: Cell<u64>,
    /// General register.
    pub rcx: Cell<u64>,
    /// General register.
    pub rdx: Cell<u64>,
    /// General register.
    pub r8: Cell<u64>,
    /// General register.
    pub r11: Cell<u64>,
}

impl Registers {
    pub(super) const fn new() -> Self {
        Self {
            message: [const { Cell::new(0) }; 8],
            rsp: Cell::new(0),
            rip: Cell::new(0),
            rflags: Cell::new(USER_FLAGS),
            rdi: Cell::new(0),
            rsi: Cell::new(0),
            rbp: Cell::new(0),
            fs_base: Cell::new(0),
            gs_base: Cell::new(0),
            rcx: Cell::new(0),
            rdx: Cell::new(0),
            r8: Cell::new(0),
            r11: Cell::new(0),
        }
    }

    #[inline(always)]
    pub(super) fn reset(&self) {
        let Self { message, rsp, rip, rflags, rdi, rsi, rbp, fs_base, gs_base, rcx, rdx, r8, r11 } = self;
        message.iter().for_each(|register| register.set(0));
        for register in [rsp, rip, rdi, rsi, rbp, fs_base, gs_base, rcx, rdx, r8, r11] {
            register.set(0);
        }
        rflags.set(USER_FLAGS);
    }

    /// RAX, which is also MR1.
    pub fn rax(&self) -> &Cell<u64> {
        &self.message[1]
    }

    /// RBX, which is also MR2.
    pub fn rbx(&self) -> &Cell<u64> {
        &self.message[2]
    }

    /// R9, which is also MR0.
    pub fn r9(&self) -> &Cell<u64> {
        &self.message[0]
    }

    /// R10, which is also MR3.
    pub fn r10(&self) -> &Cell<u64> {
        &self.message[3]
    }
}

/// RFLAGS of a thread that has changed none: interrupts on, I/O privilege level 0.
pub const USER_FLAGS: u64 = 1 << 9 | 1 << 1;
