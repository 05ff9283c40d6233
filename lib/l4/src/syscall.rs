//! The system calls, each with the register contract of ABI 5: what goes in, what comes out,
//! everything else clobbered.
//!
//! The stubs are reached through the entry addresses of the kernel interface page, which are the
//! same in every space. RBP and RBX cannot be named as operands (the compiler owns them), so every
//! call saves both on the stack; MR2, which travels in RBX, passes through RCX.

use core::arch::asm;
use x2::extension::{MapItem, ONE_MAP_ITEM};
use x2::message::REGISTER_MESSAGE_REGISTERS;

/// Entry addresses, read from the kernel interface page at start-up.
pub(crate) mod entry {
    use core::sync::atomic::{AtomicU64, Ordering};
    use x2::kip;

    macro_rules! entries {
        ($($name:ident = $offset:ident;)*) => {
            $(pub(crate) static $name: AtomicU64 = AtomicU64::new(0);)*

            /// Takes every entry address from `word`, which reads the page at a byte offset.
            pub(crate) fn set_all(word: impl Fn(usize) -> u64) {
                // Relaxed: see `kernel_interface::init`.
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

/// MR0 ..= MR7, the message registers that travel in processor registers.
pub type MessageRegisters = [u64; REGISTER_MESSAGE_REGISTERS];

/// Calls an entry that passes MR0..=MR7 in registers; evaluates to them. Operands of the particular
/// call follow.
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
        /// `utcb` is the calling thread's UTCB pointer. Where the thread accepts mappings, no
        /// memory lies that Rust code relies on.
        #[inline(always)]
        pub unsafe fn $name(
            to: u64,
            from_specifier: u64,
            timeouts: u64,
            registers: MessageRegisters,
            utcb: u64,
        ) -> (u64, MessageRegisters) {
            let from;
            // SAFETY: the operands are the call's whole register contract; it writes message
            // registers 8 and above into the UTCB and otherwise touches the memory that the caller
            // answers for.
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
    /// Lipc: the same as [`ipc`], meant for threads of one space.
    lipc, LIPC
);

/// Unmap; returns MR0..=MR7.
///
/// # Safety
/// `utcb` is the calling thread's UTCB pointer. When the control word flushes, Rust code no longer
/// relies on the memory.
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

/// What ExchangeRegisters takes and returns.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ExchangedRegisters {
    /// In: the thread. Out: the other form of its id, 0 = error.
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
/// A thread that runs on elsewhere must find there what Rust code expects.
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

/// Calls an entry whose arguments are in RDI, RSI, RDX, R8 and R9 and whose results are in RAX and
/// RDX.
macro_rules! control_call {
    ($entry:ident, $rdi:expr, $rsi:expr, $rdx:expr, $r8:expr, $r9:expr) => {{
        let (result, second): (u64, u64);
        // SAFETY: the operands are the call's whole register contract; it touches no memory of the
        // caller except the UTCB's ErrorCode. What it does to other threads and spaces cannot break
        // this program.
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

/// ThreadControl; returns 1 or 0.
#[inline(always)]
pub fn thread_control(dest: u64, space: u64, scheduler: u64, pager: u64, utcb_location: u64) -> u64 {
    control_call!(THREAD_CONTROL, dest, pager, scheduler, space, utcb_location).0
}

/// SpaceControl; returns (1 or 0, old control).
#[inline(always)]
pub fn space_control(space: u64, control: u64, kip_area: u64, utcb_area: u64, redirector: u64) -> (u64, u64) {
    control_call!(SPACE_CONTROL, space, control, kip_area, utcb_area, redirector)
}

/// Schedule; returns (thread state or 0, old time control).
#[inline(always)]
pub fn schedule(dest: u64, time: u64, processor: u64, priority: u64, preemption: u64) -> (u64, u64) {
    control_call!(SCHEDULE, dest, priority, time, processor, preemption)
}

/// ThreadSwitch.
#[inline(always)]
pub fn thread_switch(dest: u64) {
    let _ = control_call!(THREAD_SWITCH, dest, 0u64, 0u64, 0u64, 0u64);
}

/// SystemClock: microseconds.
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

/// SpaceOptions; returns (1 or 0, answers).
#[inline(always)]
pub fn space_options(space: u64, option: u64, values: [u64; 2]) -> (u64, [u64; 2]) {
    // SAFETY: the operands are the call's whole register contract; it touches no memory of this
    // space.
    let (result, _, first, second) =
        unsafe { extension_call!(SPACE_OPTIONS, space, option, values[0], values[1]) };
    (result, [first, second])
}

/// ThreadState; returns (1 or 0, state, bytes read).
///
/// # Safety
/// `size` bytes at `buffer` are the caller's to be read or written as `control` says; the thread
/// finds what its code expects.
#[inline(always)]
pub unsafe fn thread_state(thread: u64, control: u64, buffer: u64, size: u64) -> (u64, u64, u64) {
    // SAFETY: the operands are the call's whole register contract; the memory is the caller's
    // promise.
    let (result, state, _, read) = unsafe { extension_call!(THREAD_STATE, thread, control, buffer, size) };
    (result, state, read)
}

/// MapControl; returns (1 or 0, items done).
///
/// # Safety
/// `number` items of 32 bytes at `items` are the caller's, to be read and answered.
#[inline(always)]
pub unsafe fn map_control(space: u64, items: u64, number: u64) -> (u64, u64) {
    // SAFETY: the operands are the call's whole register contract; the memory is the caller's
    // promise. Mappings change in another space only.
    let (result, _, _, done) = unsafe { extension_call!(MAP_CONTROL, space, items, number, 0) };
    (result, done)
}

/// MapControl with one item, in registers; returns (1 or 0, the answer).
#[inline(always)]
pub fn map_control_one(space: u64, item: &MapItem) -> (u64, u64) {
    // SAFETY: the operands are the call's whole register contract. Mappings change in another space
    // only.
    let (result, _, _, answer) =
        unsafe { extension_call!(MAP_CONTROL, space, item.target, ONE_MAP_ITEM | item.control, item.source) };
    (result, answer)
}

/// Notify; returns 1 or 0.
#[inline(always)]
pub fn notify(thread: u64, bits: u64) -> u64 {
    // SAFETY: the operands are the call's whole register contract; it touches no memory of this
    // space.
    unsafe { extension_call!(NOTIFY, thread, bits, 0, 0) }.0
}

/// ProcessorControl; returns 1 or 0.
#[inline(always)]
pub fn processor_control(processor: u64, internal_khz: u64, external_khz: u64, millivolt: u64) -> u64 {
    control_call!(PROCESSOR_CONTROL, processor, internal_khz, external_khz, millivolt, 0u64).0
}

/// MemoryControl on the fpages in MR0 and on; returns 1 or 0. It has no free register for MR2 on
/// the way in: the message registers come from the UTCB. The call leaves what it returns in MR0 and
/// MR1 there.
///
/// # Safety
/// `utcb` is the calling thread's UTCB pointer; Rust code does not depend on the memory's old
/// attributes.
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
