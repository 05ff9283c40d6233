//! Tests that no thread sees or changes another's extended state, flags or GS segment
//! (docs/src/architecture.md, K5 and K14).

use crate::framework::fixture::{Space, spawn};
use crate::framework::{leaks, tests};
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::{kip, thread, utcb};

tests! {
    STA0001 [EXT 9.2, ABI 16] "SSE registers keep their values while other threads use theirs" sse_registers;
    STA0002 [EXT 9.2] "a thread begins with clean SSE registers and control word" initial_sse_state;
    STA0003 [ABI 19.5, 13.2] "a thread that overwrites its word at gs:0 harms no other thread" gs_word;
    STA0004 [ABI 19.13, ABI 5] "direction and alignment-check flags do not reach the kernel" user_flags;
    STA0005 [ABI 16] "what a thread loads into segment registers is not seen by another" selectors;
    STA0006 [ABI 19.13] "the kernel serves an exception with neither flag set that lifts its protection" kernel_flags;
}

/// Loads XMM0 and XMM15 with `value`, makes a system call that switches threads, and reads them.
fn keep_in_sse(value: u64) -> [u64; 2] {
    let (first, last);
    // SAFETY: the code only moves values between registers, and reads them before other code uses
    // these registers.
    unsafe { asm!("movq xmm0, {0}", "movq xmm15, {0}", in(reg) value) };
    for _ in 0..3 {
        thread::yield_now();
    }
    // SAFETY: the code only moves values between registers.
    unsafe { asm!("movq {0}, xmm0", "movq {1}, xmm15", out(reg) first, out(reg) last) };
    [first, last]
}

fn sse_registers() {
    let me = utcb::my_global_id();
    let space = Space::new();
    for number in 1..=6u64 {
        let body = move || {
            for round in 0..20 {
                let value = number << 32 | round;
                assert_eq!(keep_in_sse(value), [value; 2]);
            }
            ipc::send(me, Message::new(1)).unwrap();
        };
        if number % 2 == 0 {
            space.spawn(body)
        } else {
            spawn(body)
        };
    }
    // A thread without any extended state runs in between.
    let integer_only = spawn(|| {
        loop {
            thread::yield_now();
        }
    });
    for _ in 0..6 {
        ipc::wait().unwrap();
    }
    thread::delete(integer_only).unwrap();
}

fn initial_sse_state() {
    let value = 0x5555_5555_5555_5555;
    assert_eq!(keep_in_sse(value), [value; 2]);
    let me = utcb::my_global_id();
    let other = spawn(move || {
        let (first, last): (u64, u64);
        let mut control = 0u32;
        // SAFETY: reads registers, and stores one into a local variable.
        unsafe {
            asm!("movq {0}, xmm0", "movq {1}, xmm15", "stmxcsr [{2}]",
                out(reg) first, out(reg) last, in(reg) &raw mut control);
        }
        assert_eq!([first, last], [0, 0]);
        assert_eq!(control, 0x1f80);
        ipc::send(me, Message::new(1)).unwrap();
    });
    ipc::receive(other).unwrap();
}

/// Set by the vandal of `gs_word`.
static DONE: AtomicU64 = AtomicU64::new(0);

fn gs_word() {
    let me = utcb::my_global_id();
    let mine = utcb::pointer();
    DONE.store(0, Ordering::Relaxed);
    let vandal = spawn(|| {
        // SAFETY: this thread does not use the word afterwards.
        unsafe { asm!("mov qword ptr gs:[0], 0x1234") };
        DONE.store(1, Ordering::Relaxed);
        loop {
            core::hint::spin_loop();
        }
    });
    while DONE.load(Ordering::Relaxed) == 0 {
        ipc::sleep(x2::Time::period(1000));
    }
    assert_eq!(utcb::pointer(), mine);
    let witness = Space::new().spawn(move || {
        assert_eq!(utcb::pointer() % x2::utcb::ALIGN, x2::utcb::MR0_OFFSET);
        ipc::send(me, Message::with_words(1, &[5])).unwrap();
    });
    assert_eq!(ipc::receive(witness).unwrap().word(0), 5);
    thread::delete(vandal).unwrap();
}

fn user_flags() {
    let mut flags: u64;
    // SAFETY: the flags that are set here are cleared before other code depends on them; the
    // registers are those of the call's contract.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "mov r10, {entry}",
            "pushfq",
            "or qword ptr [rsp], 0x40000",
            "popfq",
            "std",
            "call [r10]",
            "pushfq",
            "pop rax",
            "cld",
            "pushfq",
            "and qword ptr [rsp], -0x40001",
            "popfq",
            "pop rbx",
            "pop rbp",
            entry = in(reg) kip().base() + x2::kip::SYSTEM_CLOCK as u64,
            out("rax") flags, out("rcx") _, out("rdx") _, out("rsi") _, out("rdi") _, out("r8") _, out("r9") _,
            out("r10") _, out("r11") _, out("r12") _, out("r13") _, out("r14") _, out("r15") _,
        );
    }
    flags &= 1 << 10;
    assert_eq!(flags, 0, "the direction flag is clear behind a system call");
}

/// Reads the selectors DS, ES, FS and GS.
fn read_selectors() -> [u64; 4] {
    let (ds, es, fs, gs);
    // SAFETY: the instruction only reads registers.
    unsafe {
        asm!("mov {0}, ds", "mov {1}, es", "mov {2}, fs", "mov {3}, gs",
            out(reg) ds, out(reg) es, out(reg) fs, out(reg) gs);
    }
    [ds, es, fs, gs]
}

fn selectors() {
    let me = utcb::my_global_id();
    DONE.store(0, Ordering::Relaxed);
    // The thread makes no system call after it has loaded the selectors, because loading GS also
    // changes the GS base.
    let loader = spawn(|| {
        // SAFETY: the segments exist, and this code does not depend on their bases.
        unsafe {
            asm!("mov ds, {0:e}", "mov es, {0:e}", "mov fs, {0:e}", "mov gs, {0:e}", in(reg) 0x23);
        }
        loop {
            DONE.store(read_selectors()[3], Ordering::Relaxed);
        }
    });
    while DONE.load(Ordering::Relaxed) != 0x23 {
        thread::yield_now();
    }
    let witness = Space::new().spawn(move || {
        ipc::send(me, Message::with_words(1, &read_selectors())).unwrap();
    });
    let seen: [u64; 4] = {
        let received = ipc::receive(witness).unwrap();
        core::array::from_fn(|index| received.word(index))
    };
    assert_eq!(seen, [0; 4], "selectors of another thread");
    assert_eq!(read_selectors(), [0; 4]);
    thread::delete(loader).unwrap();
}

/// Whether the processor has supervisor-mode access prevention (SMAP), which the kernel uses then.
fn has_smap() -> bool {
    // If the processor does not have the leaf, it answers with the values of another; leaf 0 says
    // which leaves exist.
    core::arch::x86_64::__cpuid(0).eax >= 7 && core::arch::x86_64::__cpuid_count(7, 0).ebx >> 20 & 1 != 0
}

fn kernel_flags() {
    const ALIGNMENT_CHECK: u64 = 1 << 18;
    const DIRECTION: u64 = 1 << 10;
    leaks::require();
    let flags: u64;
    // SAFETY: the kernel sets RAX; the flags that are set here are cleared before other code
    // depends on them.
    unsafe {
        asm!(
            "pushfq",
            "or qword ptr [rsp], {both}",
            "popfq",
            "int3",
            "cmp al, {operation}",
            "pushfq",
            "and qword ptr [rsp], ~{both}",
            "popfq",
            both = const ALIGNMENT_CHECK | DIRECTION,
            operation = const x2::kdebug::READ_STATISTIC,
            inout("rax") x2::kdebug::statistic::FLAGS => flags,
        );
    }
    assert_eq!(flags & DIRECTION, 0, "the direction flag");
    assert!(flags & ALIGNMENT_CHECK == 0 || !has_smap(), "the flag that lets the kernel touch user pages");
}
