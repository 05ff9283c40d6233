//! Carrying an action out: arguments into registers and UTCB, and into the kernel.

use x2::message::REGISTER_MESSAGE_REGISTERS;
use x2::{Fpage, MapItem, Rights, Timeouts, utcb};

use super::Random;
use super::action::Action;
use crate::arch;
use crate::dispatch::{after_interrupt, timer_interrupt};
use crate::interrupt;
use crate::scheduler::Next;
use crate::syscall::{self, Call};
use crate::thread::tests::Register::{self, *};
use crate::thread::tests::World;
use crate::thread::{ThreadRef, exception, fault};

/// The fpages that `Unmap` and `MemoryControl` are about.
const PAGES: usize = 11;

/// `thread`, which is running, does `action`, one of those that threads do; what the kernel
/// decides.
pub(in super::super) fn perform(world: &World, thread: ThreadRef, action: Action) -> Next {
    match arguments(thread, action) {
        Some((call, arguments)) => world.enter(call, thread, &arguments),
        None => other(thread, action),
    }
}

/// Sets what does not fit into plain argument registers, and returns the system call and those.
pub(super) fn arguments(thread: ThreadRef, action: Action) -> Option<(Call, [(Register, u64); 5])> {
    let resolve = |name: super::Name| name.resolve(thread).raw();
    let none = (Rax, thread.registers.rax().get());
    Some(match action {
        Action::Ipc { to, from, send, receive, tag, virtual_sender, acceptor, words } => {
            let words = Random::new(words | 1);
            let untyped = x2::MessageTag::from_raw(tag).untyped();
            let virtual_sender = resolve(virtual_sender);
            if let Some(block) = thread.utcb.get() {
                block.write(utcb::VIRTUAL_SENDER, virtual_sender);
                block.write(utcb::buffer_register(0), acceptor);
            }
            let mut item = [0; 2];
            for index in 1..64 {
                let first = index % 2 == (untyped + 1) % 2;
                if first {
                    item = map_item(&words);
                }
                let word = item[usize::from(!first)];
                // The types and rights change; addresses stay in the first GiB (sigma0's trees stay
                // for ever).
                let word = if words.one_in(20) { word ^ words.below(16) } else { word };
                set_message_register(thread, index, word);
            }
            let timeouts = Timeouts::new(send.time(), receive.time()).raw();
            let (to, from) = (resolve(to), resolve(from));
            (Call::Ipc, [(R9, tag), (Rsi, to), (Rdx, from), (R8, timeouts), (R9, tag)])
        }
        Action::ExchangeRegisters { dest, control, flags, handle, pager } => {
            let (dest, pager) = (resolve(dest), resolve(pager));
            R10.of(thread).set(handle);
            Rdi.of(thread).set(pager);
            let rest = [(Rsi, control), (Rdx, NEW_SP), (R8, NEW_IP), (R9, flags)];
            (Call::ExchangeRegisters, [(Rax, dest), rest[0], rest[1], rest[2], rest[3]])
        }
        Action::ThreadControl { dest, space, scheduler, pager, location } => {
            let [dest, space, scheduler, pager] = [dest, space, scheduler, pager].map(resolve);
            let ids = [(Rdi, dest), (R8, space), (Rdx, scheduler), (Rsi, pager)];
            (Call::ThreadControl, [ids[0], ids[1], ids[2], ids[3], (R9, location)])
        }
        Action::SpaceControl { space, control, kip, utcbs, redirector } => {
            let (space, redirector) = (resolve(space), resolve(redirector));
            let values = [(Rsi, control), (Rdx, kip), (R8, utcbs), (R9, redirector)];
            (Call::SpaceControl, [(Rdi, space), values[0], values[1], values[2], values[3]])
        }
        Action::Schedule { dest, time, processor, priority, preemption } => {
            let values = [(Rdx, time), (R8, processor), (Rsi, priority), (R9, preemption)];
            (Call::Schedule, [(Rdi, resolve(dest)), values[0], values[1], values[2], values[3]])
        }
        Action::ThreadSwitch { dest } => (Call::ThreadSwitch, [(Rdi, resolve(dest)), none, none, none, none]),
        Action::SystemClock => (Call::SystemClock, [none; 5]),
        Action::Unmap { control, pages } => {
            set_pages(thread, pages, Rights::ALL.bits());
            let none = (Rdx, control);
            (Call::Unmap, [none; 5])
        }
        Action::ProcessorControl { processor } => {
            (Call::ProcessorControl, [(Rdi, processor), none, none, none, none])
        }
        Action::MemoryControl { control, attributes, pages } => {
            set_pages(thread, pages, 3);
            let [first, second, third, fourth] = attributes;
            thread.registers.rbp.set(first);
            let values = [(Rsi, second), (R8, third), (Rdi, fourth)];
            (Call::MemoryControl, [(Rdx, control), values[0], values[1], values[2], values[2]])
        }
        Action::SpaceOptions { space, option, other, value } => {
            let names_space = matches!(option, 1 | 5);
            let (space, other) = (resolve(space), resolve(other));
            let values = if names_space { [other, value] } else { [value, 0] };
            let values = [(Rsi, option), (Rdx, values[0]), (R8, values[1])];
            (Call::SpaceOptions, [(Rdi, space), values[0], values[1], values[2], values[2]])
        }
        Action::MapControl { space, target, control, source } => {
            let values = [(Rsi, target), (Rdx, control), (R8, source)];
            (Call::MapControl, [(Rdi, resolve(space)), values[0], values[1], values[2], values[2]])
        }
        Action::ThreadState { thread: of, control, buffer, size, words } => {
            let of = resolve(of);
            let words = Random::new(words | 1);
            if let Some(block) = thread.utcb.get() {
                for index in 0..=20 {
                    block.write(utcb::message_register(index), words.next() >> words.of(&[8, 8, 8, 0]));
                }
                for index in [21, 22] {
                    let name = super::Name::of_thread(&words);
                    block.write(utcb::message_register(index), name.resolve(thread).raw());
                }
                for index in 23..=26 {
                    block.write(utcb::message_register(index), words.next() >> words.of(&[8, 17, 17, 17]));
                }
                // Watches bytes, or has a bit that no breakpoint has.
                let control = words.next() & words.of(&[0, 0xff, 0xff, 0x1111_00ff, 0x8100_0000_0000]);
                block.write(utcb::message_register(27), control);
            }
            let values = [(Rsi, control), (Rdx, buffer), (R8, size)];
            (Call::ThreadState, [(Rdi, of), values[0], values[1], values[2], values[2]])
        }
        Action::Notify { thread: of, bits } => {
            let bits = (Rsi, bits);
            (Call::Notify, [(Rdi, resolve(of)), bits, bits, bits, bits])
        }
        _ => return None,
    })
}

/// The stack pointer that ExchangeRegisters sets.
pub(super) const NEW_SP: u64 = 0x1000;
/// The instruction pointer that ExchangeRegisters sets.
pub(super) const NEW_IP: u64 = 0x2000;

/// A map or grant item in the memory that is there.
fn map_item(random: &Random) -> [u64; 2] {
    let fpage = Fpage::memory(random.below(1 << 11) << 12 | 0x200_0000, random.of(&[12, 14, 21, 22]));
    let fpage = fpage.with_rights(Rights::ALL);
    MapItem { fpage, send_base: fpage.raw(), grant: random.one_in(5) }.to_words(random.one_in(2))
}

pub(super) fn set_message_register(thread: ThreadRef, index: usize, value: u64) {
    match thread.registers.message.get(index) {
        Some(register) => register.set(value),
        None => {
            thread.utcb.get().inspect(|block| block.write(utcb::message_register(index), value));
        }
    }
}

/// Message register `index` of a system call that takes the first ones in registers.
pub(super) fn message_register(thread: ThreadRef, index: usize) -> u64 {
    match thread.registers.message.get(index) {
        Some(register) => register.get(),
        None => thread.utcb.get().map_or(0, |block| block.read(utcb::message_register(index))),
    }
}

/// Fpages of all sizes in the first message registers, with `low` in their low bits.
fn set_pages(thread: ThreadRef, seed: u64, low: u64) {
    let random = Random::new(seed | 1);
    for index in 0..PAGES.max(REGISTER_MESSAGE_REGISTERS) {
        let size = random.of(&[12, 12, 12, 14, 16, 21, 22, 64]);
        let page = Fpage::memory(random.below(1 << 12) << 12, size).raw();
        let low = if low == Rights::ALL.bits() { low } else { random.below(low + 1) };
        set_message_register(thread, index, page | low);
    }
    for index in PAGES..64 {
        set_message_register(thread, index, 0);
    }
}

/// Does an action that is no system call of the interface.
pub(super) fn other(thread: ThreadRef, action: Action) -> Next {
    match action {
        Action::ForeignCall { offset } => {
            thread.entered_by_syscall.set(true);
            syscall::entered(thread, offset)
        }
        Action::PageFault { address, write } => {
            thread.return_with_all_registers();
            fault::page_fault(thread, address, if write { Rights::WRITE } else { Rights::READ })
        }
        Action::Exception { handler, number } => {
            let handler = handler.resolve(thread);
            if let Some(block) = thread.utcb.get() {
                block.write(utcb::EXCEPTION_HANDLER, handler.raw());
            }
            thread.return_with_all_registers();
            exception::raised(thread, number, 0)
        }
        Action::Timer { microseconds } => {
            arch::set_clock(arch::clock() + microseconds);
            timer_interrupt()
        }
        Action::Device { microseconds, line } => {
            arch::set_clock(arch::clock() + microseconds);
            interrupt::occurred(line);
            after_interrupt()
        }
        // No thread waits, so there is nothing to wait for.
        _ => Next::Return,
    }
}
