//! Accesses to I/O ports: the processor's permission bitmap is filled on demand, and what a program
//! must not access is reported to its pager, which answers with ports (X.2 rule 12.8).
use x2::Rights;

use super::{IpcKind, ThreadRef, fault, user_memory};
use crate::arch::port_instruction::{MAX_LENGTH, PortAccess};
use crate::arch::ports;
use crate::scheduler::Next;
use crate::space::Space;
use crate::trace::{self, Event};
use crate::{config, mapping};

/// The first serial port, which the boot option `legacy-io` opens to every space.
const LEGACY: PortAccess = PortAccess { first: 0x3f8, last: 0x3ff };

/// The current thread has caused a general-protection exception. `None`: not by accessing a port
/// that it may not, or not yet, access.
pub fn general_protection(current: ThreadRef) -> Option<Next> {
    let registers = &current.registers;
    let space = current.space.get()?;
    let mut code = [0; MAX_LENGTH];
    let length = user_memory::read(space, registers.rip.get(), &mut code);
    let access = PortAccess::of(&code[..length], registers.rdx.get() as u16)?;
    let root = space.memory.page_table_root();
    let is_open = |access: PortAccess| (access.first..=access.last).all(|port| ports::is_open(root, port));
    if is_open(access) {
        // The cause was another one, for example the memory operand of a string instruction.
        return None;
    }
    let words = [access.first, access.last].map(|port| usize::from(port / 64));
    for word in words {
        match permitted(space, word) {
            0 => {}
            open => {
                space.uses_ports();
                ports::load(root, word, open);
            }
        }
    }
    if is_open(access) {
        return Some(Next::Return);
    }
    trace::event(Event::PortFault, u64::from(access.first), registers.rip.get());
    current.fault[0].set(access.fpage().raw());
    current.fault[1].set(Rights::READ_WRITE.bits());
    Some(fault::report_fault(current, IpcKind::PortFault))
}

/// Which of the 64 ports from 64 * `word` on programs in `space` may use.
fn permitted(space: &Space, word: usize) -> u64 {
    let legacy = if config::get().legacy_io && word == usize::from(LEGACY.first / 64) {
        (LEGACY.first..=LEGACY.last).fold(0, |ports, port| ports | 1 << (port % 64))
    } else {
        0
    };
    mapping::held_ports(space.memory, word) | legacy
}
