//! Bounce mode (K9, U8): the kernel continues a system call in the process itself, at the emulation
//! library, a page of code that the server maps where no program maps anything.
//!
//! The library answers getpid(2) and gettid(2) from a word that the server keeps in the thread's
//! UTCB, with no stack and no register but RAX, so nothing has to be undone if a signal comes in
//! between; the flags that SYSCALL would have restored are lost. Everything else it hands on by an
//! undefined instruction where the kernel expects one: that makes the call arrive here as in
//! exception mode, the registers as the program had them. Each process has the page from its first
//! thread on, so fork and exec keep it.

use crate::shared_object;
use core::arch::naked_asm;
use l4::syscall::ExchangedRegisters;
use l4::x2::control::ExchangeControl;
use l4::x2::extension::{FORWARD, SystemCallMode};
use l4::x2::{ThreadId, utcb};
use mach::Machine;
use mach::machine::Frame;
use mach_l4::L4Machine;
use unix::thread::Task;
use unix::{Error, Result};

/// Where the library lies: between what programs may use and the UTCBs.
const ADDRESS: u64 = 0x7fff_8000_1000;
/// The instruction that hands a call on: UD2.
const HAND_ON: [u8; 2] = [0x0f, 0x0b];
/// How many bytes of the page the library uses.
const SIZE: usize = 64;
/// Where a thread finds its ids, from its GS base: its user-defined handle.
const IDS: usize = (utcb::USER_DEFINED_HANDLE - utcb::SELF_POINTER) as usize * 8;

/// The page with the emulation library, which is mapped into every program.
pub(crate) struct Library(Frame);

impl Library {
    /// Makes the page of the emulation library. `ENOMEM`.
    pub(crate) fn new(machine: &L4Machine) -> Result<Library> {
        let frame = machine.allocate_frames(0).ok_or(Error::ENOMEM)?;
        machine.zero_frame(frame);
        let code = code();
        assert!(
            code[FORWARD as usize..].starts_with(&HAND_ON),
            "calls are handed on where the kernel expects it"
        );
        machine.write_frame(frame, 0, code);
        Ok(Library(frame))
    }

    /// Makes a space bounce system calls to the library. `ENOMEM`.
    pub(crate) fn install(&self, machine: &L4Machine, task: &Task<L4Machine>) -> Result<()> {
        shared_object::install(machine, task, ADDRESS, self.0)?;
        let space = &task.map().space().ok_or(Error::ESRCH)?;
        machine.set_system_call_mode(space, SystemCallMode::Bounce, ADDRESS).map_err(|_| Error::ENOMEM)
    }
}

/// Writes process and thread id where the library of a stopped thread reads them: into its UTCB.
#[allow(unsafe_code, reason = "one word of the thread's changes, which its program may change itself")]
pub(crate) fn set_ids(thread: ThreadId, pid: u32, tid: u32) {
    let handle = u64::from(pid) | u64::from(tid) << 32;
    let values = ExchangedRegisters { handle, ..ExchangedRegisters::default() };
    // SAFETY: neither IP nor stack nor flags change, and no IPC ends.
    // A thread that has ended needs no ids.
    let _ = unsafe { l4::thread::exchange_registers(thread, ExchangeControl::HANDLE, values) };
}

fn code() -> &'static [u8] {
    // SAFETY: the program's code is readable, and at least so much follows the entry (more code of
    // this program).
    #[allow(unsafe_code, reason = "the library's code as bytes")]
    unsafe {
        core::slice::from_raw_parts(entry as *const u8, SIZE)
    }
}

/// The library, which is only copied: RAX = number, RCX = where to go on, R11 = flags.
#[unsafe(naked)]
#[allow(unsafe_code, reason = "code without a stack")]
extern "C" fn entry() -> ! {
    naked_asm!(
        "cmp rax, {getpid}",
        "je 2f",
        "cmp rax, {gettid}",
        "je 3f",
        ".p2align 4",
        "ud2",
        "2:",
        "mov eax, gs:[{ids}]",
        "jmp rcx",
        "3:",
        "mov eax, gs:[{ids} + 4]",
        "jmp rcx",
        getpid = const 39,
        gettid = const 186,
        ids = const IDS,
    )
}
