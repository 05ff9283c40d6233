//! Tests of threads' breakpoints (docs/src/reference/extensions.md, "ThreadState"): the processor's
//! debug registers as an owner sets them. With several processors, threads with breakpoints are on
//! all of them.

use super::processors::place;
use super::thread_state::{Image, XMM3};
use crate::framework::fixture::{Space, await_state};
use crate::framework::{arena, confined, tests};
use core::arch::{asm, naked_asm};
use core::sync::atomic::{AtomicU64, Ordering};
use l4::extension::{self, Breakpoints};
use l4::ipc::{self, Message};
use l4::{kip, syscall, thread, utcb};
use x2::control::ThreadState;
use x2::extension::thread_state;
use x2::message::StringDescriptor;
use x2::protocol::exception::{self, NUMBER, RFLAGS, RIP, TAG};
use x2::{Acceptor, ErrorCode, Fpage, ThreadId, Timeouts};

tests! {
    BRK0001 [EXT 6.5] "a watched write stops its thread after the instruction" writes;
    BRK0002 [EXT 6.5] "a watched read does, too" reads;
    BRK0003 [EXT 6.5] "execution stops before the instruction, once each time it is reached" execution;
    BRK0004 [EXT 6.5] "breakpoints are read as they were written, and those of which none is enabled are forgotten" read_back;
    BRK0005 [EXT 6.2] "addresses that are no program's, sizes, ports and the rest of the control word are refused" wrong;
    BRK0006 [EXT 6.1] "a running thread's breakpoints are out of reach" running;
    BRK0007 [EXT 6.5] "threads stop at their own breakpoints alone, whichever way the processor goes from one to another" own_alone;
    BRK0008 [EXT 6.5] "they go with their thread to each processor" moved;
    BRK0009 [EXT 6.5] "memory of a message can be watched: the kernel's accesses stop nothing" strings;
    BRK0010 [EXT 6.5] "a thread that is deleted leaves none" deleted;
    BRK0011 [EXT 6.5] "the extended state keeps clear of them" extended_state;
    BRK0012 [EXT 6.5] "a hostile thread with breakpoints on its stack and its system calls stops nothing but itself" hostile;
}

/// Enables breakpoint 0.
const FIRST: u64 = 1 << 0;
/// Condition of breakpoint 0: writes into eight bytes.
const WRITES: u64 = 0b1001 << 16;
/// Condition of breakpoint 0: accesses to eight bytes.
const ACCESSES: u64 = 0b1011 << 16;
const STEP: u64 = 1 << 14;

/// Two words that are watched by some threads.
static WORDS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

fn address(index: usize) -> u64 {
    WORDS[index].as_ptr() as u64
}

fn at(address: u64, control: u64) -> Breakpoints {
    Breakpoints { addresses: [address, 0, 0, 0], control, status: 0 }
}

/// Makes a thread in `space` that waits for a message of this one, then runs `body`, then sends a
/// message with label 1. This thread is its exception handler.
fn waiting(space: &Space, body: impl FnOnce() + 'static) -> ThreadId {
    let me = utcb::my_global_id();
    let thread = confined::spawn(space, move || {
        ipc::receive(me).expect("the test sends");
        body();
        let _ = ipc::call(me, Message::new(1));
    });
    await_state(thread, ThreadState::Waiting);
    thread
}

fn set(thread: ThreadId, breakpoints: Breakpoints) {
    extension::write_breakpoints(thread, &breakpoints).expect("the breakpoints are valid");
}

/// Lets the thread go on with `message`. Returns its exception, or `None`: it has come to its end.
fn go(thread: ThreadId, message: Message) -> Option<[u64; exception::WORDS]> {
    let received = ipc::call(thread, message).expect("the thread comes back");
    // The tag says also whether the message comes from another processor.
    if received.tag.label() != TAG.label() {
        assert_eq!(received.tag.label(), 1);
        return None;
    }
    Some(core::array::from_fn(|index| received.word(index)))
}

/// Lets a thread go on that has stopped with these words, and says how it stops again.
fn go_on(thread: ThreadId, words: &[u64; exception::WORDS]) -> Option<[u64; exception::WORDS]> {
    go(thread, Message::with_words(0, &words[..exception::REPLY_WORDS]))
}

/// Lets the thread run to its end. Returns how often it stops, each time because of a breakpoint.
fn stops(thread: ThreadId) -> usize {
    let mut stopped = go(thread, Message::new(0));
    let mut count = 0;
    while let Some(words) = stopped {
        assert_eq!(words[NUMBER - 1], 1, "at {:#x}", words[RIP - 1]);
        count += 1;
        stopped = go_on(thread, &words);
    }
    count
}

fn writes() {
    let thread = waiting(&confined::space(), || {
        WORDS[1].store(1, Ordering::SeqCst);
        WORDS[0].store(0x11, Ordering::SeqCst);
        WORDS[0].load(Ordering::SeqCst);
        WORDS[0].fetch_add(1, Ordering::SeqCst);
    });
    set(thread, at(address(0), FIRST | WRITES));
    let first = go(thread, Message::new(0)).expect("the store");
    assert_eq!((first[NUMBER - 1], WORDS[0].load(Ordering::SeqCst)), (1, 0x11));
    assert_eq!(extension::read_breakpoints(thread).unwrap().status, 1);
    let second = go_on(thread, &first).expect("the addition");
    assert_eq!((second[NUMBER - 1], WORDS[0].load(Ordering::SeqCst)), (1, 0x12));
    assert!(second[RIP - 1] > first[RIP - 1]);
    assert_eq!(go_on(thread, &second), None);
}

fn reads() {
    // With several processors the emulator misses locked accesses where reads are watched, too.
    let body = || {
        WORDS[0].load(Ordering::Relaxed);
        WORDS[1].load(Ordering::Relaxed);
        WORDS[1].store(3, Ordering::Relaxed);
    };
    let thread = waiting(&confined::space(), body);
    // The third and the fourth breakpoint: accesses to either word.
    let addresses = [0, 0, address(0), address(1)];
    set(thread, Breakpoints { addresses, control: 0b1101_0000 | 0xbb00_0000, status: 0 });
    let mut words = go(thread, Message::new(0)).expect("the first load");
    assert_eq!(extension::read_breakpoints(thread).unwrap().status, 1 << 2);
    for _ in 0..2 {
        words = go_on(thread, &words).expect("the second load, and the store");
        assert_eq!(extension::read_breakpoints(thread).unwrap().status, 1 << 3);
    }
    assert_eq!(go_on(thread, &words), None);
}

/// Counts in RDI.
#[unsafe(naked)]
extern "C" fn count(_: u64) -> u64 {
    naked_asm!("lea rax, [rdi + 1]", "ret")
}

fn execution() {
    // The test's own processor, and one on which nothing else runs meanwhile.
    for processor in [0, 1] {
        executes(processor);
    }
}

fn executes(processor: u64) {
    let thread = waiting(&confined::space(), || {
        let value =
            (0..3).fold(0, |value, _| core::hint::black_box(count as extern "C" fn(u64) -> u64)(value));
        WORDS[0].store(value, Ordering::SeqCst);
    });
    place(thread, processor);
    set(thread, at(count as *const () as u64, FIRST));
    let mut stopped = go(thread, Message::new(0));
    for _ in 0..3 {
        let mut words = stopped.expect("the function is called again");
        assert_eq!((words[NUMBER - 1], words[RIP - 1]), (1, count as *const () as u64));
        assert_eq!(extension::read_breakpoints(thread).unwrap().status, 1);
        assert_ne!(words[RFLAGS - 1] & 1 << 16, 0, "the thread can go on");
        // With the flag taken away it stops at the same place.
        words[RFLAGS - 1] &= !(1 << 16);
        words = go_on(thread, &words).expect("it has done nothing yet");
        assert_eq!((words[NUMBER - 1], words[RIP - 1]), (1, count as *const () as u64));
        // A step executes the instruction.
        words[RFLAGS - 1] |= 1 << 8;
        words = go_on(thread, &words).expect("one instruction is executed");
        assert_eq!((words[NUMBER - 1], words[RIP - 1]), (1, count as *const () as u64 + 4));
        // Reading makes the kernel load the breakpoints again, which the end of the step must do
        // alone, too.
        if processor == 0 {
            assert_eq!(extension::read_breakpoints(thread).unwrap().status, STEP);
        }
        words[RFLAGS - 1] &= !(1 << 8);
        stopped = go_on(thread, &words);
    }
    assert_eq!(stopped, None);
    assert_eq!(WORDS[0].load(Ordering::SeqCst), 3);
}

fn read_back() {
    let thread = waiting(&confined::space(), || ());
    let none = Breakpoints::default();
    assert_eq!(extension::read_breakpoints(thread), Ok(none));
    let all = Breakpoints { addresses: [0x1000, 0x2002, 0x3004, 0x4008], control: 0x9f75_0055, status: 0 };
    set(thread, all);
    assert_eq!(extension::read_breakpoints(thread), Ok(all));
    // A call with both bits reads what was there before.
    let next = at(0x7fff_ffff_eff8, 2 | ACCESSES);
    for (address, index) in next.addresses.into_iter().zip(thread_state::BREAKPOINT_ADDRESSES..) {
        utcb::set_message_register(index, address);
    }
    utcb::set_message_register(thread_state::BREAKPOINT_CONTROL, next.control);
    let both = thread_state::READ_BREAKPOINTS | thread_state::WRITE_BREAKPOINTS;
    // SAFETY: no register changes with which the thread continues.
    let (result, ..) = unsafe { syscall::thread_state(thread.raw(), both, 0, 0) };
    assert_eq!((result, utcb::message_register(thread_state::BREAKPOINT_CONTROL)), (1, all.control));
    assert_eq!(extension::read_breakpoints(thread), Ok(next));
    set(thread, at(0x1000, WRITES));
    assert_eq!(extension::read_breakpoints(thread), Ok(none));
    assert_eq!(stops(thread), 0);
}

fn wrong() {
    let thread = waiting(&confined::space(), || WORDS[0].store(1, Ordering::SeqCst));
    let good = at(address(0), FIRST | WRITES);
    set(thread, good);
    let end = (1 << 47) - 4096;
    for breakpoints in [
        // Not a program's.
        at(end, FIRST | 1 << 16),
        at(1 << 47, FIRST | 1 << 16),
        at(0xffff_8000_0000_0000, FIRST | WRITES),
        at(u64::MAX, FIRST),
        at(end, 0),
        // Not aligned to the size.
        at(address(0) + 1, FIRST | WRITES),
        at(address(0) + 4, FIRST | ACCESSES),
        at(0x1001, FIRST | 0b0101 << 16),
        at(0x1002, FIRST | 0b1101 << 16),
        // An instruction with a size, and a port.
        at(0x1000, FIRST | 0b0100 << 16),
        at(0x3f8, FIRST | 0b0010 << 16),
        // Exact breakpoints, general detection, and bits that mean nothing.
        at(0x1000, 1 << 8),
        at(0x1000, 1 << 9),
        at(0x1000, 1 << 10),
        at(0x1000, FIRST | 1 << 13),
        at(0x1000, 1 << 32),
        at(0x1000, 1 << 63),
    ] {
        let result = extension::write_breakpoints(thread, &breakpoints);
        assert_eq!(result, Err(Some(ErrorCode::InvalidParameter)), "{breakpoints:x?}");
    }
    assert_eq!(extension::read_breakpoints(thread), Ok(good));
    assert_eq!(extension::read_breakpoints(utcb::my_global_id()), Err(Some(ErrorCode::NoPrivilege)));
    assert_eq!(stops(thread), 1);
}

fn running() {
    WORDS[0].store(0, Ordering::SeqCst);
    let thread = confined::spawn(&confined::space(), || {
        loop {
            WORDS[0].fetch_add(1, Ordering::SeqCst);
        }
    });
    while WORDS[0].load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    let breakpoints = at(address(0), FIRST | WRITES);
    assert_eq!(extension::read_breakpoints(thread), Err(Some(ErrorCode::InvalidParameter)));
    assert_eq!(extension::write_breakpoints(thread, &breakpoints), Err(Some(ErrorCode::InvalidParameter)));
    thread::stop(thread).unwrap();
    set(thread, breakpoints);
    thread::resume(thread).unwrap();
    let stopped = ipc::receive(thread).expect("the next round");
    assert_eq!((stopped.tag, stopped.word(NUMBER - 1)), (TAG, 1));
}

const ROUNDS: u64 = 50;

/// Writes word 0, and keeps a vector register.
fn write_with_vector(value: u64) {
    let kept: u64;
    // SAFETY: Rust code of this program does not use the vector registers.
    unsafe { asm!("movq xmm3, {}", in(reg) value) };
    WORDS[0].store(value, Ordering::SeqCst);
    // SAFETY: as above.
    unsafe { asm!("movq {}, xmm3", out(reg) kept) };
    assert_eq!(kept, value);
}

/// Calls between a thread with breakpoints and one without: in one space, and in two, with and
/// without vector registers of the other, on one processor and on two.
fn own_alone() {
    for (same_space, vectors, processor) in
        [(true, true, 0), (true, false, 0), (false, true, 0), (false, false, 0), (false, true, 1)]
    {
        let me = utcb::my_global_id();
        let space = confined::space();
        let other = if same_space { None } else { Some(confined::space()) };
        // The other thread writes the same word at the same address, and stops at nothing.
        let partner = confined::spawn(other.as_ref().unwrap_or(&space), move || {
            let mut from = ipc::receive(ThreadId::ANY).expect("a call").from;
            loop {
                if vectors {
                    write_with_vector(1);
                } else {
                    WORDS[0].store(1, Ordering::SeqCst);
                }
                let answer = Message::new(0).tag();
                let Ok(next) = ipc::ipc(from, ThreadId::ANY, Timeouts::NEVER, answer) else { return };
                from = next.from;
            }
        });
        place(partner, processor);
        let thread = waiting(&space, move || {
            for round in 0..ROUNDS {
                write_with_vector(round);
                if same_space {
                    ipc::call(partner, Message::new(0)).expect("the partner answers");
                } else {
                    // Threads of two owned spaces reach each other through their owner.
                    ipc::call(me, Message::new(2)).expect("the test passes it on");
                }
            }
        });
        set(thread, at(address(0), FIRST | WRITES));
        let mut message = Message::new(0);
        let mut count = 0;
        loop {
            let received = ipc::call(thread, message).expect("the thread comes back");
            message = match received.tag.label() {
                1 => break,
                2 => {
                    ipc::call(partner, Message::new(0)).expect("the partner answers, and does not stop");
                    WORDS[0].store(2, Ordering::SeqCst);
                    Message::new(0)
                }
                _ => {
                    assert_eq!((received.tag.label(), received.word(NUMBER - 1)), (TAG.label(), 1));
                    count += 1;
                    let words: [u64; exception::REPLY_WORDS] =
                        core::array::from_fn(|index| received.word(index));
                    Message::with_words(0, &words)
                }
            };
        }
        assert_eq!(count, ROUNDS);
        set(thread, Breakpoints::default());
    }
}

fn moved() {
    let me = utcb::my_global_id();
    let thread = confined::spawn(&confined::space(), move || {
        loop {
            ipc::call(me, Message::new(1)).expect("the test answers");
            WORDS[0].store(7, Ordering::SeqCst);
        }
    });
    ipc::receive(thread).expect("it comes");
    set(thread, at(address(0), FIRST | WRITES));
    let processors = u64::from(kip().processor_info().processors);
    for processor in (0..processors).cycle().take(3 * processors as usize) {
        place(thread, processor);
        let words = go(thread, Message::new(0)).expect("it stops there, too");
        assert_eq!(words[NUMBER - 1], 1);
        assert_eq!(extension::read_breakpoints(thread).unwrap().status, 1);
        // It also moves while it is stopped.
        place(thread, processor + 1);
        assert_eq!(go_on(thread, &words), None);
    }
}

fn strings() {
    let me = utcb::my_global_id();
    let (page, source) = (arena::page().address, arena::page());
    source.write(0, 0x77);
    let space = confined::space();
    let thread = confined::spawn(&space, move || {
        arena::read_at(page);
        // SAFETY: the buffer is a page that no other code uses, and no mappings are accepted.
        unsafe {
            utcb::accept(Acceptor::new(Fpage::NIL, true));
            utcb::set_buffer_register(1, StringDescriptor::new(4096, 1, false).raw());
            utcb::set_buffer_register(2, page);
        }
        for _ in 0..2 {
            ipc::receive(me).expect("the test sends");
            let string = StringDescriptor::new(64, 1, false).raw();
            ipc::call(me, Message::new(1).typed_words(&[string, page])).expect("the test answers");
        }
        arena::read_at(page);
        let _ = ipc::call(me, Message::new(1));
    });
    await_state(thread, ThreadState::Waiting);
    // All accesses to the first words of the page.
    let addresses = [page, page + 8, page + 16, page + 56];
    set(thread, Breakpoints { addresses, control: 0xbbbb_00ff, status: 0 });
    let string = || Message::new(2).typed_words(&[StringDescriptor::new(64, 1, false).raw(), source.address]);
    let back = arena::page();
    // SAFETY: the buffer is a page that no other code uses, and no mappings are accepted.
    unsafe {
        utcb::accept(Acceptor::new(Fpage::NIL, true));
        utcb::set_buffer_register(1, StringDescriptor::new(4096, 1, false).raw());
        utcb::set_buffer_register(2, back.address);
    }
    for _ in 0..2 {
        let answer = ipc::call(thread, string()).expect("the string comes back, and stops nothing");
        assert_eq!((answer.tag.label(), back.read(0)), (1, 0x77));
        ipc::send(thread, Message::new(0)).expect("it waits for this");
    }
    let stopped = ipc::receive(thread).expect("it reads the page itself");
    assert_eq!((stopped.tag, stopped.word(NUMBER - 1)), (TAG, 1));
}

fn deleted() {
    for _ in 0..20 {
        let space = confined::space();
        let thread = waiting(&space, || WORDS[0].store(1, Ordering::SeqCst));
        set(thread, at(address(0), FIRST | WRITES));
        let stopped = go(thread, Message::new(0)).expect("the store");
        assert_eq!(stopped[NUMBER - 1], 1);
        // The space lives as long as it has a thread.
        let next = waiting(&space, || write_with_vector(1));
        thread::delete(thread).unwrap();
        assert_eq!(extension::read_breakpoints(next), Ok(Breakpoints::default()));
        assert_eq!(stops(next), 0);
        thread::delete(next).unwrap();
    }
}

fn extended_state() {
    let thread = waiting(&confined::space(), || write_with_vector(5));
    let breakpoints = at(address(0), FIRST | WRITES);
    set(thread, breakpoints);
    let mut image = Image::new();
    let size = extension::read_extended_state(thread, &mut image.0).unwrap();
    assert!(image.0[464..512].iter().all(|&byte| byte == 0), "the kernel's words are not shown");
    image.0[464..512].fill(0xff);
    image.set_word(XMM3, 9);
    extension::write_extended_state(thread, &image.0[..size]).unwrap();
    assert_eq!(extension::read_breakpoints(thread), Ok(breakpoints));
    assert_eq!(stops(thread), 1);
}

/// Where the hostile thread keeps its selector and its stack.
#[repr(align(64))]
struct Hostile([AtomicU64; 8]);
static HOSTILE: Hostile = Hostile([const { AtomicU64::new(0) }; 8]);

#[unsafe(naked)]
extern "C" fn be_hostile(_: *const u64, _: u64) {
    naked_asm!(
        "push rbx",
        "mov rbx, rsp",
        // The debug exception after MOV SS waits until after the next instruction.
        "mov ss, [rdi]",
        "int3",
        "mov ss, [rdi]",
        "mov rcx, rsi",
        "mov ss, [rdi]",
        "ud2",
        "mov ss, [rdi]",
        "int 0x80",
        "mov ss, [rdi]",
        "syscall",
        // The same with the stack pointer in watched memory.
        "lea rsp, [rdi + 48]",
        "push rax",
        "pop rax",
        "pushfq",
        "or qword ptr [rsp], 0x100",
        "popfq",
        "mov ss, [rdi]",
        "syscall",
        "pushfq",
        "and qword ptr [rsp], ~0x100",
        "popfq",
        ".byte 0xf1",
        "mov rsp, rbx",
        "pop rbx",
        "ret",
    )
}

fn hostile() {
    HOSTILE.0[0].store(0x23, Ordering::SeqCst);
    let first = &raw const HOSTILE.0[0] as u64;
    let space = confined::space();
    let me = utcb::my_global_id();
    let thread = waiting(&space, move || be_hostile(first as *const u64, me.raw()));
    let addresses = [first, first + 32, first + 40, be_hostile as *const () as u64];
    set(thread, Breakpoints { addresses, control: 0x0bbb_00ff, status: 0 });
    let mut stopped = go(thread, Message::new(0));
    let mut debug = 0;
    while let Some(mut words) = stopped {
        let skipped = match words[NUMBER - 1] {
            1 => 0,
            // UD2, INT n and a foreign SYSCALL have two bytes.
            3 => 0,
            6 | 13 => 2,
            number => panic!("exception {number} at {:#x}", words[RIP - 1]),
        };
        debug += usize::from(words[NUMBER - 1] == 1);
        words[RIP - 1] += skipped;
        stopped = go_on(thread, &words);
    }
    assert!(debug > 3);
}
