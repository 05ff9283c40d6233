//! What the processor can watch for the kernel debugger.

/// How many breakpoints the processor can have at a time.
pub const BREAKPOINTS: usize = 4;

/// Executes one instruction, then raises a debug exception: RFLAGS.TF.
pub const STEP_FLAG: u64 = 1 << 8;

/// Does not stop at an execution breakpoint for one instruction: RFLAGS.RF.
pub const RESUME_FLAG: u64 = 1 << 16;

/// The access at a breakpoint's address that stops the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopAt {
    /// Before the instruction at the address.
    Execution,
    /// After an instruction has written to the bytes at the address: 1, 2, 4 or 8, which the
    /// address is a multiple of.
    Write {
        /// Their number.
        bytes: u8,
    },
}

/// A place to stop at, in every space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Breakpoint {
    /// The linear address, user's or kernel's.
    pub address: u64,
    /// The access that stops the program.
    pub at: StopAt,
}

/// Why a debug exception came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DebugStatus {
    /// A bit for each breakpoint that was reached.
    pub breakpoints: u8,
    /// The exception came after a single step: one instruction has been executed.
    pub step: bool,
}

impl DebugStatus {
    /// The same as in DR6.
    pub fn bits(self) -> u64 {
        const SINGLE_STEP: u64 = 1 << 14;
        u64::from(self.breakpoints) | if self.step { SINGLE_STEP } else { 0 }
    }
}
