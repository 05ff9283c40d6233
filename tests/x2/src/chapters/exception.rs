//! Tests of exceptions, and of registers across them (ABI 13; X.2 rules 11.1-11.7).

use crate::framework::fixture::{Space, await_state, image_fault_answer, spawn};
use crate::framework::{arena, tests};
use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message, Received};
use l4::thread;
use l4::{kip, utcb};
use x2::control::ThreadState;
use x2::protocol;
use x2::protocol::exception::{self, NUMBER, RAX, RBX, RFLAGS, RIP, RSP, TAG};
use x2::{Fpage, IpcErrorKind, MapItem, Rights, ThreadId, Time};

tests! {
    EXC0001 [11.1, 11.2, 11.3, ABI 13] "an invalid instruction sends the whole frame to the handler" frame;
    EXC0002 [11.5, ABI 19.1] "the reply sets every register" reply_sets_registers;
    EXC0003 [11.5, ABI 19.13] "the reply cannot set flags that are not the user's" reply_masks_flags;
    EXC0004 [11.4] "division by zero, non-canonical addresses, INT and single steps have their vectors" vectors;
    EXC0005 [5.34] "without a handler the thread is halted" no_handler;
    EXC0006 [11.5] "a reply that is too short halts the thread" short_reply;
    EXC0007 [11.6] "the message registers are what they were" message_registers_survive;
    EXC0008 [11.5, ABI 19.13] "a non-canonical instruction pointer harms only its thread" non_canonical_ip;
    EXC0009 [11.4, ABI 19.6] "CLI, STI, HLT and privileged registers are refused" privileged_instructions;
    EXC0011 [11.1, 11.4] "every exception that a program can raise here has its vector and instruction pointer" all_vectors;
    EXC0012 [5.31a] "an aborted exception message goes on at the instruction, which raises it again" aborted;
    EXC0013 [11.1, 11.4] "an IRET that asks for virtual-8086 mode ends in a message of its thread, whatever code there does" virtual_8086_mode;
    EXC0010 [5.34, 5.15] "deleting a handler that owes the reply halts the thread" handler_deleted;
}

/// A thread that runs `code` with this thread as exception handler; returns its first exception.
fn exception_of(code: extern "C" fn() -> !) -> Received {
    let me = utcb::my_global_id();
    let thread = spawn(move || {
        utcb::set_exception_handler(me);
        code()
    });
    let received = ipc::receive(thread).expect("an exception");
    assert_eq!(received.tag, TAG);
    received
}

fn register(received: &Received, index: usize) -> u64 {
    received.word(index - 1)
}

#[unsafe(naked)]
extern "C" fn fill_registers() -> ! {
    naked_asm!(
        "mov eax, 0x101",
        "mov ebx, 0x102",
        "mov ecx, 0x103",
        "mov edx, 0x104",
        "mov esi, 0x105",
        "mov edi, 0x106",
        "mov ebp, 0x107",
        "mov r8d, 0x108",
        "mov r9d, 0x109",
        "mov r10d, 0x10a",
        "mov r11d, 0x10b",
        "mov r12d, 0x10c",
        "mov r13d, 0x10d",
        "mov r14d, 0x10e",
        "mov r15d, 0x10f",
        "cmp eax, eax",
        "ud2",
    )
}

fn frame() {
    let received = exception_of(fill_registers);
    let expected = [
        (RBX, 0x102),
        (exception::R10, 0x10a),
        (exception::R12, 0x10c),
        (exception::R13, 0x10d),
        (exception::R14, 0x10e),
        (exception::R15, 0x10f),
        (RAX, 0x101),
        (exception::RCX, 0x103),
        (exception::RDX, 0x104),
        (exception::RSI, 0x105),
        (exception::RDI, 0x106),
        (exception::RBP, 0x107),
        (exception::R8, 0x108),
        (exception::R9, 0x109),
        (exception::R11, 0x10b),
        (NUMBER, 6),
    ];
    for (index, value) in expected {
        assert_eq!(register(&received, index), value, "MR{index}");
    }
    // SAFETY: the pointer is to the instruction that raised the exception.
    let instruction = unsafe { (register(&received, RIP) as *const [u8; 2]).read_volatile() };
    assert_eq!(instruction, [0x0f, 0x0b]);
    assert!(crate::framework::image::range().contains(&register(&received, RSP)));
    assert_eq!(
        register(&received, RFLAGS) & x2::control::USER_FLAGS,
        1 << 6 | 1 << 2,
        "of comparing equal numbers"
    );
}

/// The differences that `check_registers` found: bits in which registers differ from those of the
/// reply.
static DIFFERENCES: AtomicU64 = AtomicU64::new(0);

#[unsafe(naked)]
extern "C" fn check_registers() -> ! {
    naked_asm!(
        "pushfq",
        "sub rax, 0x201", "sub rbx, 0x202", "sub rcx, 0x203", "sub rdx, 0x204", "sub rsi, 0x205", "sub rdi, 0x206",
        "sub rbp, 0x207", "sub r8, 0x208", "sub r9, 0x209", "sub r10, 0x20a", "sub r11, 0x20b", "sub r12, 0x20c",
        "sub r13, 0x20d", "sub r14, 0x20e", "sub r15, 0x20f",
        "or rax, rbx", "or rax, rcx", "or rax, rdx", "or rax, rsi", "or rax, rdi", "or rax, rbp", "or rax, r8",
        "or rax, r9", "or rax, r10", "or rax, r11", "or rax, r12", "or rax, r13", "or rax, r14", "or rax, r15",
        "pop rbx", "mov [rip + {differences}], rax", "ud2",
        differences = sym DIFFERENCES,
    )
}

/// A reply that resumes the thread at `ip` with the registers of `check_registers`.
fn reply(received: &Received, ip: u64, flags: u64) -> Message {
    let sp = register(received, RSP);
    let words = [
        ip, 0x202, 0x20a, 0x20c, 0x20d, 0x20e, 0x20f, 0x201, 0x203, 0x204, 0x205, 0x206, 0x207, 0x208, 0x209,
        0x20b, sp, flags, 0xdead,
    ];
    Message::with_words(0, &words)
}

fn reply_sets_registers() {
    let received = exception_of(fill_registers);
    DIFFERENCES.store(u64::MAX, Ordering::Relaxed);
    let message = reply(&received, check_registers as *const () as u64, 0x8d5);
    let second = ipc::call(received.from, message).expect("the next exception");
    assert_eq!(DIFFERENCES.load(Ordering::Relaxed), 0);
    assert_eq!(register(&second, RBX) & x2::control::USER_FLAGS, 0x8d5, "the flags of the reply");
    assert_eq!(register(&second, RSP), register(&received, RSP));
}

fn reply_masks_flags() {
    let received = exception_of(fill_registers);
    let message = reply(&received, check_registers as *const () as u64, !(1 << 8));
    let second = ipc::call(received.from, message).expect("the next exception");
    let flags = register(&second, RBX);
    // The flags: interrupts on, I/O privilege 0, nothing nested or virtual. The direction flag and
    // that of alignment checks a program can set itself.
    assert_eq!(flags & 0x1f_7600, 1 << 9 | 1 << 10 | 1 << 18, "flags {flags:#x}");
}

macro_rules! code {
    ($($name:ident: $($line:literal),+;)*) => {
        $(#[unsafe(naked)]
        extern "C" fn $name() -> ! {
            naked_asm!($($line),+, "ud2")
        })*
    };
}

code! {
    divide: "xor ecx, ecx", "mov eax, 1", "xor edx, edx", "div ecx";
    general_protection: "mov rax, 0x8000000000000000", "mov rax, [rax]";
    stack_fault: "mov rsp, 0x8000000000000000", "push rax";
    software_interrupt: "int 0x80";
    clear_interrupts: "cli";
    set_interrupts: "sti";
    halt: "hlt";
    read_model_specific: "mov ecx, 0xc0000080", "rdmsr";
    load_control: "mov rax, cr3";
    single_step: "pushfq", "or qword ptr [rsp], 0x100", "popfq", "nop";
}

fn vectors() {
    for (code, vector) in [
        (divide as extern "C" fn() -> !, 0),
        (general_protection, 13),
        (software_interrupt, 13),
        (single_step, 1),
    ] {
        assert_eq!(register(&exception_of(code), NUMBER), vector);
    }
    // The emulator reports 13 where a processor reports 12.
    assert!(matches!(register(&exception_of(stack_fault), NUMBER), 12 | 13));
}

fn no_handler() {
    for handler in [ThreadId::NIL, crate::framework::fixture::new_id()] {
        let thread = spawn(move || {
            utcb::set_exception_handler(handler);
            fill_registers()
        });
        await_state(thread, ThreadState::Inactive);
        assert!(thread::inspect(thread).unwrap().state.halted);
    }
}

fn short_reply() {
    let received = exception_of(fill_registers);
    ipc::send(received.from, Message::with_words(0, &[0; 17])).expect("it waits for the reply");
    await_state(received.from, ThreadState::Inactive);
}

fn message_registers_survive() {
    let me = utcb::my_global_id();
    let thread = spawn(move || {
        utcb::set_exception_handler(me);
        (0..64).for_each(|index| utcb::set_message_register(index, 0x9000 + index as u64));
        utcb::set_error_word(0x44);
        // SAFETY: the handler skips the two bytes.
        unsafe { core::arch::asm!("ud2") };
        (0..64).for_each(|index| assert_eq!(utcb::message_register(index), 0x9000 + index as u64));
        assert_eq!(utcb::error_word(), 0x44);
        ipc::send(me, Message::new(1)).unwrap();
    });
    let received = ipc::receive(thread).expect("an exception");
    let words: [u64; 19] =
        core::array::from_fn(|index| received.word(index) + if index == 0 { 2 } else { 0 });
    assert_eq!(ipc::call(thread, Message::with_words(0, &words)).unwrap().tag.label(), 1);
}

fn non_canonical_ip() {
    let received = exception_of(fill_registers);
    let message = reply(&received, 0x8000_0000_0000, 0);
    // Whatever this thread does now, other threads continue.
    ipc::send(received.from, message).expect("it waits for the reply");
    let other = exception_of(fill_registers);
    assert_eq!(register(&other, NUMBER), 6);
    // Makes a system call that would return to an address that is not canonical.
    let me = utcb::my_global_id();
    let thread = spawn(move || {
        utcb::set_exception_handler(me);
        // SAFETY: the return address is not canonical, so the thread does not continue here.
        unsafe {
            core::arch::asm!(
                "mov rax, 0x800000000000", "push rax", "xor edi, edi", "jmp [{entry}]",
                entry = in(reg) kip().base() + x2::kip::THREAD_SWITCH as u64, options(noreturn)
            )
        }
    });
    let received = ipc::receive(thread).expect("an exception");
    assert_eq!(register(&received, NUMBER), 13);
}

fn privileged_instructions() {
    for code in
        [clear_interrupts as extern "C" fn() -> !, set_interrupts, halt, read_model_specific, load_control]
    {
        assert_eq!(register(&exception_of(code), NUMBER), 13);
    }
}

fn handler_deleted() {
    let handler = spawn(|| {
        let _ = ipc::wait();
        l4::start::halt()
    });
    let thread = spawn(move || {
        utcb::set_exception_handler(handler);
        fill_registers()
    });
    while !thread::inspect(thread).unwrap().state.receiving {
        thread::yield_now();
    }
    thread::delete(handler).unwrap();
    await_state(thread, ThreadState::Inactive);
    assert_eq!(ipc::send(handler, Message::new(0)).unwrap_err().kind, IpcErrorKind::NonExistingPartner);
}

code! {
    x87_error: "fninit", "push 0x37b", "fldcw [rsp]", "fld1", "fldz", "fdivp", "2:", "fwait";
    breakpoint: "int3";
    breakpoint_by_number: ".byte 0xcd, 3";
    overflow_by_number: "int 4";
    debug_trap: ".byte 0xf1";
    task_selector: "mov eax, 0x38", "mov ds, eax";
    kernel_selector: "mov eax, 0x10", "mov es, eax";
    wide_jump: "mov rax, 0x7fffffffffff", "push rax", "mov rax, 0x900000000000", "mov [rsp], rax", "ret";
    system_register: "mov eax, 1", "mov cr8, rax";
    debug_register: "mov rax, dr7";
    wrmsr: "mov ecx, 0xc0000082", "wrmsr";
    swap_gs: "swapgs";
    system_return: "sysretq";
    interrupt_return: "push 0x10", "push 0", "push 2", "push 8", "push 0", "iretq";
    load_table: "sub rsp, 16", "lgdt [rsp]";
    lock_prefix: ".byte 0xf0", "mov rax, rbx";
    undefined: ".byte 0x0f, 0xff";
    legacy: ".byte 0x06";
    old_entry: "sysenter";
}

/// Which instruction the pointer in the frame is at: the one that raised the exception, or, for
/// traps, the next.
fn all_vectors() {
    for (code, vector, trap_length) in [
        (x87_error as extern "C" fn() -> !, 16, None),
        (breakpoint, 3, Some(1)),
        (breakpoint_by_number, 3, Some(2)),
        (overflow_by_number, 13, None),
        (task_selector, 13, None),
        (kernel_selector, 13, None),
        (system_register, 13, None),
        (debug_register, 13, None),
        (wrmsr, 13, None),
        (swap_gs, 13, None),
        (system_return, 13, None),
        (interrupt_return, 13, None),
        (load_table, 13, None),
        (lock_prefix, 6, None),
        (undefined, 6, None),
        (legacy, 6, None),
    ] {
        let received = exception_of(code);
        let (number, ip) = (register(&received, NUMBER), register(&received, RIP));
        let begin = code as *const () as u64;
        assert_eq!(number, vector, "at {:#x} behind {begin:#x}", ip - begin);
        match trap_length {
            Some(length) => assert_eq!(ip, begin + length, "behind the instruction"),
            None => assert!(ip >= begin && ip < begin + 32, "at {ip:#x}, the code is at {begin:#x}"),
        }
    }
    // If the emulator and processors differ in the vector, the thread must get an exception in
    // either case.
    for code in [wide_jump as extern "C" fn() -> !, old_entry, debug_trap] {
        assert!(matches!(register(&exception_of(code), NUMBER), 1 | 6 | 13));
    }
}

fn aborted() {
    let received = exception_of(fill_registers);
    let ip = register(&received, RIP);
    thread::abort_ipc(received.from).expect("its thread is of this space");
    let again = ipc::receive(received.from).expect("the exception again");
    assert_eq!((again.tag, register(&again, RIP), register(&again, RBX)), (TAG, ip, 0x102));
}

/// Code for virtual-8086 mode, from the first byte of a page. Each ends in its own way.
const OLD_CODE: [&[u8]; 6] = [
    LOOP,
    &[0xf4],             // HLT
    &[0x0f, 0x0b],       // UD2
    &[0xcd, 0x80],       // INT 0x80
    &[0x0f, 0x05],       // SYSCALL
    &[0x9c, 0x9d, 0xcc], // PUSHF, POPF, INT3
];
/// A loop that is left only by timer interrupts.
const LOOP: &[u8] = &[0xeb, 0xfe];
/// Code segments with all privilege levels in the lowest bits. With [`OLD_IP`] the code of each
/// begins in one of the pages that [`last_message`] maps.
const OLD_SEGMENTS: [u64; 6] = [0, 8, 0x10, 0x29, 0x2b, 0x100];
const OLD_IP: u64 = 0x1000;
/// The flags VM and IF of the frame.
const VIRTUAL_8086: u64 = 1 << 17 | 1 << 9;

/// Executes IRETD to segment RDI at [`OLD_IP`], with zeros for the other registers in the frame.
#[unsafe(naked)]
extern "C" fn iret_to_virtual_8086(segment: u64) -> ! {
    naked_asm!(
        "sub rsp, 64",
        "mov dword ptr [rsp], {ip}",
        "mov [rsp + 4], edi",
        "mov dword ptr [rsp + 8], {flags}",
        "mov dword ptr [rsp + 12], 0x2000",
        "mov dword ptr [rsp + 16], 0",
        "mov dword ptr [rsp + 20], 0",
        "mov dword ptr [rsp + 24], 0",
        "mov dword ptr [rsp + 28], 0",
        "mov dword ptr [rsp + 32], 0",
        "iretd",
        ip = const OLD_IP,
        flags = const VIRTUAL_8086,
    )
}

/// Processors refuse such a frame. QEMU's translator switches to virtual-8086 mode instead; the
/// rules checked here must hold in that mode, too.
fn virtual_8086_mode() {
    let me = utcb::my_global_id();
    for code in OLD_CODE {
        let page = arena::page();
        // SAFETY: only this test uses the page.
        unsafe { core::ptr::copy_nonoverlapping(code.as_ptr(), page.address as *mut u8, code.len()) };
        for segment in OLD_SEGMENTS {
            let thread = Space::new().spawn_paged_by(me, move || {
                utcb::set_exception_handler(me);
                iret_to_virtual_8086(segment)
            });
            // Only the loop may run without an end. For the others a busy host may take its time.
            let limit = if code == LOOP { Time::period(20_000) } else { Time::NEVER };
            let end = last_message(thread, page.fpage(Rights::ALL), limit);
            assert!(end || code == LOOP, "segment {segment:#x}, code {code:x?}");
            thread::delete(thread).expect("it exists");
        }
    }
}

/// Pages `thread` until an exception comes from it, or a fault beyond the pages of old code, which
/// all show `code`. False if nothing comes for as long as `limit`.
fn last_message(thread: ThreadId, code: Fpage, limit: Time) -> bool {
    while let Ok(request) = ipc::receive_timeout(thread, limit) {
        let old = request.word(0) & !0xfff;
        let answer = match protocol::of(request.tag) {
            protocol::PAGE_FAULT if (0x1000..0x4000).contains(&old) => {
                Some(Message::new(0).map_item(MapItem::map(code, old)))
            }
            protocol::PAGE_FAULT => image_fault_answer(request),
            _ => None,
        };
        let Some(answer) = answer else { return true };
        ipc::send(thread, answer).expect("it waits for the page");
    }
    false
}
