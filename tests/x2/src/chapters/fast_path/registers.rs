//! Tests of registers that are not part of a message: each thread keeps its own from call to call.

use super::{await_waiting, server};
use crate::framework::failure;
use crate::framework::fixture::{Space, spawn};
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::{kip, utcb};
use x2::{Time, Timeouts};

/// Exchanges the value of an SSE register that no other code of the tests uses.
fn exchange_sse(value: u64) -> u64 {
    let old;
    // SAFETY: no other code uses the register.
    unsafe { asm!("movq {}, xmm9", "movq xmm9, {}", out(reg) old, in(reg) value) };
    old
}

pub(super) fn extended_registers() {
    for space in [None, Some(Space::new())] {
        let serve = |with: bool| {
            move || {
                let mut request = ipc::wait().unwrap();
                let mut expected = 0;
                loop {
                    // One server has extended registers, the other has not.
                    let seen = if with { exchange_sse(request.word(0) + 1) } else { expected };
                    let good = u64::from(seen == expected);
                    expected = request.word(0) + 1;
                    request =
                        ipc::reply_wait(request.from, Message::with_words(2, &[good])).expect("it waits");
                }
            }
        };
        for with in [true, false] {
            let server = match &space {
                None => spawn(serve(with)),
                Some(space) => space.spawn(serve(with)),
            };
            await_waiting(server);
            const FIRST: u64 = 0x1234;
            exchange_sse(FIRST);
            for round in 0..5 {
                let answer = ipc::call(server, Message::with_words(1, &[round * 100])).unwrap().word(0);
                assert_eq!(answer, 1, "the server's own register, round {round}");
                let last = FIRST + round;
                assert_eq!(exchange_sse(last + 1), last, "the caller's own register");
            }
        }
    }
}

pub(super) fn selectors() {
    call_with_selectors(Time::NEVER);
}

/// Makes a call with this receive timeout in a thread that has loaded selectors.
pub(in crate::chapters) fn call_with_selectors(timeout: Time) {
    const USER_DATA: u64 = 0x23;
    let me = utcb::my_global_id();
    let server = spawn(move || {
        let mut request = ipc::wait().unwrap();
        loop {
            let (ds, es): (u64, u64);
            // SAFETY: the instructions only read registers.
            unsafe { asm!("mov {}, ds", "mov {}, es", out(reg) ds, out(reg) es) };
            request = ipc::reply_wait(request.from, Message::with_words(2, &[ds, es])).expect("it waits");
        }
    });
    await_waiting(server);
    let caller = spawn(move || {
        // SAFETY: flat data segments, which long mode ignores.
        unsafe { asm!("mov ds, {0:x}", "mov es, {0:x}", in(reg) USER_DATA) };
        let timeouts = Timeouts::new(Time::NEVER, timeout);
        let answer = ipc::call_timeouts(server, Message::with_words(1, &[1]), timeouts).unwrap();
        let words = [answer.word(0), answer.word(1)];
        ipc::send(me, Message::with_words(1, &words)).unwrap();
    });
    let told = ipc::receive(caller).unwrap();
    assert_eq!([told.word(0), told.word(1)], [0, 0]);
}

pub(super) fn bases() {
    let present =
        core::arch::x86_64::__cpuid(0).eax >= 7 && core::arch::x86_64::__cpuid_count(7, 0).ebx & 1 != 0;
    if !present {
        failure::skip("the processor lacks FSGSBASE");
    }
    let fs_base = || {
        let base: u64;
        // SAFETY: the instructions only read registers.
        unsafe { asm!("rdfsbase {}", out(reg) base) };
        base
    };
    let pointer = || {
        let pointer: u64;
        // SAFETY: the word at GS base is the UTCB pointer.
        unsafe { asm!("mov {}, gs:[0]", out(reg) pointer) };
        pointer
    };
    let server = spawn(move || {
        let own = pointer();
        let mut request = ipc::wait().unwrap();
        loop {
            let good = fs_base() == 0 && pointer() == own;
            request =
                ipc::reply_wait(request.from, Message::with_words(2, &[good.into()])).expect("it waits");
        }
    });
    await_waiting(server);
    for base in [0x1000, 0x2_0000] {
        // SAFETY: this program does not use FS.
        unsafe { asm!("wrfsbase {}", in(reg) base) };
        let answer = ipc::call(server, Message::with_words(1, &[1])).unwrap().word(0);
        assert_eq!((answer, fs_base()), (1, base));
    }
}

/// Calls `to` with one word. The instructions `before` are executed before the call, `after` after
/// it. The address of the stub is in R11.
macro_rules! raw_call {
    ($to:expr, $before:literal, $after:literal, $($operands:tt)*) => {
        asm!(
            "push rbp",
            "push rbx",
            $before,
            "call r11",
            $after,
            "pop rbx",
            "pop rbp",
            inout("r11") kip().word(x2::kip::IPC) => _,
            inout("rsi") $to.raw() => _, inout("rdi") utcb::pointer() => _, inout("rdx") $to.raw() => _,
            inout("r8") 0u64 => _, inout("r9") 1u64 => _, inout("rax") 7u64 => _,
            out("r10") _, out("r12") _, out("r13") _, out("r14") _, out("r15") _, out("rcx") _,
            $($operands)*
        )
    };
}

pub(super) fn direction_flag() {
    static FLAGS: AtomicU64 = AtomicU64::new(0);
    let server = server();
    for _ in 0..3 {
        FLAGS.store(u64::MAX, Ordering::Relaxed);
        // SAFETY: the call is an Ipc whose answer is ignored, and the flag is cleared directly
        // after it.
        unsafe {
            raw_call!(server, "std", "pushfq\n pop rcx\n cld\n mov [rip + {flags}], rcx", flags = sym FLAGS);
        }
        assert_eq!(FLAGS.load(Ordering::Relaxed) & 1 << 10, 0);
    }
}

/// The values that the receiver of [`no_leaks`] finds in its registers: MR2..MR7, then RDX, R8,
/// RBP.
static FOUND: [AtomicU64; 9] = [const { AtomicU64::new(0) }; 9];

pub(super) fn no_leaks() {
    const PATTERN: u64 = 0x5ec2_e7ed_5ec2_e7ed;
    // The receiver's own value of registers that are not part of the message.
    const OWN: u64 = 0x1234;
    // The words of the message.
    const SENT: u64 = 1;
    let me = utcb::my_global_id();
    let receiver = Space::new().spawn(move || {
        // SAFETY: the code receives from any thread and stores the registers.
        unsafe {
            asm!(
                "push rbp",
                "push rbx",
                "push r11",
                "mov ebp, {own}",
                "call r11",
                "pop r11",
                "lea r11, [rip + {found}]",
                "mov [r11], rbx",
                "mov [r11 + 8], r10",
                "mov [r11 + 16], r12",
                "mov [r11 + 24], r13",
                "mov [r11 + 32], r14",
                "mov [r11 + 40], r15",
                "mov [r11 + 48], rdx",
                "mov [r11 + 56], r8",
                "mov [r11 + 64], rbp",
                "pop rbx",
                "pop rbp",
                own = const OWN, found = sym FOUND,
                inout("r11") kip().word(x2::kip::IPC) => _,
                inout("rsi") 0u64 => _, inout("rdi") utcb::pointer() => _, inout("rdx") u64::MAX => _,
                inout("r8") OWN << 32 => _, inout("r9") 0u64 => _, out("rax") _, out("r10") _, out("r12") _,
                out("r13") _, out("r14") _, out("r15") _, out("rcx") _,
            );
        }
        let mut words = [utcb::pointer(); 10];
        words.iter_mut().zip(&FOUND).for_each(|(word, found)| *word = found.load(Ordering::Relaxed));
        let _ = ipc::send(me, Message::with_words(2, &words));
    });
    await_waiting(receiver);
    spawn(move || {
        // SAFETY: the code makes a call with one word. All registers that are not part of it have
        // the pattern, and so has the send timeout. The call is not answered.
        unsafe {
            asm!(
                "mov rbx, rax",
                "mov rbp, rax",
                "mov r10, rax",
                "mov r12, rax",
                "mov r13, rax",
                "mov r14, rax",
                "mov r15, rax",
                "call r11",
                "ud2",
                in("r11") kip().word(x2::kip::IPC), in("rsi") receiver.raw(), in("rdi") utcb::pointer(),
                in("rdx") receiver.raw(), in("r8") PATTERN << 16, in("r9") SENT, in("rax") PATTERN,
                options(noreturn),
            );
        }
    });
    let told = ipc::receive(receiver).expect("what it found");
    for (index, name) in ["MR2", "MR3", "MR4", "MR5", "MR6", "MR7", "RDX", "R8", "RBP"].iter().enumerate() {
        let value = told.word(index);
        let is_own_utcb = value / x2::utcb::SIZE == told.word(9) / x2::utcb::SIZE;
        // RBP may hold the number of words, which the tag says, too.
        let is_count = *name == "RBP" && value == SENT;
        assert!(
            is_own_utcb || is_count || [0, u64::MAX, OWN, OWN << 32].contains(&value),
            "{name} is {value:#x}, neither zero nor the receiver's own"
        );
    }
}
