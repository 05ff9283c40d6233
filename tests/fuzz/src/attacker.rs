//! A hostile thread: makes calls for ever, and counts their results.

use crate::choose::Chooser;
use crate::invoke::{Registers, invoke};
use crate::kind::{COLUMNS, Kind};
use crate::layout::{self, STACK, Slot};
use crate::random::Random;
use core::arch::{asm, naked_asm};
use l4::{kip, utcb};

/// The first instructions of each attacker, and those after an exception. Like `layout::slot_of`,
/// they find the thread's stack by the place of its UTCB.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn entry() -> ! {
    naked_asm!(
        "mov rax, gs:[0]",
        "mov rcx, rax",
        "shr rcx, 28",
        "and ecx, 3",
        "shl ecx, 4",
        "shr rax, 10",
        "and eax, 15",
        "lea rcx, [rcx + rax + 1]",
        "imul rcx, rcx, {stack}",
        "lea rsp, [rip + {stacks}]",
        "add rsp, rcx",
        "push 0",
        "popfq",
        "xor ebp, ebp",
        "push rbp",
        "call {run}",
        "ud2",
        stack = const STACK,
        stacks = sym layout::STACKS,
        run = sym run,
    )
}

extern "C" fn run() -> ! {
    let slot = &layout::slots()[layout::slot_of(utcb::pointer())];
    let random = Random::new(&slot.state);
    loop {
        utcb::set_exception_handler(kip().root());
        let items = layout::pool().start + random.below(layout::POOL_PAGES) * 4096 + random.below(8) * 512;
        let chooser = Chooser { random, is_controller: false, items: Some(items), buffer: layout::buffer() };
        step(chooser, slot);
    }
}

/// Makes one call, or does something else that a program should not do.
pub(crate) fn step(chooser: Chooser<'_>, slot: &Slot) {
    let kind = chooser.kind();
    let random = chooser.random;
    let target = match kind {
        Kind::ForeignCall => foreign_call as *const () as u64,
        Kind::Interrupt => interrupt as *const () as u64 + random.below(INTERRUPTS) * 4,
        Kind::Instruction => {
            slot.begin(kind);
            return instruction(random);
        }
        Kind::Fault => {
            slot.begin(kind);
            // SAFETY: the byte, if it is mapped, belongs to no Rust object.
            unsafe { asm!("mov al, [{}]", in(reg) random.word() >> random.below(64), out("al") _) };
            return;
        }
        Kind::Port => {
            slot.begin(kind);
            // SAFETY: no attacker has an I/O port.
            unsafe { asm!("in al, dx", in("dx") random.word() as u16, out("al") _) };
            return;
        }
        Kind::InsideStub => kip().word(0x1a0 + 8 * random.below(15) as usize) + random.below(16),
        _ => return call(kind, chooser.prepare(kind), slot),
    };
    call_at(target, kind, chooser.prepare(kind), slot);
}

/// Makes a system call.
pub(crate) fn call(kind: Kind, registers: Registers, slot: &Slot) {
    call_at(kip().word(kind.entry()), kind, registers, slot);
}

fn call_at(target: u64, kind: Kind, mut registers: Registers, slot: &Slot) {
    slot.begin(kind);
    // SAFETY: the supervisor repairs effects on this thread; the controller names only threads,
    // spaces and memory of attackers.
    unsafe { invoke(&mut registers, target) };
    slot.end(kind, column(kind, &registers));
}

/// The column in which the result of a call is counted.
fn column(kind: Kind, registers: &Registers) -> usize {
    const ERROR: u64 = 1 << 15;
    let good = match kind {
        Kind::Ipc | Kind::Lipc => registers.r9 & ERROR == 0,
        Kind::SystemClock | Kind::ThreadSwitch | Kind::Unmap => true,
        Kind::MemoryControl => registers.rdx != 0,
        _ => registers.rax != 0,
    };
    let error = utcb::error_word();
    match kind {
        _ if good => 0,
        Kind::Ipc | Kind::Lipc if error & 0xe != 0 => (error & 0xf) as usize,
        Kind::Ipc | Kind::Lipc => COLUMNS - 1,
        _ if (1..=8).contains(&error) => error as usize,
        _ => COLUMNS - 1,
    }
}

/// Makes a system call that belongs to no interface.
#[unsafe(naked)]
unsafe extern "C" fn foreign_call() {
    naked_asm!("syscall", "ret")
}

const INTERRUPTS: u64 = 256;

/// `int n; ret` for each n, four bytes each.
#[unsafe(naked)]
unsafe extern "C" fn interrupt() {
    naked_asm!(".set n, 0", ".rept 256", ".byte 0xcd", ".byte n", "ret", "nop", ".set n, n + 1", ".endr")
}

/// Executes an instruction that a program may not execute, or that is undefined.
fn instruction(random: Random<'_>) {
    // SAFETY: each instruction raises an exception, or changes only registers of this thread.
    unsafe {
        match random.below(10) {
            0 => asm!("ud2"),
            1 => asm!("cli"),
            2 => asm!("hlt"),
            3 => asm!("mov cr3, {}", in(reg) random.word()),
            4 => asm!("wrmsr", in("ecx") 0xc000_0082u32, in("eax") 0, in("edx") 0),
            5 => asm!("lock", "nop", out("rax") _, out("rcx") _, out("rdx") _, out("rsi") _),
            6 => asm!("int3", "cmp al, 0", in("al") 0u8),
            7 => asm!("pushfq", "or dword ptr [rsp], 0x100", "popfq", "nop"),
            8 => asm!("div {}", in(reg) 0u64, inout("rax") 1u64 => _, inout("rdx") 0u64 => _),
            _ => asm!("fninit", "movups xmm0, [{}]", in(reg) random.word() >> 20, out("xmm0") _),
        }
    }
}
