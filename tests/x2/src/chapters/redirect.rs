//! Tests of system calls of foreign programs (docs/src/architecture.md, K9;
//! docs/src/reference/extensions.md, "System calls of foreign programs").

use crate::framework::confined;
use crate::framework::fixture::{Space, await_state};
use crate::framework::tests;
use core::arch::asm;
use l4::ipc::{self, Message, Received};
use l4::{extension, thread, utcb};
use x2::ThreadId;
use x2::control::ThreadState;
use x2::extension::{FORWARD, SYSTEM_CALL_LABEL, SystemCallAnswer, SystemCallMode};
use x2::protocol::{self, exception};

tests! {
    RDR0001 [EXT 5.1] "without a mode a foreign system call is exception 6 at the instruction" no_mode;
    RDR0002 [EXT 5.2] "exception mode sends the registers of a system call" call_message;
    RDR0003 [EXT 5.2] "the answer 'return' sets RAX, RCX and R11 and nothing else" answer_return;
    RDR0004 [EXT 5.2] "the answer 'restart' makes the same call once more" answer_restart;
    RDR0005 [EXT 5.2] "the answer 'registers' sets them all" answer_registers;
    RDR0006 [EXT 5.2] "the answer 'resume' goes on with what ThreadState wrote" answer_resume;
    RDR0007 [EXT 5.5] "an answer that is none halts the thread" wrong_answer;
    RDR0008 [EXT 5.3] "bounce mode goes on at the emulation entry, RCX and R11 as SYSCALL leaves them" bounce;
    RDR0009 [EXT 5.3] "the emulation entry can be changed at any time" bounce_elsewhere;
    RDR0010 [EXT 5.4] "the X.2 stubs stay X.2 calls in a space with a mode" stubs;
    RDR0011 [EXT 5.4] "INT n and SYSENTER are exceptions in a space with a mode" other_instructions;
    RDR0012 [EXT 5.5] "a handler that goes away halts the thread" handler_gone;
    RDR0013 [EXT 5.5] "without a handler the thread is halted" no_handler;
    RDR0014 [EXT 5.6] "what the emulation library hands on arrives as in exception mode, and so do the answers" handed_on;
    RDR0015 [EXT 5.6] "flags that a program may not set are not handed on" handed_on_flags;
    RDR0016 [EXT 5.6] "UD2 elsewhere, in other modes, or with a return address that is no user's is exception 6" not_handed_on;
}

/// Executes SYSCALL with `number` and six arguments as a Linux program would. Returns (RAX, RCX
/// minus the address of the next instruction, R11 without the flags that arithmetic changes,
/// whether the other registers kept their values).
fn foreign_call(number: u64, arguments: [u64; 6]) -> [u64; 4] {
    let [mut a, mut b, mut c, mut d, mut e, mut f] = arguments;
    let (result, behind, flags, address): (u64, u64, u64, u64);
    // SAFETY: this test is the handler, and decides what the instruction does.
    unsafe {
        asm!(
            "lea r12, [rip + 2f]",
            "syscall",
            "2:",
            inout("rax") number => result, inout("rdi") a, inout("rsi") b, inout("rdx") c, inout("r10") d,
            inout("r8") e, inout("r9") f, lateout("rcx") behind, lateout("r11") flags, out("r12") address,
        );
    }
    let kept = [a, b, c, d, e, f] == arguments;
    [result, behind.wrapping_sub(address), flags & !0x8d5, u64::from(kept)]
}

const ARGUMENTS: [u64; 6] = [1, 2, 3, 4, 5, 6];

/// Makes a thread in a new owned space with `mode` that runs `body`.
fn program(mode: SystemCallMode, body: impl FnOnce() + 'static) -> (Space, ThreadId) {
    let space = confined::space();
    extension::set_system_call_mode(space.first, mode).unwrap();
    let thread = confined::spawn(&space, body);
    (space, thread)
}

/// Makes a program that makes one call in exception mode and reports the four words of
/// [`foreign_call`].
fn caller() -> ThreadId {
    let me = utcb::my_global_id();
    let body = move || {
        let words = foreign_call(39, ARGUMENTS);
        ipc::send(me, Message::with_words(1, &words)).expect("the owner is in reach");
    };
    program(SystemCallMode::Exception, body).1
}

fn expect_call(received: Received) {
    assert_eq!((received.tag.label(), received.tag.untyped()), (SYSTEM_CALL_LABEL, 7));
    let words: [u64; 7] = core::array::from_fn(|index| received.word(index));
    assert_eq!(words, [39, 1, 2, 3, 4, 5, 6]);
}

fn words(received: Received) -> [u64; 4] {
    core::array::from_fn(|index| received.word(index))
}

fn answer(thread: ThreadId, answer: SystemCallAnswer, words: &[u64]) -> Received {
    ipc::call(thread, Message::with_words(answer as u64, words)).expect("the thread goes on")
}

fn no_mode() {
    let me = utcb::my_global_id();
    let (_space, thread) = program(SystemCallMode::None, move || {
        let words = foreign_call(39, ARGUMENTS);
        ipc::send(me, Message::with_words(1, &words)).expect("the owner is in reach");
    });
    let report = ipc::receive(thread).unwrap();
    assert_eq!(protocol::of(report.tag), protocol::ARCHITECTURE_EXCEPTION);
    assert_eq!(report.word(exception::NUMBER - 1), 6);
    let mut frame: [u64; 18] = core::array::from_fn(|index| report.word(index));
    frame[exception::RIP - 1] += 2;
    frame[exception::RAX - 1] = 5;
    let after = ipc::call(thread, Message::with_words(0, &frame)).unwrap();
    assert_eq!(after.word(0), 5);
}

fn call_message() {
    expect_call(ipc::receive(caller()).unwrap());
}

fn answer_return() {
    let thread = caller();
    expect_call(ipc::receive(thread).unwrap());
    let told = answer(thread, SystemCallAnswer::Return, &[0xffff_ffff_ffff_fff2]);
    // The flags: interrupts were on, bit 1 is fixed.
    assert_eq!(words(told), [0xffff_ffff_ffff_fff2, 0, 0x202, 1]);
}

fn answer_restart() {
    let thread = caller();
    expect_call(ipc::receive(thread).unwrap());
    expect_call(answer(thread, SystemCallAnswer::Restart, &[]));
    assert_eq!(words(answer(thread, SystemCallAnswer::Return, &[8]))[0], 8);
}

fn answer_registers() {
    let thread = caller();
    expect_call(ipc::receive(thread).unwrap());
    let mut registers = extension::read_registers(thread).unwrap();
    registers.set(exception::RAX, 77);
    registers.set(exception::R8, 55);
    registers.set(extension::Registers::FS_BASE, 0x1234_5000);
    // A register with an address that no user may have is refused.
    let gs_base = registers.get(extension::Registers::GS_BASE);
    registers.set(extension::Registers::GS_BASE, 1 << 63);
    let told = answer(thread, SystemCallAnswer::Registers, &registers.0);
    assert_eq!(words(told), [77, 0, 0x202, 0]);
    let registers = extension::read_registers(thread).unwrap();
    assert_eq!(registers.get(extension::Registers::FS_BASE), 0x1234_5000);
    assert_eq!(registers.get(extension::Registers::GS_BASE), gs_base);
}

fn answer_resume() {
    let thread = caller();
    expect_call(ipc::receive(thread).unwrap());
    let mut registers = extension::read_registers(thread).unwrap();
    registers.set(exception::RAX, 66);
    // SAFETY: the program reads RAX as the call's result.
    unsafe { extension::write_registers(thread, &registers) }.unwrap();
    let told = answer(thread, SystemCallAnswer::Resume, &[]);
    assert_eq!(words(told), [66, 0, 0x202, 1]);
}

fn wrong_answer() {
    for (label, count) in [(0, 0), (2, 19), (4, 20), (0xffff_ffff_ffff, 0)] {
        let thread = caller();
        expect_call(ipc::receive(thread).unwrap());
        ipc::send(thread, Message::with_words(label, &[0; 20][..count])).unwrap();
        await_state(thread, ThreadState::Inactive);
        assert!(thread::inspect(thread).unwrap().state.halted);
    }
}

/// An emulation entry that returns with RAX = twice the number, or that plus 1000.
#[unsafe(naked)]
extern "C" fn double_number() -> ! {
    core::arch::naked_asm!("add rax, rax", "jmp rcx")
}

#[unsafe(naked)]
extern "C" fn add_thousand() -> ! {
    core::arch::naked_asm!("add rax, 1000", "jmp rcx")
}

fn bounce() {
    let me = utcb::my_global_id();
    let space = confined::space();
    extension::set_system_call_mode(space.first, SystemCallMode::Bounce).unwrap();
    extension::set_emulation_entry(space.first, double_number as *const () as u64).unwrap();
    let thread = confined::spawn(&space, move || {
        let words = foreign_call(39, ARGUMENTS);
        ipc::send(me, Message::with_words(1, &words)).expect("the owner is in reach");
    });
    assert_eq!(words(ipc::receive(thread).unwrap()), [78, 0, 0x202, 1]);
}

fn bounce_elsewhere() {
    let me = utcb::my_global_id();
    let space = confined::space();
    extension::set_system_call_mode(space.first, SystemCallMode::Bounce).unwrap();
    extension::set_emulation_entry(space.first, double_number as *const () as u64).unwrap();
    let thread = confined::spawn(&space, move || {
        for _ in 0..2 {
            let words = foreign_call(1, ARGUMENTS);
            ipc::call(me, Message::with_words(1, &words)).expect("the owner is in reach");
        }
    });
    assert_eq!(words(ipc::receive(thread).unwrap())[0], 2);
    extension::set_emulation_entry(space.first, add_thousand as *const () as u64).unwrap();
    assert_eq!(words(ipc::call(thread, Message::new(0)).unwrap())[0], 1001);
}

/// An emulation entry that passes every call on to the handler.
#[unsafe(naked)]
extern "C" fn hand_on() -> ! {
    core::arch::naked_asm!(".fill 16, 1, 0x90", "ud2")
}

/// An emulation entry that passes every call on, with the call's first two arguments as R11 and
/// RCX.
#[unsafe(naked)]
extern "C" fn hand_on_wrongly() -> ! {
    core::arch::naked_asm!("mov r11, rdi", "mov rcx, rsi", ".fill 10, 1, 0x90", "ud2")
}

/// Makes a thread in a space with this emulation entry that runs `body`.
fn bounced(entry: extern "C" fn() -> !, body: impl FnOnce() + 'static) -> (Space, ThreadId) {
    let space = confined::space();
    extension::set_system_call_mode(space.first, SystemCallMode::Bounce).unwrap();
    extension::set_emulation_entry(space.first, entry as *const () as u64).unwrap();
    let thread = confined::spawn(&space, body);
    (space, thread)
}

fn handed_on() {
    let me = utcb::my_global_id();
    let caller = move || {
        bounced(hand_on, move || {
            let words = foreign_call(39, ARGUMENTS);
            ipc::send(me, Message::with_words(1, &words)).expect("the owner is in reach");
        })
    };
    let (_space, thread) = caller();
    expect_call(ipc::receive(thread).unwrap());
    // ThreadState shows the system call, not the emulation library that passed it on: RIP and RCX
    // are the address in the program.
    let registers = extension::read_registers(thread).unwrap();
    assert_eq!((registers.get(exception::RAX), registers.get(exception::R9)), (39, 6));
    assert_eq!(registers.rip(), registers.get(exception::RCX));
    assert_eq!(registers.get(exception::RFLAGS), registers.get(exception::R11));
    assert_ne!(registers.rip().wrapping_sub(hand_on as *const () as u64), FORWARD);
    expect_call(answer(thread, SystemCallAnswer::Restart, &[]));
    let told = answer(thread, SystemCallAnswer::Return, &[0xffff_ffff_ffff_fff2]);
    assert_eq!(words(told), [0xffff_ffff_ffff_fff2, 0, 0x202, 1]);
    let (_space, thread) = caller();
    expect_call(ipc::receive(thread).unwrap());
    let mut registers = extension::read_registers(thread).unwrap();
    registers.set(exception::RAX, 66);
    // SAFETY: the program reads RAX as the call's result.
    unsafe { extension::write_registers(thread, &registers) }.unwrap();
    assert_eq!(words(answer(thread, SystemCallAnswer::Resume, &[])), [66, 0, 0x202, 1]);
}

/// Makes a program whose emulation library passes its calls on with these flags and this address.
fn wrong_caller(flags: u64, behind: u64) -> (Space, ThreadId) {
    bounced(hand_on_wrongly, move || {
        foreign_call(39, [flags, behind, 3, 4, 5, 6]);
    })
}

fn handed_on_flags() {
    let (_space, thread) = wrong_caller(u64::MAX, 0x1000);
    assert_eq!(ipc::receive(thread).unwrap().tag.label(), SYSTEM_CALL_LABEL);
    let registers = extension::read_registers(thread).unwrap();
    assert_eq!(registers.rip(), 0x1000);
    assert_eq!(registers.get(exception::RFLAGS), x2::control::USER_FLAGS | 0x202);
}

fn not_handed_on() {
    let expect_exception = |thread: ThreadId| {
        let report = ipc::receive(thread).unwrap();
        assert_eq!(protocol::of(report.tag), protocol::ARCHITECTURE_EXCEPTION);
        assert_eq!(report.word(exception::NUMBER - 1), 6);
    };
    for behind in [1 << 47, 1 << 63, u64::MAX] {
        let (_space, thread) = wrong_caller(0, behind);
        expect_exception(thread);
    }
    // SAFETY: the instruction raises an exception whose handler does not resume the thread.
    let (_space, thread) = bounced(hand_on, || unsafe { asm!("ud2") });
    expect_exception(thread);
    for mode in [SystemCallMode::None, SystemCallMode::Exception] {
        let space = confined::space();
        extension::set_system_call_mode(space.first, mode).unwrap();
        extension::set_emulation_entry(space.first, hand_on as *const () as u64).unwrap();
        let thread = confined::spawn(&space, || hand_on());
        expect_exception(thread);
    }
}

fn stubs() {
    let me = utcb::my_global_id();
    for mode in [SystemCallMode::Exception, SystemCallMode::Bounce] {
        let (_space, thread) = program(mode, move || {
            let clock = thread::system_clock();
            ipc::send(me, Message::with_words(1, &[clock])).expect("the owner is in reach");
        });
        let told = ipc::receive(thread).unwrap();
        assert_eq!(told.tag.label(), 1);
        assert!(told.word(0) <= thread::system_clock());
    }
}

fn other_instructions() {
    // SAFETY: each instruction raises an exception whose handler does not resume the thread.
    let (_space, thread) = program(SystemCallMode::Exception, || unsafe { asm!("int 0x80") });
    assert_eq!(ipc::receive(thread).unwrap().word(exception::NUMBER - 1), 13);
    // SAFETY: the instruction raises an exception whose handler does not resume the thread.
    let (_space, thread) = program(SystemCallMode::Bounce, || unsafe { asm!("sysenter") });
    let number = ipc::receive(thread).unwrap().word(exception::NUMBER - 1);
    assert!(number == 6 || number == 13, "exception {number}");
}

fn handler_gone() {
    let me = utcb::my_global_id();
    let handler = crate::framework::fixture::spawn(move || {
        let _ = ipc::receive(me);
    });
    let space = confined::space();
    extension::set_system_call_mode(space.first, SystemCallMode::Exception).unwrap();
    let thread = confined::spawn(&space, move || {
        ipc::receive(me).expect("the test says when");
        foreign_call(39, ARGUMENTS);
    });
    extension::set_handlers(thread, Some(handler), None).unwrap();
    ipc::send(thread, Message::new(0)).unwrap();
    while !extension::state(thread).unwrap().awaits_answer() {
        thread::yield_now();
    }
    thread::delete(handler).unwrap();
    await_state(thread, ThreadState::Inactive);
}

fn no_handler() {
    let me = utcb::my_global_id();
    let (_space, thread) = program(SystemCallMode::Exception, move || {
        ipc::receive(me).expect("the test says when");
        foreign_call(39, ARGUMENTS);
    });
    extension::set_handlers(thread, Some(ThreadId::NIL), None).unwrap();
    ipc::send(thread, Message::new(0)).unwrap();
    await_state(thread, ThreadState::Inactive);
}
