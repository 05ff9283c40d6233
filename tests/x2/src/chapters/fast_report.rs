//! Tests of the messages about foreign system calls, page faults and exceptions that the kernel
//! sends in threads' names on its fast path: one test for each of the checks of this path
//! (docs/src/ipc-fast-path.md).

use super::fast_path::RECEIVE_TIMEOUT;
use crate::framework::arena::{self, Page, read_at};
use crate::framework::confined;
use crate::framework::fixture::{Space, await_state, image_fault_answer, receive_as_pager, spawn, state_of};
use crate::framework::tests;
use core::arch::{asm, naked_asm};
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message, Received};
use l4::{console, extension, thread, utcb};
use x2::control::ThreadState;
use x2::extension::{ACCEPT_NOTIFICATION, SYSTEM_CALL_LABEL, SystemCallAnswer, SystemCallMode};
use x2::protocol::exception::{NUMBER, REPLY_WORDS, RFLAGS, RIP, TAG};
use x2::{MapItem, Rights, ThreadId, Time, Timeouts};

tests! {
    FRP0001 [EXT 5.2] "only its handler answers a foreign system call" third_thread_answers_call;
    FRP0002 [12.3] "only its pager answers a page fault" third_thread_answers_fault;
    FRP0003 [EXT 5.2, 7.15] "an answer in the handler's name that was there before" answer_is_there;
    FRP0004 [ABI 16] "the handler does not find the caller's selectors" selectors;
    FRP0005 [EXT 5.2, 7.6] "a handler in the caller's own space knows it by its local id" own_space;
    FRP0006 [EXT 9.2] "extended registers are each thread's own from foreign call to foreign call" extended_registers;
    FRP0007 [7.3] "a handler that waits for another thread is not disturbed" handler_waits_for_another;
    FRP0008 [EXT 5.5] "a handler that goes away before it answers halts the thread" handler_goes;
    FRP0009 [EXT 2.7] "a handler that has lost its owner does not run" handler_is_orphan;
    FRP0010 [EXT 2.1] "without an owner the handler is whom the program says" handler_of_program;
    FRP0011 [12.3] "only its pager answers a page fault with a page" third_thread_gives_page;
    FRP0012 [7.3] "a page and a wait take the message of another that was there before" page_with_waiting_sender;
    FRP0013 [EXT 7.2a] "a page and a wait take a notification that was there before" page_with_notification;
    FRP0014 [ABI 16] "a thread that gets a page does not find the pager's selectors" page_with_selectors;
    FRP0015 [1.11a] "a page and a wait with a timeout end with it" page_with_timeout;
    FRP0016 [11.2, 11.5, ABI 19.13] "a handler in another space sees and sets every register" exception_registers;
    FRP0017 [11.5] "only its handler answers an exception" third_thread_answers_exception;
    FRP0018 [11.5] "an answer with too few registers halts the thread" short_answer;
    FRP0019 [11.5, ABI 19.13] "an answer with an instruction pointer that is none raises another exception" no_address;
    FRP0020 [ABI 4] "a thread that asks for the kernel interface page is answered though its handler waits" interface_page;
    FRP0021 [ABI 15.1] "the debugger answers a program that may ask it though its handler waits" debugger;
}

/// Makes a foreign system call that the handler recognises by `number`.
fn foreign_call(number: u64) -> u64 {
    let result;
    // SAFETY: the handler decides what the instruction does: it returns a word.
    unsafe { asm!("syscall", inout("rax") number => result, out("rcx") _, out("r11") _) };
    result
}

/// Makes a thread in a new owned space that runs `body`. The handler of its foreign calls is
/// `handler`, or this thread.
fn program(handler: Option<ThreadId>, body: impl FnOnce() + 'static) -> (Space, ThreadId) {
    let space = confined::space();
    extension::set_system_call_mode(space.first, SystemCallMode::Exception).unwrap();
    let me = utcb::my_global_id();
    let thread = confined::spawn(&space, move || {
        ipc::receive(me).expect("the test says when");
        body();
    });
    if handler.is_some() {
        extension::set_handlers(thread, handler, None).unwrap();
    }
    ipc::send(thread, Message::new(0)).unwrap();
    (space, thread)
}

fn returning(word: u64) -> Message {
    Message::with_words(SystemCallAnswer::Return as u64, &[word])
}

/// Waits for `thread` once, since only to a thread that others have waited for such messages are
/// sent on the fast path.
fn name(thread: ThreadId) {
    await_state(thread, ThreadState::Waiting);
    let _ = ipc::receive_timeout(thread, Time::ZERO);
}

/// Waits until the kernel's message about `program` has reached its handler, or is queued for it.
fn await_report(program: ThreadId) {
    while !extension::state(program).unwrap().awaits_answer() {
        thread::yield_now();
    }
}

fn third_thread_answers_call() {
    let me = utcb::my_global_id();
    let (_space, program) = program(None, move || {
        let words = [foreign_call(1), foreign_call(2)];
        ipc::send(me, Message::with_words(1, &words)).expect("the owner is in reach");
    });
    assert_eq!(ipc::receive(program).unwrap().word(0), 1);
    let other = spawn(move || {
        let _ = ipc::call(program, returning(99));
    });
    await_state(other, ThreadState::PendingSend);
    assert_eq!(ipc::call(program, returning(5)).unwrap().word(0), 2);
    let told = ipc::call(program, returning(6)).unwrap();
    assert_eq!([told.word(0), told.word(1)], [5, 6]);
}

fn third_thread_answers_fault() {
    let me = utcb::my_global_id();
    let page = arena::page();
    let (_space, program) = program(None, move || {
        foreign_call(1);
        read_at(page.address);
        ipc::send(me, Message::new(3)).expect("the owner is in reach");
    });
    // From here on the program's faults are sent to this thread.
    let call = ipc::receive(program).unwrap();
    assert_eq!(call.tag.label(), SYSTEM_CALL_LABEL);
    extension::set_handlers(program, None, Some(me)).unwrap();
    ipc::send(program, returning(0)).unwrap();
    let fault = receive_as_pager(program).unwrap();
    assert_eq!(fault.word(0), page.address);
    let other = spawn(move || {
        let _ = ipc::call(program, Message::with_words(1, &[1]));
    });
    await_state(other, ThreadState::PendingSend);
    let item = MapItem::map(page.fpage(Rights::READ), page.address);
    ipc::send(program, Message::new(0).map_item(item)).unwrap();
    assert_eq!(receive_as_pager(program).unwrap().tag.label(), 3);
}

fn answer_is_there() {
    let me = utcb::my_global_id();
    let (_space, program) = program(None, move || {
        let words = [foreign_call(1), foreign_call(2), foreign_call(3)];
        ipc::send(me, Message::with_words(1, &words)).expect("the owner is in reach");
    });
    assert_eq!(ipc::receive(program).unwrap().word(0), 1);
    // The program has its answer, but does not run.
    thread::set_priority(program, 50).unwrap();
    thread::stop(program).unwrap();
    ipc::send(program, returning(10)).unwrap();
    let helper = spawn(move || ipc::send(program, returning(20).propagated_for(me)).unwrap());
    await_state(helper, ThreadState::PendingSend);
    thread::resume(program).unwrap();
    assert_eq!(ipc::receive(program).unwrap().word(0), 2);
    assert_eq!(ipc::receive(program).unwrap().word(0), 3);
    let told = ipc::call(program, returning(30)).unwrap();
    assert_eq!([told.word(0), told.word(1), told.word(2)], [10, 20, 30]);
}

fn selectors() {
    const USER_DATA: u64 = 0x23;
    let (_space, program) = program(None, || {
        loop {
            // SAFETY: flat data segments, which long mode ignores.
            unsafe { asm!("mov ds, {0:x}", "mov es, {0:x}", in(reg) USER_DATA) };
            foreign_call(1);
        }
    });
    ipc::receive(program).unwrap();
    for _ in 0..3 {
        ipc::call(program, returning(0)).unwrap();
        let (ds, es): (u64, u64);
        // SAFETY: the instructions only read registers.
        unsafe { asm!("mov {}, ds", "mov {}, es", out(reg) ds, out(reg) es) };
        assert_eq!([ds, es], [0, 0]);
    }
}

fn own_space() {
    let me = utcb::my_global_id();
    let space = confined::space();
    extension::set_system_call_mode(space.first, SystemCallMode::Exception).unwrap();
    let handler = confined::spawn(&space, || {
        let mut request = ipc::wait().unwrap();
        loop {
            let local = u64::from(request.from.is_local());
            request = ipc::reply_wait(request.from, returning(local)).expect("the caller waits");
        }
    });
    name(handler);
    let program = confined::spawn(&space, move || {
        ipc::receive(me).expect("the test says when");
        let words = [foreign_call(1), foreign_call(2), foreign_call(3)];
        ipc::send(me, Message::with_words(1, &words)).expect("the owner is in reach");
    });
    extension::set_handlers(program, Some(handler), None).unwrap();
    let told = ipc::call(program, Message::new(0)).unwrap();
    assert_eq!([told.word(0), told.word(1), told.word(2)], [1, 1, 1]);
}

/// Exchanges the value of an SSE register that no other code of the tests uses.
fn exchange_sse(value: u64) -> u64 {
    let old;
    // SAFETY: no other code uses the register.
    unsafe { asm!("movq {}, xmm9", "movq xmm9, {}", out(reg) old, in(reg) value) };
    old
}

fn extended_registers() {
    for has_some in [true, false] {
        let (_space, program) = program(None, move || {
            loop {
                if has_some {
                    exchange_sse(0x1111);
                }
                foreign_call(1);
                // The next call shows the result.
                foreign_call(if has_some { exchange_sse(0) } else { 0x1111 });
            }
        });
        ipc::receive(program).unwrap();
        for _ in 0..3 {
            exchange_sse(0x2222);
            assert_eq!(ipc::call(program, returning(0)).unwrap().word(0), 0x1111);
            assert_eq!(exchange_sse(0x3333), 0x2222, "the handler's own register");
            assert_eq!(ipc::call(program, returning(0)).unwrap().word(0), 1);
            assert_eq!(exchange_sse(0), 0x3333, "the handler's own register");
        }
    }
}

fn handler_waits_for_another() {
    let me = utcb::my_global_id();
    let handler = spawn(move || {
        let first = ipc::receive(me).unwrap();
        let second = ipc::wait().unwrap();
        let labels = [first.tag.label(), second.tag.label()];
        let _ = ipc::send(me, Message::with_words(2, &labels));
    });
    name(handler);
    let (_space, program) = program(Some(handler), || {
        foreign_call(1);
    });
    await_report(program);
    ipc::send(handler, Message::new(7)).unwrap();
    let told = ipc::receive(handler).unwrap();
    assert_eq!([told.word(0), told.word(1)], [7, SYSTEM_CALL_LABEL]);
}

fn handler_goes() {
    // The thread receives from any thread, never from one id (a sleep would name its own). So the
    // kernel's message is the first operation that records a waiting thread.
    let handler = spawn(|| {
        loop {
            let _ = ipc::wait();
        }
    });
    await_state(handler, ThreadState::Waiting);
    let (_space, program) = program(Some(handler), || {
        foreign_call(1);
    });
    await_report(program);
    thread::delete(handler).unwrap();
    await_state(program, ThreadState::Inactive);
}

fn handler_is_orphan() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    RUNS.store(0, Ordering::Relaxed);
    let (owner, owned) = (Space::new(), Space::new());
    let handler = owned.spawn(|| {
        // The store makes the page present, so that the code after the wait needs no pager.
        RUNS.store(1, Ordering::Relaxed);
        let _ = ipc::wait();
        RUNS.store(2, Ordering::Relaxed);
        l4::start::halt();
    });
    name(handler);
    extension::set_owner(owned.first, owner.first).unwrap();
    thread::delete(owner.first).unwrap();
    let (_space, _program) = program(Some(handler), || {
        foreign_call(1);
    });
    await_state(handler, ThreadState::Inactive);
    ipc::sleep(Time::period(2000));
    assert_eq!(RUNS.load(Ordering::Relaxed), 1);
}

fn handler_of_program() {
    let me = utcb::my_global_id();
    let handler = spawn(move || {
        let call = ipc::wait().unwrap();
        let _ = ipc::send(me, Message::with_words(4, &[call.word(0)]));
    });
    name(handler);
    let (space, program) = program(None, move || {
        foreign_call(1);
        utcb::set_exception_handler(handler);
        foreign_call(2);
    });
    assert_eq!(ipc::receive(program).unwrap().word(0), 1);
    extension::set_owner(space.first, ThreadId::NIL).unwrap();
    ipc::send(program, returning(0)).unwrap();
    let told = ipc::wait().unwrap();
    assert_eq!([told.tag.label(), told.word(0)], [4, 2]);
}

/// Makes a program that has sent this thread a page fault at `address`. When it has the page, it
/// calls `then` with this thread's id.
fn faulted(address: u64, then: impl FnOnce(ThreadId) + 'static) -> (Space, ThreadId) {
    let me = utcb::my_global_id();
    let (space, program) = program(None, move || {
        foreign_call(1);
        read_at(address);
        then(me);
        l4::start::halt();
    });
    assert_eq!(ipc::receive(program).unwrap().tag.label(), SYSTEM_CALL_LABEL);
    // From here on the program's faults are sent to this thread.
    extension::set_handlers(program, None, Some(me)).unwrap();
    ipc::send(program, returning(0)).unwrap();
    assert_eq!(receive_as_pager(program).unwrap().word(0), address);
    (space, program)
}

/// Answers the page fault of `program` with `page`, and receives from any thread with this timeout.
fn give(program: ThreadId, page: &Page, timeout: Time) -> ipc::Result<Received> {
    let answer = Message::new(0).map_item(MapItem::map(page.fpage(Rights::READ), page.address));
    let timeouts = Timeouts::new(Time::NEVER, timeout);
    let mut received = ipc::ipc(program, ThreadId::ANY, timeouts, answer.tag())?;
    while let Some(answer) = image_fault_answer(received) {
        received = ipc::ipc(received.from, program, timeouts, answer.tag())?;
    }
    Ok(received)
}

/// Tells `pager` that the page was mapped.
fn tell(pager: ThreadId) {
    let _ = ipc::send(pager, Message::new(3));
}

fn third_thread_gives_page() {
    let page = arena::page();
    let (_space, program) = faulted(page.address, tell);
    let item = MapItem::map(page.fpage(Rights::READ), page.address);
    let other = spawn(move || {
        let _ = ipc::call(program, Message::new(0).map_item(item));
    });
    await_state(other, ThreadState::PendingSend);
    assert_eq!(give(program, &page, Time::NEVER).unwrap().tag.label(), 3);
}

fn page_with_waiting_sender() {
    let me = utcb::my_global_id();
    let page = arena::page();
    let (_space, program) = faulted(page.address, tell);
    let other = spawn(move || ipc::send(me, Message::new(4)).unwrap());
    await_state(other, ThreadState::PendingSend);
    assert_eq!(give(program, &page, Time::NEVER).unwrap().tag.label(), 4);
    assert_eq!(receive_as_pager(program).unwrap().tag.label(), 3);
}

fn page_with_notification() {
    let me = utcb::my_global_id();
    let page = arena::page();
    let (_space, program) = faulted(page.address, tell);
    extension::notify(me, 0x50).unwrap();
    // SAFETY: no memory is accepted.
    unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
    let first = give(program, &page, Time::NEVER).unwrap();
    utcb::accept_untyped_words();
    assert_eq!((first.from, first.word(0)), (ThreadId::NIL, 0x50));
    assert_eq!(receive_as_pager(program).unwrap().tag.label(), 3);
}

fn page_with_selectors() {
    const USER_DATA: u64 = 0x23;
    let (first, second) = (arena::page(), arena::page());
    let address = second.address;
    let (_space, program) = faulted(first.address, move |pager| {
        // The second page is present after this.
        read_at(address);
        let (ds, es): (u64, u64);
        // SAFETY: the instructions only read registers.
        unsafe { asm!("mov {}, ds", "mov {}, es", out(reg) ds, out(reg) es) };
        let _ = ipc::send(pager, Message::with_words(3, &[ds, es]));
    });
    assert_eq!(give(program, &first, Time::NEVER).unwrap().word(0), address);
    // SAFETY: flat data segments, which long mode ignores.
    unsafe { asm!("mov ds, {0:x}", "mov es, {0:x}", in(reg) USER_DATA) };
    let told = give(program, &second, Time::NEVER).unwrap();
    assert_eq!([told.word(0), told.word(1)], [0, 0]);
}

fn page_with_timeout() {
    let page = arena::page();
    let (_space, program) = faulted(page.address, |_| ipc::sleep(Time::period(60_000_000)));
    assert_eq!(give(program, &page, Time::period(1000)), Err(RECEIVE_TIMEOUT));
}

/// Raises an exception with a known value in every register. The program does not continue by
/// itself.
#[unsafe(naked)]
extern "C" fn raise() -> ! {
    naked_asm!(
        "mov ebx, 0x302",
        "mov r10d, 0x303",
        "mov r12d, 0x304",
        "mov r13d, 0x305",
        "mov r14d, 0x306",
        "mov r15d, 0x307",
        "mov eax, 0x308",
        "mov ecx, 0x309",
        "mov edx, 0x30a",
        "mov esi, 0x30b",
        "mov edi, 0x30c",
        "mov ebp, 0x30d",
        "mov r8d, 0x30e",
        "mov r9d, 0x30f",
        "mov r11d, 0x310",
        "ud2",
    )
}

/// An answer that sets these registers.
fn setting(registers: [u64; REPLY_WORDS]) -> Message {
    Message::with_words(0, &registers)
}

/// The registers in an exception message.
fn registers_of(raised: &Received) -> [u64; REPLY_WORDS] {
    assert_eq!(raised.tag, TAG);
    core::array::from_fn(|index| raised.word(index))
}

fn exception_registers() {
    let (_space, program) = program(None, || raise());
    let first = ipc::receive(program).unwrap();
    let mut seen = registers_of(&first);
    for index in 2..=16 {
        assert_eq!(seen[index - 1], 0x300 + index as u64, "MR{index}");
    }
    for round in 1..4 {
        // The program executes the instruction again, with other registers, and with all flags but
        // that of single steps.
        let mut given = core::array::from_fn(|index| round << 32 | index as u64);
        given[RIP - 1] = seen[RIP - 1];
        given[RFLAGS - 1] = !(1 << 8);
        let raised = ipc::call(program, setting(given)).unwrap();
        assert_eq!(raised.word(NUMBER - 1), 6);
        seen = registers_of(&raised);
        assert_eq!(seen[..RFLAGS - 1], given[..RFLAGS - 1]);
        // The flags: interrupts on, I/O privilege 0, nothing nested or virtual; the processor
        // may set the resume flag.
        let expected = x2::control::PROGRAM_FLAGS & !(1 << 8 | 1 << 16) | 1 << 9 | 1 << 1;
        assert_eq!(seen[RFLAGS - 1] & !(1 << 16), expected);
    }
}

fn third_thread_answers_exception() {
    let (_space, program) = program(None, || raise());
    let registers = registers_of(&ipc::receive(program).unwrap());
    let other = spawn(move || {
        let _ = ipc::call(program, setting([0; REPLY_WORDS]));
    });
    await_state(other, ThreadState::PendingSend);
    let again = ipc::call(program, setting(registers)).unwrap();
    assert_eq!(again.word(RIP - 1), registers[RIP - 1]);
}

fn short_answer() {
    static EXCEPTIONS: AtomicU64 = AtomicU64::new(0);
    EXCEPTIONS.store(0, Ordering::Relaxed);
    let handler = spawn(|| {
        let raised = ipc::wait().unwrap();
        // After the wait for the second exception, others have waited for the thread: only an
        // answer to such a thread takes the fast path.
        let raised = ipc::call(raised.from, setting(registers_of(&raised))).unwrap();
        EXCEPTIONS.store(2, Ordering::Relaxed);
        let short = Message::with_words(0, &registers_of(&raised)[..REPLY_WORDS - 1]);
        // If the thread were resumed it would raise its exception once more.
        if ipc::call(raised.from, short).is_ok() {
            EXCEPTIONS.store(3, Ordering::Relaxed);
        }
    });
    name(handler);
    let (_space, program) = program(Some(handler), || raise());
    while state_of(program) != ThreadState::Inactive {
        assert!(EXCEPTIONS.load(Ordering::Relaxed) < 3, "the thread goes on with too few registers");
        thread::yield_now();
    }
    assert_eq!(EXCEPTIONS.load(Ordering::Relaxed), 2);
}

fn no_address() {
    let (_space, program) = program(None, || raise());
    let first = registers_of(&ipc::receive(program).unwrap());
    let mut registers = first;
    for address in [1 << 47, 1 << 63] {
        registers[RIP - 1] = address;
        let other = ipc::call(program, setting(registers)).unwrap();
        assert_eq!((other.tag, other.word(NUMBER - 1), other.word(RIP - 1)), (TAG, 13, address));
    }
    registers[RIP - 1] = first[RIP - 1];
    let again = ipc::call(program, setting(registers)).unwrap();
    assert_eq!(again.word(NUMBER - 1), 6);
}

/// Runs `ask` in a space without an owner while its handler, this thread, waits. The handler must
/// get no message but the last one.
fn unnoticed(ask: impl FnOnce() + 'static) {
    let me = utcb::my_global_id();
    let thread = spawn(move || {
        utcb::set_exception_handler(me);
        ipc::receive(me).expect("the test says when");
        ask();
        let _ = ipc::send(me, Message::new(5));
    });
    assert_eq!(ipc::call(thread, Message::new(0)).unwrap().tag.label(), 5);
}

fn interface_page() {
    unnoticed(|| {
        let base: u64;
        // SAFETY: the kernel sets these registers and changes nothing else.
        unsafe {
            asm!(".byte 0xf0, 0x90", out("rax") base, out("rcx") _, out("rdx") _, out("rsi") _, options(nostack));
        }
        assert_eq!(base, l4::kip().base());
    });
}

fn debugger() {
    unnoticed(|| {
        let _ = console::read_byte();
    });
}
