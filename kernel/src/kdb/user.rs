//! What user programs ask of the kernel debugger with INT3 (ABI 15.1): console output and input,
//! and messages.

use core::ptr::from_ref;

use x2::kdebug;

use super::{break_key, breakpoints};
use crate::mapping::inspect;
use crate::memory::{self, Use, VirtAddr};
use crate::scheduler::Next;
use crate::space::{self, Space};
use crate::thread::table::threads;
use crate::thread::{ThreadRef, exception, lifecycle, user_memory};
use crate::{arch, config, console, kip, mapping, processor, screen};

/// The opcode of `cmpb $operation, %al`, which names an operation of INT3.
const COMPARE_AL: u8 = 0x3c;
/// The opcode of `jmp`, which skips a message after INT3.
const JUMP: u8 = 0xeb;
/// The opcode of NOP, which after INT3 stands for no operation.
const NOP: u8 = 0x90;
const BREAKPOINT: u64 = 3;
/// The longest string that one operation prints.
const LONGEST: usize = 256;

/// The current thread has executed INT3; its RIP points to the next instruction. The thread may use
/// the debugger.
pub fn breakpoint(current: ThreadRef) -> Next {
    let registers = &current.registers;
    let Some(space) = current.space.get() else { return Next::Return };
    let mut code = [0; 2];
    let length = user_memory::read(space, registers.rip.get(), &mut code);
    match (code[0], code[1]) {
        (COMPARE_AL, kdebug::PRINT_CHARACTER) if length == 2 => {
            console::write_bytes(&[registers.rax().get() as u8]);
        }
        (COMPARE_AL, kdebug::PRINT_STRING) if length == 2 => print_string(space, registers.rax().get()),
        (COMPARE_AL, kdebug::READ_CHARACTER_NONBLOCKING) if length == 2 => {
            registers.rax().set(console::read_byte().map_or(u64::MAX, u64::from));
        }
        (COMPARE_AL, kdebug::READ_CHARACTER) if length == 2 => match console::read_byte() {
            Some(byte) => registers.rax().set(u64::from(byte)),
            None => {
                // The thread executes the instruction again after the others had their turn: the
                // kernel never waits.
                registers.rip.set(registers.rip.get() - 1);
                return processor::this().scheduler.yield_current(current);
            }
        },
        (COMPARE_AL, kdebug::TOGGLE_BREAK_IN) if length == 2 => break_key::toggle(),
        (COMPARE_AL, kdebug::READ_STATISTIC) if length == 2 && may_test(space) => {
            registers.rax().set(statistic(registers.rax().get()).map_or(u64::MAX, u64::from));
        }
        (COMPARE_AL, kdebug::FAIL_ALLOCATION) if length == 2 && may_test(space) => {
            let pending = memory::injection::cancel();
            // The spare tables are given back first, so that none of them serves the allocation
            // that is to fail.
            mapping::give_back();
            memory::injection::fail_nth(registers.rax().get());
            registers.rax().set(pending.into());
        }
        (COMPARE_AL, kdebug::LEAVE_SCREEN) if length == 2 && space.is_privileged() => screen::leave(),
        (JUMP, _) if length == 2 => {
            message(space, registers.rip.get() + 2);
            if config::get().enter_kdb {
                breakpoints::stop_thread(current);
            }
        }
        (NOP, _) if length >= 1 => {}
        _ => return exception::report_exception(current, BREAKPOINT, 0),
    }
    Next::Return
}

/// The operations that tests use tell of the whole system and disturb it.
fn may_test(space: &Space) -> bool {
    config::get().test_kdb && space.is_privileged()
}

/// What the kernel has in use now, for leak checks, and what else tests ask.
fn statistic(which: u64) -> Option<u32> {
    let frames = memory::statistics();
    Some(match which {
        kdebug::statistic::FRAMES => frames.of(Use::PageTables) + frames.of(Use::UserVisible),
        kdebug::statistic::THREADS => lifecycle::threads_in_use(),
        kdebug::statistic::SPACES => space::spaces_in_use(),
        kdebug::statistic::MAP_NODES => {
            let (nodes, arrays) = mapping::usage();
            nodes + arrays
        }
        kdebug::statistic::MEMORY => (frames.total - frames.of(Use::Free)) * memory::PAGE_SIZE as u32,
        kdebug::statistic::FLAGS => arch::flags() as u32,
        _ => return node_of(which).map(u32::from),
    })
}

/// The node of an object's memory, asked as [`kdebug::statistic::of_node`] says.
fn node_of(which: u64) -> Option<u8> {
    let thread = threads().by_number((which >> 8) as u32 & ((1 << kip::THREAD_NUMBER_BITS) - 1))?;
    let object = match which & 0xff {
        kdebug::statistic::NODE_OF_THREAD => arch::virt_to_phys(from_ref(thread.anywhere())),
        kdebug::statistic::NODE_OF_SPACE => arch::virt_to_phys(thread.space()?),
        kdebug::statistic::NODE_OF_TABLE => {
            inspect::table(thread.space()?.memory, VirtAddr::new(which >> 26 << 12))
        }
        _ => return None,
    };
    Some(memory::node::of(object))
}

/// `mov $message, %rax` or `mov $message, %eax` at `address`, where the jump leads.
fn message(space: &Space, address: u64) {
    let mut code = [0; 7];
    let length = user_memory::read(space, address, &mut code);
    let text = match code {
        [0x48, 0xc7, 0xc0, a, b, c, d] if length == 7 => i32::from_le_bytes([a, b, c, d]) as u64,
        [0xb8, a, b, c, d, ..] if length >= 5 => u64::from(u32::from_le_bytes([a, b, c, d])),
        _ => return,
    };
    console::write_bytes(b"--- \"");
    print_string(space, text);
    console::write_bytes(b"\" ---\n");
}

fn print_string(space: &Space, address: u64) {
    let mut buffer = [0; LONGEST];
    let length = user_memory::read(space, address, &mut buffer);
    let text = buffer[..length].split(|&byte| byte == 0).next().unwrap_or(&[]);
    console::write_bytes(text);
}
