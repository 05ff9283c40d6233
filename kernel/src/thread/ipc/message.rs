//! Where the words of a message come from and go to.
//!
//! A user's message lies in its saved registers (MR0..MR7) and its UTCB (MR8..MR63). What the
//! kernel sends in a thread's name is made from the TCB and what it receives goes there, so that a
//! page fault or an exception leaves the thread's UTCB and registers as they were (X.2 rules 11.6,
//! 12.3) without saving anything.

use core::cell::Cell;

use x2::extension::{self, SystemCallAnswer};
use x2::message::REGISTER_MESSAGE_REGISTERS;
use x2::protocol::{self, exception};
use x2::{Acceptor, Fpage, MessageTag, Rights, utcb};

use crate::arch::STEP_FLAG;
use crate::thread::{IpcKind, Registers, ThreadRef, USER_FLAGS, breakpoints, redirect};

/// A thread's message in the role that its IPC has.
#[derive(Clone, Copy)]
pub(super) struct Message {
    pub thread: ThreadRef,
    pub kind: IpcKind,
}

impl Message {
    /// The tag of the message to send, flags as given by the user. It is always well-formed: the
    /// sender's tag was checked when it began to send, and one that an owner has written since then
    /// (K15), if it is none, stands for an empty message.
    pub(super) fn tag(self) -> MessageTag {
        match self.kind {
            IpcKind::User => {
                let tag = self.given_tag();
                if tag.is_well_formed() { tag } else { MessageTag::EMPTY }
            }
            IpcKind::PageFault => protocol::page_fault_tag(Rights::from_bits(self.thread.fault[1].get())),
            IpcKind::PortFault => protocol::IO_PAGE_FAULT_TAG,
            IpcKind::Quantum | IpcKind::Preemption => protocol::PREEMPTION_TAG,
            IpcKind::Exception if self.thread.fault[0].get() == exception::PREEMPTION_NUMBER => {
                exception::PREEMPTION_TAG
            }
            IpcKind::Exception => exception_tag(),
            IpcKind::SystemCall => SYSTEM_CALL_TAG,
            IpcKind::Start => MessageTag::EMPTY,
        }
    }

    /// What the user has in MR0, which may be no tag at all.
    pub(super) fn given_tag(self) -> MessageTag {
        MessageTag::from_raw(self.thread.registers.message[0].get())
    }

    /// Word `index` (1..=63) of the message to send.
    pub(super) fn word(self, index: usize) -> u64 {
        match self.kind {
            IpcKind::User if index < REGISTER_MESSAGE_REGISTERS => self.thread.registers.message[index].get(),
            IpcKind::User => {
                self.thread.utcb.get().map_or(0, |block| block.read(utcb::message_register(index)))
            }
            IpcKind::PageFault | IpcKind::PortFault | IpcKind::Quantum | IpcKind::Preemption
                if index == 1 =>
            {
                self.thread.fault[0].get()
            }
            IpcKind::Quantum | IpcKind::Preemption => 0,
            IpcKind::PageFault | IpcKind::PortFault => self.thread.registers.rip.get(),
            IpcKind::Exception if index == exception::NUMBER => self.thread.fault[0].get(),
            IpcKind::Exception if index == exception::ERROR_CODE => self.thread.fault[1].get(),
            IpcKind::Exception => exception_register(&self.thread.registers, index).get(),
            IpcKind::SystemCall => system_call_register(&self.thread.registers, index).get(),
            IpcKind::Start => 0,
        }
    }

    /// Sets word `index` (1..=63) of the message received.
    pub(super) fn set_word(self, index: usize, value: u64) {
        match self.kind {
            IpcKind::User if index < REGISTER_MESSAGE_REGISTERS => {
                self.thread.registers.message[index].set(value);
            }
            IpcKind::User | IpcKind::Start => {
                if let Some(block) = self.thread.utcb.get() {
                    block.write(utcb::message_register(index), value);
                }
            }
            _ => {}
        }
    }

    /// Receives the untyped words of `source`, whose tag is `tag`. A user's message registers after
    /// them, as far as they are the processor's, are 0 then.
    pub(super) fn receive_untyped(self, source: Self, tag: MessageTag) {
        let count = tag.untyped();
        match (source.kind, self.kind) {
            (IpcKind::User, IpcKind::User) => {
                let (from, to) = (&source.thread.registers.message, &self.thread.registers.message);
                for index in 1..REGISTER_MESSAGE_REGISTERS {
                    to[index].set(if index <= count { from[index].get() } else { 0 });
                }
                if count >= REGISTER_MESSAGE_REGISTERS
                    && let (Some(from), Some(to)) = (source.thread.utcb.get(), self.thread.utcb.get())
                {
                    to.copy_message_registers(from, REGISTER_MESSAGE_REGISTERS..count + 1);
                }
            }
            (_, IpcKind::Exception) if count >= exception::REPLY_WORDS => {
                set_exception_registers(self.thread, |index| source.word(index));
            }
            (_, IpcKind::SystemCall) => receive_answer(self.thread, source, tag),
            (_, IpcKind::User | IpcKind::Start) => {
                for index in 1..=count {
                    self.set_word(index, source.word(index));
                }
                for register in self.thread.registers.message.iter().skip(count + 1) {
                    if self.kind == IpcKind::User {
                        register.set(0);
                    }
                }
            }
            _ => {}
        }
    }

    /// The typed items that the receiver accepts.
    pub(super) fn acceptor(self) -> Acceptor {
        match self.kind {
            IpcKind::User => self.thread.utcb.get().map_or(Acceptor::UNTYPED_WORDS, |block| {
                Acceptor::from_raw(block.read(utcb::buffer_register(0)))
            }),
            IpcKind::PageFault => Acceptor::COMPLETE,
            IpcKind::PortFault => Acceptor::new(Fpage::COMPLETE_IO, false),
            _ => Acceptor::UNTYPED_WORDS,
        }
    }
}

/// The tag of a processor exception's message.
pub fn exception_tag() -> MessageTag {
    if crate::config::get().exception_error_code {
        exception::TAG.with_words(exception::WORDS_WITH_ERROR_CODE, 0)
    } else {
        exception::TAG
    }
}

/// The message of a foreign system call (K9).
pub const SYSTEM_CALL_TAG: MessageTag = MessageTag::new(extension::SYSTEM_CALL_LABEL, 7, 0);

/// The register that word `index` (1..=7) of a foreign system call's message carries.
fn system_call_register(registers: &Registers, index: usize) -> &Cell<u64> {
    match index {
        1 => registers.rax(),
        2 => &registers.rdi,
        3 => &registers.rsi,
        4 => &registers.rdx,
        5 => registers.r10(),
        6 => &registers.r8,
        _ => registers.r9(),
    }
}

/// Takes the words of the answer to a foreign system call, if it is one.
fn receive_answer(thread: ThreadRef, source: Message, tag: MessageTag) {
    match redirect::answer(tag) {
        Some(SystemCallAnswer::Return) => thread.registers.rax().set(source.word(1)),
        Some(SystemCallAnswer::Registers) => {
            set_exception_registers(thread, |index| source.word(index));
            for index in [redirect::FS_BASE, redirect::GS_BASE] {
                redirect::set_base(thread, index, source.word(index));
            }
        }
        Some(SystemCallAnswer::Restart | SystemCallAnswer::Resume) | None => {}
    }
}

/// Sets the registers that an exception message carries; `word` gives its words 1..=18.
pub fn set_exception_registers(thread: ThreadRef, word: impl Fn(usize) -> u64) {
    for (register, index) in exception_registers(&thread.registers).into_iter().zip(1..) {
        let value = word(index);
        register.set(if index == exception::RFLAGS { program_flags(value) } else { value });
    }
    if thread.registers.rflags.get() & STEP_FLAG != 0 {
        breakpoints::steps(thread);
    }
}

/// The flags that a program can change by its own instructions, and the fixed ones. An exception
/// handler or an owner may set them: the direction flag has to survive a recall, and a debugger
/// needs the trap flag.
fn program_flags(value: u64) -> u64 {
    value & x2::control::PROGRAM_FLAGS | USER_FLAGS
}

/// The flags that a user may choose, and the fixed ones.
pub fn user_flags(value: u64) -> u64 {
    value & x2::control::USER_FLAGS | USER_FLAGS
}

/// The registers that words 1..=18 of an exception message carry, in their order:
/// [`exception_register`] of all.
#[inline]
pub fn exception_registers(registers: &Registers) -> [&Cell<u64>; exception::REPLY_WORDS] {
    let Registers { rip, rcx, rdx, rsi, rdi, rbp, r8, r11, rsp, rflags, message, .. } = registers;
    let [r9, rax, rbx, r10, r12, r13, r14, r15] = message;
    [rip, rbx, r10, r12, r13, r14, r15, rax, rcx, rdx, rsi, rdi, rbp, r8, r9, r11, rsp, rflags]
}

/// The register that word `index` (1..=18) of an exception message carries.
pub(super) fn exception_register(registers: &Registers, index: usize) -> &Cell<u64> {
    let message = &registers.message;
    match index {
        exception::RIP => &registers.rip,
        exception::RBX => &message[2],
        exception::R10 => &message[3],
        exception::R12 => &message[4],
        exception::R13 => &message[5],
        exception::R14 => &message[6],
        exception::R15 => &message[7],
        exception::RAX => &message[1],
        exception::RCX => &registers.rcx,
        exception::RDX => &registers.rdx,
        exception::RSI => &registers.rsi,
        exception::RDI => &registers.rdi,
        exception::RBP => &registers.rbp,
        exception::R8 => &registers.r8,
        exception::R9 => &message[0],
        exception::R11 => &registers.r11,
        exception::RSP => &registers.rsp,
        _ => &registers.rflags,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::Tcb;

    #[test]
    fn the_registers_of_an_exception_message_are_the_same_one_by_one_and_together() {
        let thread = Tcb::new();
        let together = exception_registers(&thread.registers);
        for (register, index) in together.into_iter().zip(1..) {
            assert!(core::ptr::eq(register, exception_register(&thread.registers, index)), "word {index}");
        }
    }
}
