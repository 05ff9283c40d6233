//! The extensions: foreign system calls in both modes, exceptions, page faults, MapControl, thread
//! state, notification.

use crate::{AVERAGED, fixture, measure, region, report};
use bench_framework::{Range, now};
use core::arch::asm;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::extension::{self, Registers};
use l4::ipc::{self, Message};
use l4::thread;
use l4::utcb;
use x2::extension::{ACCEPT_NOTIFICATION, MapItem, MapOperation, SystemCallAnswer, SystemCallMode};
use x2::protocol::exception;
use x2::{Fpage, MapItem as Item, Rights, ThreadId};

/// The result of a measured program, which shares this program's memory.
static MEASURED: AtomicU64 = AtomicU64::new(0);

/// An address at which the programs' spaces have nothing mapped.
const FAR: u64 = 0x4000_0000_0000;

pub(crate) fn run() {
    foreign_calls();
    exceptions();
    page_faults();
    map_control();
    states();
    notifications();
}

/// Makes 64 foreign system calls and keeps how long that took.
extern "C" fn caller() -> ! {
    loop {
        let start = now();
        for _ in 0..AVERAGED {
            // SAFETY: the server answers with a result; RCX and R11 are the instruction's.
            unsafe {
                asm!("syscall", inout("rax") 39u64 => _, out("rcx") _, out("r11") _, options(nostack));
            }
        }
        MEASURED.store(now() - start, Ordering::Relaxed);
        // Tells the owner by an X.2 call.
        let _ = ipc::call(l4::kip().root(), Message::new(1));
    }
}

/// The emulation entry: answers without calling a server.
#[unsafe(naked)]
extern "C" fn answer_here() -> ! {
    core::arch::naked_asm!("mov eax, 7", "jmp rcx")
}

fn foreign_calls() {
    let first = fixture::owned_space();
    extension::set_system_call_mode(first.0, SystemCallMode::Exception).expect("owned");
    let program = fixture::start_first(first, caller);
    let mut received = ipc::receive(program).expect("the program calls");
    region(format_args!("foreign-null-call-exception-mode"), AVERAGED, || {
        while received.tag.label() != 1 {
            received = ipc::call(program, Message::with_words(SystemCallAnswer::Return as u64, &[7]))
                .expect("it goes on");
        }
    });
    report("foreign-null-call-exception-mode", AVERAGED, MEASURED.load(Ordering::Relaxed) / AVERAGED);
    extension::set_emulation_entry(program, answer_here as *const () as u64).expect("a user address");
    extension::set_system_call_mode(program, SystemCallMode::Bounce).expect("owned");
    region(format_args!("foreign-null-call-bounce-mode"), AVERAGED, || {
        ipc::call(program, Message::new(0)).expect("it goes on");
    });
    report("foreign-null-call-bounce-mode", AVERAGED, MEASURED.load(Ordering::Relaxed) / AVERAGED);
}

/// Raises 64 exceptions. (If its space has an owner, the owner has chosen the handler.)
extern "C" fn raiser() -> ! {
    utcb::set_exception_handler(l4::kip().root());
    loop {
        let start = now();
        for _ in 0..AVERAGED {
            // SAFETY: the handler lets the thread go on after the instruction.
            unsafe { asm!("ud2", options(nostack, nomem)) };
        }
        MEASURED.store(now() - start, Ordering::Relaxed);
        let _ = ipc::call(l4::kip().root(), Message::new(1));
    }
}

fn exceptions() {
    for (test, program) in [
        ("exception-round-trip", fixture::elsewhere(raiser)),
        ("exception-round-trip-within-a-space", fixture::here(raiser)),
    ] {
        let mut received = ipc::receive(program).expect("the program raises");
        region(format_args!("{test}"), AVERAGED, || {
            while received.tag.label() != 1 {
                let rip = received.word(exception::RIP - 1);
                utcb::set_message_register(exception::RIP, rip + 2);
                let tag = x2::MessageTag::new(0, exception::REPLY_WORDS, 0);
                received = ipc::ipc(program, program, x2::Timeouts::NEVER, tag).expect("it goes on");
            }
        });
        report(test, AVERAGED, MEASURED.load(Ordering::Relaxed) / AVERAGED);
        thread::delete(program).expect("deletion never fails");
    }
}

/// Touches 64 pages of which none is mapped.
extern "C" fn toucher() -> ! {
    loop {
        let start = now();
        for page in 0..AVERAGED {
            // SAFETY: the pager maps a page there, and nothing else lies there.
            unsafe { asm!("mov {0}, [{0}]", inout(reg) FAR + page * 4096 => _, options(nostack, readonly)) };
        }
        MEASURED.store(now() - start, Ordering::Relaxed);
        let _ = ipc::call(l4::kip().root(), Message::new(1));
    }
}

#[repr(C, align(4096))]
struct Pages(UnsafeCell<[[u8; 4096]; 512]>);

// SAFETY: nothing forms a reference to the content.
unsafe impl Sync for Pages {}

static PAGES: Pages = Pages(UnsafeCell::new([[0; 4096]; 512]));

fn page(index: u64) -> u64 {
    PAGES.0.get() as u64 + index * 4096
}

fn target(index: u64) -> Fpage {
    Fpage::memory(FAR + index * 4096, 12).with_rights(Rights::READ_WRITE)
}

fn page_faults() {
    let program = fixture::elsewhere(toucher);
    for (test, by_message) in [("page-fault-by-map-item", true), ("page-fault-by-map-control", false)] {
        let mut received = ipc::receive(program).expect("the program touches");
        region(format_args!("{test}"), AVERAGED, || {
            while received.tag.label() != 1 {
                let address = received.word(0) & !0xfff;
                let index = (address - FAR) / 4096;
                let answer = if by_message {
                    let source = Fpage::memory(page(index), 12).with_rights(Rights::READ_WRITE);
                    Message::new(0).map_item(Item::map(source, address))
                } else {
                    let mut items = [MapItem::new(MapOperation::Map, target(index), 1, page(index))];
                    extension::map_control(program, &mut items).expect("the page is there");
                    Message::new(0)
                };
                received = ipc::call(program, answer).expect("it goes on");
            }
        });
        report(test, AVERAGED, MEASURED.load(Ordering::Relaxed) / AVERAGED);
        let mut items = [MapItem::new(MapOperation::Unmap, target(0), AVERAGED as u32, 0)];
        extension::map_control(program, &mut items).expect("unmapping never fails");
        ipc::send(program, Message::new(0)).expect("it waits");
    }
}

fn map_control() {
    let (space, _) = fixture::owned_space();
    for pages in Range::geometric(1, 512, 2).values() {
        let mut items = [const { MapItem { target: 0, control: 0, source: 0, answer: 0 } }; 512];
        let mut batch = |test: &'static str, operation: MapOperation| {
            for index in 0..pages {
                items[index as usize] = MapItem::new(operation, target(index), 1, page(index));
            }
            let start = now();
            extension::map_control(space, &mut items[..pages as usize]).expect("the pages are there");
            report(test, pages, now() - start);
        };
        // One call comes before the measurement, so that the page tables are there.
        batch("map-control-first-map", MapOperation::Map);
        batch("map-control-query", MapOperation::Query);
        batch("map-control-protect", MapOperation::Protect);
        batch("map-control-unmap", MapOperation::Unmap);
        batch("map-control-map", MapOperation::Map);
        batch("map-control-unmap-again", MapOperation::Unmap);
        let run = |test: &'static str, operation| {
            let mut items = [MapItem::new(operation, target(0), pages as u32, page(0))];
            let start = now();
            extension::map_control(space, &mut items).expect("the pages are there");
            report(test, pages, now() - start);
        };
        run("map-control-run-map", MapOperation::Map);
        run("map-control-run-unmap", MapOperation::Unmap);
    }
}

/// Calls the root task: once that has the message, this thread waits.
extern "C" fn waiter() -> ! {
    loop {
        let _ = ipc::call(l4::kip().root(), Message::new(1));
    }
}

fn states() {
    let program = fixture::elsewhere(waiter);
    ipc::receive(program).expect("it calls");
    measure("thread-state-read", || {
        extension::read_registers(program).expect("it waits");
    });
    let registers: Registers = extension::read_registers(program).expect("it waits");
    measure("thread-state-write", || {
        // SAFETY: the registers are those that it has.
        unsafe { extension::write_registers(program, &registers) }.expect("it waits");
    });
    let looping = fixture::elsewhere(spin);
    measure("recall-round-trip", || {
        extension::recall(looping).expect("owned");
        let received = ipc::receive(looping).expect("it is recalled");
        assert_eq!(received.word(exception::NUMBER - 1), x2::extension::RECALLED, "a recall");
        let tag = x2::MessageTag::new(0, exception::REPLY_WORDS, 0);
        ipc::ipc(looping, ThreadId::NIL, x2::Timeouts::NEVER, tag).expect("it waits");
    });
    thread::delete(looping).expect("deletion never fails");
}

extern "C" fn spin() -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Takes notifications, and tells the root task of each.
extern "C" fn listener() -> ! {
    // SAFETY: the acceptor takes no mappings or strings.
    unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
    loop {
        let _ = ipc::receive(ThreadId::ANY);
        let _ = ipc::send(l4::kip().root(), Message::new(1));
    }
}

fn notifications() {
    let busy = fixture::elsewhere(waiter);
    ipc::receive(busy).expect("it calls");
    measure("notify-not-taken", || extension::notify(busy, 1).expect("in reach"));
    let listener = fixture::here(listener);
    measure("notify-and-answer", || {
        extension::notify(listener, 1).expect("in reach");
        ipc::receive(listener).expect("it tells");
    });
}
