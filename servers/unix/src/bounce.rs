//! Bounce mode: the kernel continues a system call in the process itself, at the emulation library
//! (docs/src/architecture.md). The library is a page of code that the server maps into every
//! program, at an address where programs cannot map anything.
//!
//! The library answers getpid(2) and gettid(2) from a word that the server keeps in the thread's
//! UTCB. It uses no stack and no register but RAX, so a signal may interrupt it at any instruction
//! without anything to undo. The flags that SYSCALL would have restored are lost. All other calls
//! it passes on by an undefined instruction, which the kernel recognises: the call then reaches the
//! server as in exception mode, with the registers as the program had them. Each process has the
//! page from its first thread on, so fork and exec keep it.

use crate::shared_object;
use core::arch::naked_asm;
use l4::syscall::ExchangedRegisters;
use l4::x2::control::ExchangeControl;
use l4::x2::extension::{FORWARD, SystemCallMode};
use l4::x2::{ThreadId, utcb};
use mach::Machine;
use mach::machine::{Frame, Protection};
use mach_l4::L4Machine;
use unix::thread::Task;
use unix::{Error, Result};

/// The address of the library: between the addresses that programs may use and the UTCBs.
const ADDRESS: u64 = 0x7fff_8000_1000;
/// The instruction that passes a call on to the server: UD2.
const HAND_ON: [u8; 2] = [0x0f, 0x0b];
/// How many bytes of the page the library uses.
const SIZE: usize = 64;
/// The offset from a thread's GS base at which the library finds the thread's ids: the user-defined
/// handle in the UTCB.
const IDS: usize = (utcb::USER_DEFINED_HANDLE - utcb::SELF_POINTER) as usize * 8;

/// The page with the emulation library, which is mapped into every program.
pub(crate) struct Library(Frame);

impl Library {
    /// Makes the page of the emulation library. Fails with `ENOMEM` if memory is short.
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

    /// Maps the library into a task and makes the kernel continue the task's system calls there.
    /// Fails with `ENOMEM` if memory is short.
    pub(crate) fn install(&self, machine: &L4Machine, task: &Task<L4Machine>) -> Result<()> {
        let page = (ADDRESS, self.0, Protection::READ | Protection::EXECUTE);
        shared_object::install(machine, task, &[page])?;
        let space = &task.map().space().ok_or(Error::ESRCH)?;
        machine.set_system_call_mode(space, SystemCallMode::Bounce, ADDRESS).map_err(|_| Error::ENOMEM)
    }
}

/// Makes all system calls of a task's programs come to the server, as in exception mode.
pub(crate) fn suspend(machine: &L4Machine, task: &Task<L4Machine>) {
    if let Some(space) = task.map().space() {
        // An error means that the task has ended.
        let _ = machine.set_system_call_mode(&space, SystemCallMode::Exception, ADDRESS);
    }
}

/// Writes process and thread id into the UTCB of a stopped thread, where the library reads them.
#[allow(unsafe_code, reason = "one word of the thread's changes, which its program may change itself")]
pub(crate) fn set_ids(thread: ThreadId, pid: u32, tid: u32) {
    let handle = u64::from(pid) | u64::from(tid) << 32;
    let values = ExchangedRegisters { handle, ..ExchangedRegisters::default() };
    // SAFETY: neither IP nor stack nor flags change, and no IPC is aborted. An error means that the
    // thread has ended, and needs no ids.
    let _ = unsafe { l4::thread::exchange_registers(thread, ExchangeControl::HANDLE, values) };
}

fn code() -> &'static [u8] {
    // SAFETY: the program's code is readable, and more code of this program follows the entry, so
    // that `SIZE` bytes can be read.
    #[allow(unsafe_code, reason = "the library's code as bytes")]
    unsafe {
        core::slice::from_raw_parts(entry as *const u8, SIZE)
    }
}

/// The code of the library, which is copied into the page and never called here. At its entry RAX
/// is the number of the call, RCX the address to return to, R11 the flags.
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
