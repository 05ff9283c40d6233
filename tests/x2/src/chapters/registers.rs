//! Tests of the registers that each thread has for itself (docs/src/architecture.md, K5 and K14),
//! and of those that it keeps when it moves (X.2 rule 5.18).

use crate::framework::fixture::{Space, await_state, new_id, spawn};
use crate::framework::{confined, failure, tests};
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::thread::{self, ThreadControl};
use l4::{kip, utcb};
use x2::control::ThreadState;
use x2::{ErrorCode, ThreadId, Time};

tests! {
    REG0001 [EXT 9.2] "x87 and SSE registers are each thread's own" extended_state;
    REG0002 [ABI 7, EXT 9.2] "GS base always leads to the thread's own UTCB pointer" gs_base;
    REG0004 [EXT 9.2, ABI 16] "FS base, which a program sets, stays with its thread" fs_base;
    REG0005 [EXT 9.2] "a thread that sets another GS base harms no other thread" other_gs_base;
    REG0003 [5.18, 13.1] "a thread moves to another space and takes its words along" moves;
    REG0006 [EXT 1.2c] "calls of the extensions leave every register as it was that is no result" extension_calls;
}

fn extended_state() {
    let me = utcb::my_global_id();
    let worker = move |seed: u64| {
        move || {
            for round in 0..20 {
                let value = seed + round;
                let mut memory = value;
                // SAFETY: the code between the two uses of these registers is not compiled to use
                // any of them.
                unsafe {
                    asm!("movq xmm7, {}", "fninit", "fild qword ptr [{}]", in(reg) value, in(reg) &memory);
                }
                thread::yield_now();
                ipc::sleep(Time::period(300));
                let sse: u64;
                // SAFETY: the code between the two uses of these registers is not compiled to use
                // any of them.
                unsafe { asm!("movq {}, xmm7", "fistp qword ptr [{}]", out(reg) sse, in(reg) &mut memory) };
                assert_eq!((sse, memory), (value, value));
            }
            ipc::send(me, Message::new(1)).unwrap();
        }
    };
    let threads = [spawn(worker(0x1000)), spawn(worker(0x2000)), Space::new().spawn(worker(0x3000))];
    for thread in threads {
        assert_eq!(ipc::receive(thread).unwrap().tag.label(), 1);
    }
}

/// The UTCB pointer that the processor reads now.
fn pointer_at_gs() -> u64 {
    let pointer;
    // SAFETY: the first word at GS base is the UTCB pointer. Volatile, because it may change.
    unsafe { asm!("mov {}, gs:[0]", out(reg) pointer) };
    pointer
}

fn gs_base() {
    let me = utcb::my_global_id();
    let worker = move || {
        let pointer = pointer_at_gs();
        for _ in 0..10 {
            thread::yield_now();
            ipc::sleep(Time::period(100));
            assert_eq!(pointer_at_gs(), pointer);
        }
        ipc::send(me, Message::with_words(1, &[pointer])).unwrap();
    };
    for thread in [spawn(worker), spawn(worker)] {
        let pointer = ipc::receive(thread).unwrap().word(0);
        assert_eq!(thread::local_id_of(thread).unwrap().raw(), pointer);
    }
}

/// The UTCB pointer that the thread of [`moves`] last read.
static POINTER: AtomicU64 = AtomicU64::new(0);

fn moves() {
    let space = Space::new();
    let location = space.utcb_area + 40 * x2::utcb::SIZE;
    POINTER.store(0, Ordering::Relaxed);
    let thread = spawn(|| {
        utcb::set_user_defined_handle(0x1234);
        loop {
            POINTER.store(pointer_at_gs(), Ordering::Relaxed);
        }
    });
    let await_pointer = |pointer| {
        while POINTER.load(Ordering::Relaxed) != pointer {
            thread::yield_now();
        }
    };
    await_pointer(thread::local_id_of(thread).unwrap().raw());
    let to = ThreadControl { space: space.first, scheduler: ThreadId::NIL, pager: ThreadId::NIL, utcb: None };
    assert_eq!(thread::control(thread, to), Err(Some(ErrorCode::InvalidUtcbArea)));
    thread::control(thread, ThreadControl { utcb: Some(location), ..to }).unwrap();
    await_pointer(location + x2::utcb::MR0_OFFSET);
    // The thread lives in another space now, but its pager is in this one.
    assert_eq!(thread::inspect(thread).unwrap().handle, 0x1234);
}

/// Skips the test on processors where programs cannot set the bases.
fn require_base_instructions() {
    // Leaf 7 exists where leaf 0 says so.
    let present =
        core::arch::x86_64::__cpuid(0).eax >= 7 && core::arch::x86_64::__cpuid_count(7, 0).ebx & 1 != 0;
    if !present {
        failure::skip("the processor lacks FSGSBASE");
    }
}

fn fs_base() {
    require_base_instructions();
    let me = utcb::my_global_id();
    let worker = move |base: u64| {
        move || {
            // SAFETY: this program does not use FS.
            unsafe { asm!("wrfsbase {}", in(reg) base) };
            for _ in 0..20 {
                thread::yield_now();
                ipc::sleep(Time::period(300));
                let found: u64;
                // SAFETY: the instruction only reads a register.
                unsafe { asm!("rdfsbase {}", out(reg) found) };
                assert_eq!(found, base);
            }
            ipc::send(me, Message::new(1)).unwrap();
        }
    };
    let threads = [spawn(worker(0x1000)), spawn(worker(0)), Space::new().spawn(worker(0x7fff_0000_0000))];
    for thread in threads {
        assert_eq!(ipc::receive(thread).unwrap().tag.label(), 1);
    }
}

fn other_gs_base() {
    require_base_instructions();
    POINTER.store(0, Ordering::Relaxed);
    let vandals = [0x1000u64, 0, 0x7fff_0000_0000].map(|base| {
        spawn(move || {
            loop {
                // SAFETY: from here on this thread uses nothing that needs GS.
                unsafe { asm!("wrgsbase {}", in(reg) base) };
                POINTER.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    let pointer = pointer_at_gs();
    let witness = Space::new().spawn(|| {
        let pointer = pointer_at_gs();
        for _ in 0..20 {
            thread::yield_now();
            assert_eq!(pointer_at_gs(), pointer);
        }
        POINTER.fetch_or(1 << 63, Ordering::Relaxed);
        l4::start::halt()
    });
    while POINTER.load(Ordering::Relaxed) >> 63 == 0 || POINTER.load(Ordering::Relaxed) << 1 == 0 {
        thread::yield_now();
        assert_eq!(pointer_at_gs(), pointer);
    }
    for thread in vandals.into_iter().chain([witness]) {
        thread::delete(thread).unwrap();
    }
}

/// RDI, RSI, RDX and R8 after a call, and whether it was successful.
struct Answer {
    registers: [u64; 4],
    success: bool,
}

/// Calls the stub whose address is at `offset` in the kernel interface page, with these values in
/// RDI, RSI, RDX and R8. Checks that the other registers that a stub must preserve are unchanged.
fn call_stub(offset: u64, arguments: [u64; 4]) -> Answer {
    let [mut rdi, mut rsi, mut rdx, mut r8] = arguments;
    let [mut r9, mut r10, mut r12, mut r13, mut r14, mut r15] = [0x109u64, 0x10a, 0x10c, 0x10d, 0x10e, 0x10f];
    let (rax, rbx): (u64, u64);
    // SAFETY: the operands are the whole register contract of the calls; RBX and RBP are restored.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "mov rbx, 0x10b",
            "call [rax]",
            "mov rcx, rbx",
            "pop rbx",
            "pop rbp",
            inout("rax") kip().base() + offset => rax, inout("rdi") rdi, inout("rsi") rsi, inout("rdx") rdx,
            inout("r8") r8, inout("r9") r9, inout("r10") r10, inout("r12") r12, inout("r13") r13,
            inout("r14") r14, inout("r15") r15, out("rcx") rbx, lateout("r11") _,
        );
    }
    let others = [rbx, r9, r10, r12, r13, r14, r15];
    assert_eq!(others, [0x10b, 0x109, 0x10a, 0x10c, 0x10d, 0x10e, 0x10f], "stub at {offset:#x}");
    assert!(rax <= 1, "the result");
    Answer { registers: [rdi, rsi, rdx, r8], success: rax == 1 }
}

fn extension_calls() {
    const SPACE_OPTIONS: u64 = 0x1f8;
    const MAP_CONTROL: u64 = 0x200;
    const THREAD_STATE: u64 = 0x208;
    const NOTIFY: u64 = 0x210;
    /// A MapControl item in registers that queries status.
    const QUERY: u64 = 1 << 63;
    const PAGE: u64 = 0x4000_0000_0000 | 12 << 4;
    let me = utcb::my_global_id();
    let space = confined::space();
    let thread = confined::spawn(&space, move || {
        let _ = ipc::receive(me);
    });
    await_state(thread, ThreadState::Waiting);
    for (id, exists) in [(thread.raw(), true), (new_id().raw(), false)] {
        // Which of RDI, RSI, RDX and R8 are results.
        for (stub, arguments, results) in [
            (SPACE_OPTIONS, [id, 0, 0x55, 0x66], [false, false, true, true]),
            (MAP_CONTROL, [id, PAGE, QUERY, 0x66], [false, false, false, true]),
            (THREAD_STATE, [id, 0, 0x55, 0x66], [false, true, false, true]),
            (NOTIFY, [id, 1, 0x55, 0x66], [false; 4]),
        ] {
            let answer = call_stub(stub, arguments);
            assert_eq!(answer.success, exists, "stub at {stub:#x}");
            for (index, is_result) in results.into_iter().enumerate() {
                let kept = answer.registers[index] == arguments[index];
                assert!(kept || is_result, "argument {index} of the stub at {stub:#x}");
            }
        }
    }
}
