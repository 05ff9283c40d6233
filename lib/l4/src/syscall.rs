//! The system calls, each with its register contract (ABI 5): which registers have arguments and
//! results. All others are clobbered.
//!
//! The stubs are called through the entry addresses in the kernel interface page, which are the
//! same in every space. The compiler reserves RBP and RBX, which cannot be operands, so every call
//! saves both on the stack; MR2, which is passed in RBX, goes through RCX.

use core::arch::asm;
use x2::extension::{MapItem, ONE_MAP_ITEM};
use x2::message::REGISTER_MESSAGE_REGISTERS;

/// The entry addresses, which are read from the kernel interface page at start-up.
pub(crate) mod entry {
    use core::sync::atomic::{AtomicU64, Ordering};
    use x2::kip;

    macro_rules! entries {
        ($($name:ident = $offset:ident;)*) => {
            $(pub(crate) static $name: AtomicU64 = AtomicU64::new(0);)*

            /// Sets every entry address. `word` reads the kernel interface page at a byte offset.
            pub(crate) fn set_all(word: impl Fn(usize) -> u64) {
                // Relaxed: only one thread runs now, and starting another one orders memory
                // accesses.
                $($name.store(word(kip::$offset), Ordering::Relaxed);)*
            }
        };
    }

    entries! {
        SPACE_CONTROL = SPACE_CONTROL;
        THREAD_CONTROL = THREAD_CONTROL;
        PROCESSOR_CONTROL = PROCESSOR_CONTROL;
        MEMORY_CONTROL = MEMORY_CONTROL;
        IPC = IPC;
        LIPC = LIPC;
        UNMAP = UNMAP;
        EXCHANGE_REGISTERS = EXCHANGE_REGISTERS;
        SYSTEM_CLOCK = SYSTEM_CLOCK;
        THREAD_SWITCH = THREAD_SWITCH;
        SCHEDULE = SCHEDULE;
        SPACE_OPTIONS = SPACE_OPTIONS;
        MAP_CONTROL = MAP_CONTROL;
        THREAD_STATE = THREAD_STATE;
        NOTIFY = NOTIFY;
    }
}

/// The message registers that are passed in processor registers: MR0 ..= MR7.
pub type MessageRegisters = [u64; REGISTER_MESSAGE_REGISTERS];

/// Calls an entry that takes and returns MR0..=MR7 in registers, which are the result of the macro.
/// The operands of the particular call follow.
macro_rules! call_with_message_registers {
    ($entry:ident, $registers:expr, $($operands:tt)*) => {{
        let [mut mr0, mut mr1, mut mr2, mut mr3, mut mr4, mut mr5, mut mr6, mut mr7] = $registers;
        asm!(
            "push rbp",
            "push rbx",
            "mov rbx, rcx",
            "call [rip + {entry}]",
            "mov rcx, rbx",
            "pop rbx",
            "pop rbp",
            entry = sym entry::$entry,
            inout("r9") mr0, inout("rax") mr1, inout("rcx") mr2, inout("r10") mr3,
            inout("r12") mr4, inout("r13") mr5, inout("r14") mr6, inout("r15") mr7,
            lateout("r11") _,
            $($operands)*
        );
        [mr0, mr1, mr2, mr3, mr4, mr5, mr6, mr7]
    }};
}

macro_rules! define_ipc {
    ($(#[$doc:meta])* $name:ident, $entry:ident) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// `utcb` must be the calling thread's UTCB pointer. If the thread accepts mappings, Rust
        /// code must not rely on memory in the receive window.
        #[inline(always)]
        pub unsafe fn $name(
            to: u64,
            from_specifier: u64,
            timeouts: u64,
            registers: MessageRegisters,
            utcb: u64,
        ) -> (u64, MessageRegisters) {
            let from;
            // SAFETY: the operands are the whole register contract of the call. It writes message
            // registers 8 and above into the UTCB, and no memory but that for which the caller is
            // responsible.
            let registers = unsafe {
                call_with_message_registers!(
                    $entry, registers,
                    inout("rsi") to => from, inout("rdx") from_specifier => _, inout("r8") timeouts => _,
                    inout("rdi") utcb => _,
                )
            };
            (from, registers)
        }
    };
}

define_ipc!(
    /// Ipc: a send phase to `to` unless that is 0, then a receive phase from `from_specifier`
    /// unless that is 0. Returns the sender and MR0..=MR7. May block.
    ipc, IPC
);
define_ipc!(
    /// Lipc: does the same as [`ipc`]; it is meant for threads of one space.
    lipc, LIPC
);

/// Unmap. Returns MR0..=MR7.
///
/// # Safety
/// `utcb` must be the calling thread's UTCB pointer. If the control word has the flush bit, Rust
/// code must not rely on the memory any more.
#[inline(always)]
pub unsafe fn unmap(control: u64, registers: MessageRegisters, utcb: u64) -> MessageRegisters {
    // SAFETY: the operands are the call's whole register contract; RSI and R8 are clobbered by it.
    unsafe {
        call_with_message_registers!(
            UNMAP, registers,
            inout("rdx") control => _, inout("rdi") utcb => _, lateout("rsi") _, lateout("r8") _,
        )
    }
}

/// The arguments and results of ExchangeRegisters.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ExchangedRegisters {
    /// Argument: the thread. Result: the other form of its id; 0 for an error.
    pub id: u64,
    /// Control word.
    pub control: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Instruction pointer.
    pub ip: u64,
    /// Flags.
    pub flags: u64,
    /// User-defined handle.
    pub handle: u64,
    /// Pager.
    pub pager: u64,
}

/// ExchangeRegisters.
///
/// # Safety
/// A thread must be able to continue with the registers that it gets.
#[inline(always)]
pub unsafe fn exchange_registers(registers: ExchangedRegisters) -> ExchangedRegisters {
    let ExchangedRegisters { mut id, mut control, mut sp, mut ip, mut flags, mut handle, mut pager } =
        registers;
    // SAFETY: the operands are the call's whole register contract.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "call [rip + {entry}]",
            "pop rbx",
            "pop rbp",
            entry = sym entry::EXCHANGE_REGISTERS,
            inout("rax") id, inout("rsi") control, inout("rdx") sp, inout("r8") ip, inout("r9") flags,
            inout("r10") handle, inout("rdi") pager,
            lateout("rcx") _, lateout("r11") _, lateout("r12") _, lateout("r13") _, lateout("r14") _,
            lateout("r15") _,
        );
    }
    ExchangedRegisters { id, control, sp, ip, flags, handle, pager }
}

/// Calls an entry with arguments in RDI, RSI, RDX, R8 and R9 and results in RAX and RDX.
macro_rules! control_call {
    ($entry:ident, $rdi:expr, $rsi:expr, $rdx:expr, $r8:expr, $r9:expr) => {{
        let (result, second): (u64, u64);
        // SAFETY: the operands are the whole register contract of the call. Of the caller's memory
        // it writes only ErrorCode in the UTCB, and its effects on other threads and spaces cannot
        // break this program.
        unsafe {
            asm!(
                "push rbp",
                "push rbx",
                "call [rip + {entry}]",
                "pop rbx",
                "pop rbp",
                entry = sym entry::$entry,
                inout("rdi") $rdi => _, inout("rsi") $rsi => _, inout("rdx") $rdx => second,
                inout("r8") $r8 => _, inout("r9") $r9 => _,
                lateout("rax") result,
                lateout("rcx") _, lateout("r10") _, lateout("r11") _, lateout("r12") _, lateout("r13") _,
                lateout("r14") _, lateout("r15") _,
            );
        }
        (result, second)
    }};
}

/// ThreadControl. Returns 1 for success, 0 for an error.
#[inline(always)]
pub fn thread_control(dest: u64, space: u64, scheduler: u64, pager: u64, utcb_location: u64) -> u64 {
    control_call!(THREAD_CONTROL, dest, pager, scheduler, space, utcb_location).0
}

/// SpaceControl. Returns (1 or 0 for an error, the old control word).
#[inline(always)]
pub fn space_control(space: u64, control: u64, kip_area: u64, utcb_area: u64, redirector: u64) -> (u64, u64) {
    control_call!(SPACE_CONTROL, space, control, kip_area, utcb_area, redirector)
}

/// Schedule. Returns (the thread's state or 0 for an error, the old time control).
#[inline(always)]
pub fn schedule(dest: u64, time: u64, processor: u64, priority: u64, preemption: u64) -> (u64, u64) {
    control_call!(SCHEDULE, dest, priority, time, processor, preemption)
}

/// ThreadSwitch: gives the rest of the timeslice to `to`, or to the scheduler if it is nil.
#[inline(always)]
pub fn thread_switch(dest: u64) {
    let _ = control_call!(THREAD_SWITCH, dest, 0u64, 0u64, 0u64, 0u64);
}

/// SystemClock. Returns microseconds.
#[inline(always)]
pub fn system_clock() -> u64 {
    control_call!(SYSTEM_CLOCK, 0u64, 0u64, 0u64, 0u64, 0u64).0
}

/// Calls an extension: arguments in RDI, RSI, RDX and R8, results in RAX, RSI, RDX and R8. No other
/// register changes but RCX, R11 and RBP.
macro_rules! extension_call {
    ($entry:ident, $rdi:expr, $rsi:expr, $rdx:expr, $r8:expr) => {{
        let (mut rsi, mut rdx, mut r8): (u64, u64, u64) = ($rsi, $rdx, $r8);
        let result: u64;
        asm!(
            "push rbp",
            "call [rip + {entry}]",
            "pop rbp",
            entry = sym entry::$entry,
            in("rdi") $rdi, inout("rsi") rsi, inout("rdx") rdx, inout("r8") r8,
            lateout("rax") result, lateout("rcx") _, lateout("r11") _,
        );
        (result, rsi, rdx, r8)
    }};
}

/// SpaceOptions. Returns (1 or 0 for an error, the two result words).
#[inline(always)]
pub fn space_options(space: u64, option: u64, values: [u64; 2]) -> (u64, [u64; 2]) {
    // SAFETY: the operands are the whole register contract of the call; it accesses no memory of
    // this space.
    let (result, _, first, second) =
        unsafe { extension_call!(SPACE_OPTIONS, space, option, values[0], values[1]) };
    (result, [first, second])
}

/// ThreadState. Returns (1 or 0 for an error, the state, how many bytes were read).
///
/// # Safety
/// The caller must own `size` bytes at `buffer`, which are read or written as `control` says. If
/// registers are written, the thread must be able to continue with them.
#[inline(always)]
pub unsafe fn thread_state(thread: u64, control: u64, buffer: u64, size: u64) -> (u64, u64, u64) {
    // SAFETY: the operands are the whole register contract of the call; the caller is responsible
    // for the memory.
    let (result, state, _, read) = unsafe { extension_call!(THREAD_STATE, thread, control, buffer, size) };
    (result, state, read)
}

/// MapControl. Returns (1 or 0 for an error, how many items were carried out).
///
/// # Safety
/// The caller must own `number` items of 32 bytes at `items`, which are read, and whose answers are
/// written.
#[inline(always)]
pub unsafe fn map_control(space: u64, items: u64, number: u64) -> (u64, u64) {
    // SAFETY: the operands are the whole register contract of the call; the caller is responsible
    // for the memory. Mappings change only in another space.
    let (result, _, _, done) = unsafe { extension_call!(MAP_CONTROL, space, items, number, 0) };
    (result, done)
}

/// MapControl with one item in registers. Returns (1 or 0 for an error, the item's answer).
#[inline(always)]
pub fn map_control_one(space: u64, item: &MapItem) -> (u64, u64) {
    // SAFETY: the operands are the whole register contract of the call. Mappings change only in
    // another space.
    let (result, _, _, answer) =
        unsafe { extension_call!(MAP_CONTROL, space, item.target, ONE_MAP_ITEM | item.control, item.source) };
    (result, answer)
}

/// Notify. Returns 1 for success, 0 for an error.
#[inline(always)]
pub fn notify(thread: u64, bits: u64) -> u64 {
    // SAFETY: the operands are the whole register contract of the call; it accesses no memory of
    // this space.
    unsafe { extension_call!(NOTIFY, thread, bits, 0, 0) }.0
}

/// ProcessorControl. Returns 1 for success, 0 for an error.
#[inline(always)]
pub fn processor_control(processor: u64, internal_khz: u64, external_khz: u64, millivolt: u64) -> u64 {
    control_call!(PROCESSOR_CONTROL, processor, internal_khz, external_khz, millivolt, 0u64).0
}

/// MemoryControl on the fpages in MR0 and the message registers after it. Returns 1 for success, 0
/// for an error. The call has no free register for MR2, so the message registers are loaded from
/// the UTCB, and MR0 and MR1 are stored there afterwards.
///
/// # Safety
/// `utcb` must be the calling thread's UTCB pointer, and Rust code must not depend on the memory's
/// old attributes.
#[inline(always)]
pub unsafe fn memory_control(control: u64, attributes: [u64; 4], utcb: u64) -> u64 {
    let [attribute0, attribute1, attribute2, attribute3] = attributes;
    let result;
    // SAFETY: the operands are the call's whole register contract; RDI points to the 64 message
    // registers.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "mov rax, [rdi + 8]",
            "mov rbx, [rdi + 16]",
            "mov r9, [rdi]",
            "mov r10, [rdi + 24]",
            "mov r12, [rdi + 32]",
            "mov r13, [rdi + 40]",
            "mov r14, [rdi + 48]",
            "mov r15, [rdi + 56]",
            "call [rip + {entry}]",
            "mov [rdi], rcx",
            "mov [rdi + 8], rax",
            "pop rbx",
            "pop rbp",
            entry = sym entry::MEMORY_CONTROL,
            inout("rdx") control => result, inout("rcx") attribute0 => _, inout("rsi") attribute1 => _,
            inout("r8") attribute2 => _, inout("r11") attribute3 => _, inout("rdi") utcb => _,
            lateout("rax") _, lateout("r9") _, lateout("r10") _, lateout("r12") _, lateout("r13") _,
            lateout("r14") _, lateout("r15") _,
        );
    }
    result
}
