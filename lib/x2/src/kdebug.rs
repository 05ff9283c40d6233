//! Kernel debugger operations (ABI 15.1): an INT3 instruction followed by `cmpb $operation, %al`.

/// Print the character in AL.
pub const PRINT_CHARACTER: u8 = 0x0;
/// Print the NUL-terminated string at RAX.
pub const PRINT_STRING: u8 = 0x1;
/// Toggle whether a key on the console enters the debugger.
pub const TOGGLE_BREAK_IN: u8 = 0x3;
/// Read a character into RAX, -1 if there is none.
pub const READ_CHARACTER_NONBLOCKING: u8 = 0x8;
/// Read a character into RAX, waiting for one.
pub const READ_CHARACTER: u8 = 0xd;

/// Ours, for tests: RAX = one of [`statistic`]; reads that number into RAX, all ones if there is
/// none. Only privileged spaces, and only with the boot option `kdb=test`.
pub const READ_STATISTIC: u8 = 0x40;
/// Ours, for tests: RAX = n > 0: the n-th allocation of kernel memory from now on fails, once; 0:
/// none does. RAX becomes 1 if the failure asked for before was still to come, else 0. Only
/// privileged spaces, and only with the boot option `kdb=test`.
pub const FAIL_ALLOCATION: u8 = 0x41;
/// Ours: the kernel shows nothing on the screen any more, since a program gets it. Only privileged
/// spaces.
pub const LEAVE_SCREEN: u8 = 0x42;

/// What [`READ_STATISTIC`] reads.
pub mod statistic {
    /// Frames of page tables and UTCBs.
    pub const FRAMES: u64 = 0;
    /// Thread control blocks in use.
    pub const THREADS: u64 = 1;
    /// Address spaces.
    pub const SPACES: u64 = 2;
    /// Nodes of the mapping database and arrays of them in use.
    pub const MAP_NODES: u64 = 3;
    /// The flags with which the kernel runs just then.
    pub const FLAGS: u64 = 4;
    /// Bytes of kernel memory in use.
    pub const MEMORY: u64 = 5;
    /// The memory node of the control block of a thread: see [`of_node`].
    pub const NODE_OF_THREAD: u64 = 6;
    /// The memory node of the space of a thread.
    pub const NODE_OF_SPACE: u64 = 7;
    /// The memory node of the page table in which the entry for an address of a thread's space is.
    pub const NODE_OF_TABLE: u64 = 8;

    /// The argument that asks `which` (one of the three above) about the thread with this number,
    /// or about this address.
    pub const fn of_node(which: u64, thread: u32, address: u64) -> u64 {
        which | (thread as u64) << 8 | address >> 12 << 26
    }
}
