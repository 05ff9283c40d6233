//! Segments and the task-state segment. The selectors that user programs see are those of ABI 16:
//! CS 0x2b, SS and the data segments 0x23, GS 0x33. There is no 32-bit user segment (K14).
use core::arch::asm;
use core::mem::{offset_of, size_of};

/// Kernel code.
pub const KERNEL_CODE: u16 = 0x08;
/// Kernel data (SS of the kernel; loaded by SYSCALL, never used for a memory access).
pub const KERNEL_DATA: u16 = 0x10;
/// User data, with the requested privilege level 3.
pub const USER_DATA: u16 = 0x23;
/// User 64-bit code, with the requested privilege level 3.
pub const USER_CODE: u16 = 0x2b;
/// The user's GS selector, with the requested privilege level 3.
pub const USER_GS: u16 = 0x33;
const TASK_STATE: u16 = 0x38;

/// STAR: SYSCALL loads CS 0x08 and SS 0x10; 64-bit SYSRET loads CS 0x18 + 16 and SS 0x18 + 8 with
/// privilege level 3.
pub const STAR: u64 = (0x18 | 3) << 48 | (KERNEL_CODE as u64) << 32;

/// Interrupt stack table indices (1-based as in the gate descriptors). These entries do not trust
/// GS (K5).
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum InterruptStack {
    /// Non-maskable interrupt.
    NonMaskable = 1,
    /// Machine check.
    MachineCheck = 2,
    /// Debug exception.
    Debug = 3,
    /// Double fault.
    DoubleFault = 4,
    /// Page fault, general protection, invalid opcode: what a mistake in entry code leads to, whose
    /// RSP is no stack. These trust GS where they come from user mode, and arrive where interrupts
    /// from there do; from kernel mode they move on.
    Fault = 5,
}

/// How many stacks of the interrupt stack table are in use.
pub const INTERRUPT_STACKS: usize = 5;

/// Words of the I/O permission bitmap, of 64 ports each.
pub const PORT_WORDS: usize = 65536 / 64;

/// The 64-bit task-state segment with its I/O permission bitmap. All ones in the bitmap: no port is
/// open.
#[repr(C, packed)]
pub struct TaskState {
    reserved0: u32,
    /// Stack pointer loaded on an entry from user mode by interrupt or exception.
    rsp0: u64,
    rsp1: u64,
    rsp2: u64,
    reserved1: u64,
    stacks: [u64; 7],
    reserved2: u64,
    reserved3: u16,
    bitmap_offset: u16,
    closed: [u64; PORT_WORDS],
    /// The byte of ones that the processor demands after the bitmap.
    end: u8,
}

impl TaskState {
    /// Where entry code finds the stack pointer for entries from user mode.
    pub const ENTRY_STACK_OFFSET: usize = offset_of!(Self, rsp0);

    /// Where the bitmap is while it is used, and where it is while it is not: beyond the segment's
    /// limit.
    pub const BITMAP: u16 = offset_of!(Self, closed) as u16;
    /// See [`TaskState::BITMAP`].
    pub const NO_BITMAP: u16 = size_of::<Self>() as u16;
    /// Where entry code says which of the two it is.
    pub const BITMAP_OFFSET: usize = offset_of!(Self, bitmap_offset);

    /// A task state without stacks and ports.
    pub const fn new() -> Self {
        Self {
            reserved0: 0,
            rsp0: 0,
            rsp1: 0,
            rsp2: 0,
            reserved1: 0,
            stacks: [0; 7],
            reserved2: 0,
            reserved3: 0,
            bitmap_offset: Self::NO_BITMAP,
            closed: [!0; PORT_WORDS],
            end: 0xff,
        }
    }

    /// Sets the stack for entries from user mode.
    pub fn set_entry_stack(&mut self, top: u64) {
        self.rsp0 = top;
    }

    /// Sets one stack of the interrupt stack table.
    pub fn set_interrupt_stack(&mut self, which: InterruptStack, top: u64) {
        self.stacks[which as usize - 1] = top;
    }

    /// Says whether the bitmap counts; otherwise every port is closed.
    #[inline]
    pub fn use_bitmap(&mut self, counts: bool) {
        self.bitmap_offset = if counts { Self::BITMAP } else { Self::NO_BITMAP };
    }

    /// Opens, of the 64 ports from 64 * `word` on, those that are 1 in `open`, and closes the
    /// others.
    pub fn set_ports(&mut self, word: usize, open: u64) {
        self.closed[word] = !open;
    }

    /// Closes the ports of the words from `first` to `last`.
    pub fn close_ports(&mut self, first: usize, last: usize) {
        for word in first..(last + 1).min(PORT_WORDS) {
            self.closed[word] = !0;
        }
    }

    /// Whether the bitmap counts, and the port is open in it.
    pub fn lets_use(&self, port: u16) -> bool {
        self.bitmap_offset == Self::BITMAP && self.closed[usize::from(port / 64)] >> (port % 64) & 1 == 0
    }
}

impl Default for TaskState {
    fn default() -> Self {
        Self::new()
    }
}

/// One processor's global descriptor table.
#[repr(C, align(16))]
pub struct DescriptorTable([u64; 9]);

#[repr(C, packed)]
struct TablePointer {
    limit: u16,
    base: u64,
}

impl DescriptorTable {
    /// The segments above; the task-state descriptor is filled in by [`DescriptorTable::load`].
    pub const fn new() -> Self {
        Self([
            0,
            0x00af_9b00_0000_ffff, // 0x08 kernel code
            0x00cf_9300_0000_ffff, // 0x10 kernel data
            0,                     // 0x18 would be 32-bit user code: absent
            0x00cf_f300_0000_ffff, // 0x20 user data
            0x00af_fb00_0000_ffff, // 0x28 user code
            0x00cf_f300_0000_ffff, // 0x30 user data for GS
            0,
            0, // 0x38 task state
        ])
    }

    /// Makes this table and the task state those of the executing processor, and loads the kernel's
    /// segments.
    ///
    /// # Safety
    /// Called once per pair of tables, on the processor they belong to, before user code runs
    /// there. Afterwards the processor reads both tables: the task state may be changed only by
    /// this processor, with interrupts off.
    pub unsafe fn load(&'static mut self, task: *const TaskState) {
        let base = task as u64;
        let limit = size_of::<TaskState>() as u64 - 1;
        self.0[7] = limit & 0xffff
            | (base & 0xff_ffff) << 16
            | 0x89 << 40
            | (limit >> 16 & 0xf) << 48
            | (base >> 24 & 0xff) << 56;
        self.0[8] = base >> 32;
        let pointer = TablePointer { limit: size_of::<Self>() as u16 - 1, base: self as *const Self as u64 };
        // SAFETY: the table is static and its segments are as the selectors say. The far return
        // reloads CS with the kernel's code segment; the data segments get the null selector, which
        // 64-bit mode never consults in ring 0. GS and FS bases are zeroed by that, which the
        // caller (arch::cpu_local) sets afterwards.
        unsafe {
            asm!(
                "lgdt [{pointer}]",
                "push {code}",
                "lea {scratch}, [rip + 2f]",
                "push {scratch}",
                "retfq",
                "2:",
                "xor {scratch:e}, {scratch:e}",
                "mov ds, {scratch:x}",
                "mov es, {scratch:x}",
                "mov fs, {scratch:x}",
                "mov gs, {scratch:x}",
                "mov {scratch:e}, {data}",
                "mov ss, {scratch:x}",
                "mov {scratch:e}, {task}",
                "ltr {scratch:x}",
                pointer = in(reg) &pointer,
                code = const KERNEL_CODE as i32,
                data = const KERNEL_DATA as i32,
                task = const TASK_STATE as i32,
                scratch = out(reg) _,
            );
        }
    }
}

impl Default for DescriptorTable {
    fn default() -> Self {
        Self::new()
    }
}
