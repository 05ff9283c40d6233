//! System calls of other operating systems: a SYSCALL instruction outside the stub page (K9).
//!
//! In exception mode the thread tells its exception handler, in one message whose words are the
//! registers that a system call uses, and the answer's label says how it goes on. In bounce mode it
//! continues at its space's emulation entry, in the same entry into the kernel; the emulation
//! library hands on what it does not answer itself, and then all is as in exception mode.

use x2::MessageTag;
use x2::control::USER_FLAGS;
use x2::extension::{FORWARD, SystemCallAnswer, SystemCallMode};

use super::{Continuation, IpcKind, ThreadRef, exception, fault, flag, ipc, lifecycle};
use crate::arch;
use crate::scheduler::Next;
use crate::trace::{self, Event};

/// The exception that a foreign system call is without a mode: invalid opcode.
pub const INVALID_OPCODE: u64 = 6;
/// The flags that a system call keeps when an emulation library passes it on: those that a program
/// may set.
pub const FORWARDED_FLAGS: u64 = USER_FLAGS;
/// Length of the SYSCALL instruction.
const SYSCALL_LENGTH: u64 = 2;

/// The current thread has executed SYSCALL outside the stubs; RIP points to the next instruction.
#[inline(never)]
pub fn system_call(current: ThreadRef) -> Next {
    let registers = &current.registers;
    // SYSCALL itself has changed these registers, which a thread that is resumed by IRETQ, or read
    // by another, shows.
    registers.rcx.set(registers.rip.get());
    registers.r11.set(registers.rflags.get());
    let Some(space) = current.space.get() else { return Next::Schedule };
    match space.ownership.mode() {
        SystemCallMode::None => {
            back_to_instruction(current);
            exception::report_exception(current, INVALID_OPCODE, 0)
        }
        SystemCallMode::Exception => {
            trace::event(Event::Redirect, registers.rax().get(), registers.rip.get());
            report_system_call(current)
        }
        SystemCallMode::Bounce => {
            trace::event(Event::Bounce, registers.rax().get(), registers.rip.get());
            registers.rip.set(space.ownership.emulation_entry());
            // RCX holds the return address, not RIP: only IRETQ can do that.
            current.return_with_all_registers();
            Next::Return
        }
    }
}

/// The current thread has executed an undefined instruction. If it did so where the emulation
/// library of its space hands a bounced call on, with the registers that this left it, the
/// exception handler is told of the call. `None`: it is nothing of the kind.
pub fn forwarded(current: ThreadRef) -> Option<Next> {
    let space = current.space.get()?;
    let registers = &current.registers;
    let behind = registers.rcx.get();
    let here = space.ownership.emulation_entry() + FORWARD;
    if space.ownership.mode() != SystemCallMode::Bounce
        || registers.rip.get() != here
        || behind >= arch::USER_END
    {
        return None;
    }
    let flags = ipc::user_flags(registers.r11.get());
    registers.rip.set(behind);
    registers.rflags.set(flags);
    registers.r11.set(flags);
    current.return_as_from_system_call();
    trace::event(Event::Redirect, registers.rax().get(), behind);
    Some(report_system_call(current))
}

/// Tells the current thread's exception handler of the foreign system call that its registers
/// describe.
pub fn report_system_call(current: ThreadRef) -> Next {
    match current.exception_handler() {
        handler if handler.is_nil() => fault::halt(current),
        handler => ipc::send_report(current, IpcKind::SystemCall, handler),
    }
}

/// The answer with `tag` has arrived, its words already loaded. The thread goes on as the label
/// says; an answer that is none halts it, like an exception answer that is too short (X.2 rule
/// 11.5).
pub(super) fn answered(thread: ThreadRef, tag: MessageTag) {
    thread.set_continuation(Continuation::ReturnToUser);
    match answer(tag) {
        Some(SystemCallAnswer::Return) => {}
        Some(SystemCallAnswer::Restart) => back_to_instruction(thread),
        Some(SystemCallAnswer::Registers | SystemCallAnswer::Resume) => thread.return_with_all_registers(),
        None => thread.set_flag(flag::HALTED, true),
    }
}

/// What an answer's tag asks for, if it is well-formed.
pub(super) fn answer(tag: MessageTag) -> Option<SystemCallAnswer> {
    let answer = SystemCallAnswer::from_label(tag.label())?;
    let words = match answer {
        SystemCallAnswer::Return => 1,
        SystemCallAnswer::Restart | SystemCallAnswer::Resume => 0,
        SystemCallAnswer::Registers => FULL_WORDS,
    };
    (tag.untyped() >= words).then_some(answer)
}

/// Words of an answer that sets all registers: those of an exception answer, FS base, GS base.
pub const FULL_WORDS: usize = 20;
/// Message register: FS base.
pub const FS_BASE: usize = 19;
/// Message register: GS base.
pub const GS_BASE: usize = 20;

/// Sets FS base (`index` [`FS_BASE`]) or GS base; a base outside the user area is not taken. A GS
/// base of 0 stands for the thread's own (K5).
pub fn set_base(thread: ThreadRef, index: usize, value: u64) {
    if value >= arch::USER_END {
        return;
    }
    // The processor may still have the old values loaded.
    lifecycle::forget_loaded(thread);
    match index {
        FS_BASE => thread.registers.fs_base.set(value),
        _ if value == 0 => thread.registers.gs_base.set(thread.own_gs_base()),
        _ => thread.registers.gs_base.set(value),
    }
}

/// The handler that `thread` has told of its system call, or was about to, is gone. If the thread
/// is resumed, it makes the call again, unless it was given other registers meanwhile.
pub(super) fn make_again(thread: ThreadRef) {
    if thread.returns_by_sysret() {
        back_to_instruction(thread);
    }
}

/// Sets the instruction pointer back to the SYSCALL instruction.
fn back_to_instruction(thread: ThreadRef) {
    let rip = &thread.registers.rip;
    rip.set(rip.get().wrapping_sub(SYSCALL_LENGTH));
    thread.return_with_all_registers();
}
