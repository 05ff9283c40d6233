//! Tests of owners that are deleted while threads of their spaces run, on any processor
//! (docs/src/architecture.md, K13; docs/src/reference/extensions.md, "Ownership").

use crate::framework::fixture::{Space, await_state, receive_as_pager};
use crate::framework::{arena, tests};
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::{extension, kip, thread, utcb};
use x2::control::{ThreadState, TimeControl, UNCHANGED};
use x2::extension::{SYSTEM_CALL_LABEL, SystemCallAnswer, SystemCallMode};
use x2::{ThreadId, Time, protocol};

tests! {
    ORP0001 [EXT 2.7] "threads that run on all processors halt with their owner, and run again for the next" running;
    ORP0002 [EXT 2.7] "page faults that are under way to a pager of the owner's come to the next owner's" faulting;
    ORP0003 [EXT 2.7, EXT 5.5] "system calls that are under way to a handler of the owner's are made again" calling;
}

const ROUNDS: u64 = 12;
/// How many threads the owned space has.
const THREADS: usize = 4;

/// Moves a thread to a processor and gives it a short timeslice, so that no thread there waits long
/// for the others, even if instructions are counted.
fn place(thread: ThreadId, processor: u64) {
    let processor = processor % u64::from(kip().processor_info().processors);
    let short = TimeControl::new(Some(Time::period(200)), None).raw();
    thread::schedule(thread, short, processor, UNCHANGED, UNCHANGED).expect("the processor exists");
}

static COUNTS: [AtomicU64; THREADS] = [const { AtomicU64::new(0) }; THREADS];

fn counts() -> [u64; THREADS] {
    core::array::from_fn(|index| COUNTS[index].load(Ordering::Relaxed))
}

/// Waits until the count of each thread has grown.
fn await_growth() {
    let before = counts();
    while counts().into_iter().zip(before).any(|(now, then)| now < then + 3) {
        thread::yield_now();
    }
}

/// Deletes `owner`, the only thread of the owner's space, and makes this space the owner of the
/// orphaned one.
fn inherit(owner: ThreadId, owned: &Space, threads: &[ThreadId; THREADS]) {
    thread::delete(owner).unwrap();
    threads.iter().for_each(|&thread| await_state(thread, ThreadState::Inactive));
    let then = counts();
    thread::yield_now();
    assert_eq!(counts(), then, "they stand still");
    extension::set_owner(owned.first, kip().root()).unwrap();
}

fn running() {
    let owned = Space::new();
    let threads = core::array::from_fn(|index| {
        let thread = owned.spawn(move || {
            loop {
                COUNTS[index].fetch_add(1, Ordering::Relaxed);
                core::hint::spin_loop();
            }
        });
        place(thread, index as u64);
        thread
    });
    for _ in 0..ROUNDS {
        let owner = Space::new();
        extension::set_owner(owned.first, owner.first).unwrap();
        await_growth();
        inherit(owner.first, &owned, &threads);
        threads.iter().for_each(|&thread| assert!(thread::resume(thread).unwrap().state.halted));
        await_growth();
    }
}

/// Lets threads of an owned space send messages with `label` to a thread of their owner, which
/// answers with `answer` and is then deleted; repeats that. `choose` sets the thread that gets the
/// messages.
fn reporting(
    mode: SystemCallMode,
    body: fn(usize),
    label: u64,
    answer: fn() -> Message,
    choose: fn(ThreadId, ThreadId),
) {
    let me = utcb::my_global_id();
    let owned = Space::new();
    let threads: [ThreadId; THREADS] = core::array::from_fn(|index| {
        owned.spawn(move || {
            ipc::call(me, Message::new(1)).expect("the test lets the thread go");
            body(index);
        })
    });
    // The threads wait for the answer.
    threads.iter().for_each(|&thread| assert_eq!(ipc::receive(thread).unwrap().tag.label(), 1));
    extension::set_owner(owned.first, kip().root()).unwrap();
    extension::set_system_call_mode(owned.first, mode).unwrap();
    for (thread, index) in threads.into_iter().zip(0..) {
        place(thread, index);
        choose(thread, me);
        ipc::reply(thread, Message::new(0)).unwrap();
    }
    for round in 0..ROUNDS {
        // Each thread reports to this thread first.
        let owner = Space::new();
        let listener = owner.spawn(move || {
            let mut report = ipc::wait();
            loop {
                report = match report {
                    Ok(report) => ipc::reply_wait(report.from, answer()),
                    Err(_) => ipc::wait(),
                };
            }
        });
        place(listener, round);
        for thread in threads {
            let report = receive_as_pager(thread).expect("it is reported again");
            assert_eq!(report.tag.label(), label, "round {round}");
            choose(thread, listener);
        }
        extension::set_owner(owned.first, owner.first).unwrap();
        threads.iter().for_each(|&thread| ipc::reply(thread, answer()).expect("it waits"));
        for _ in 0..round * 7 {
            thread::yield_now();
        }
        inherit(listener, &owned, &threads);
        for thread in threads {
            choose(thread, me);
            assert!(thread::resume(thread).unwrap().state.halted);
        }
    }
}

fn faulting() {
    // The addresses have no page mapped.
    let body = |index| {
        arena::read_at(0x4000_0000_0000 + ((index as u64) << 12));
    };
    let choose = |thread, pager| extension::set_handlers(thread, None, Some(pager)).unwrap();
    let label = protocol::page_fault_tag(x2::Rights::READ).label();
    reporting(SystemCallMode::None, body, label, || Message::new(0), choose);
}

fn calling() {
    let body = |index| {
        loop {
            let number = 1000 + index as u64;
            let result: u64;
            // SAFETY: this test is the handler, and decides what the instruction does.
            unsafe { asm!("syscall", inout("rax") number => result, out("rcx") _, out("r11") _) };
            assert_eq!(result, 77, "every call is answered");
        }
    };
    let choose = |thread, handler| extension::set_handlers(thread, Some(handler), None).unwrap();
    let answer = || Message::with_words(SystemCallAnswer::Return as u64, &[77]);
    reporting(SystemCallMode::Exception, body, SYSTEM_CALL_LABEL, answer, choose);
}
