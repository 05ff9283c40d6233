//! Tests of calls and answers between waiting threads, which the kernel's fast paths handle: one
//! test for each of the checks of these paths (docs/src/ipc-fast-path.md). Every case must have the
//! result of the general path.

mod local_ids;
pub(super) mod registers;

use crate::framework::arena;
use crate::framework::confined;
use crate::framework::fixture::{Space, await_state, spawn, state_of, with_version};
use crate::framework::tests;
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::{extension, thread, utcb};
use x2::control::ThreadState;
use x2::extension::{ACCEPT_NOTIFICATION, SystemCallMode};
use x2::{
    Acceptor, Fpage, IpcError, IpcErrorKind, IpcPhase, MapItem, MessageTag, Rights, ThreadId, Time, Timeouts,
};

tests! {
    FST0001 [7.14, 7.15] "a call in another thread's name" propagated_call;
    FST0002 [7.32] "a call with a map item" call_with_map_item;
    FST0003 [7.9] "a call with more words than the processor has registers for" long_call;
    FST0004 [1.11a] "a call with a receive timeout ends with it" call_with_timeout;
    FST0005 [ABI 5] "the direction flag is clear after a call" registers::direction_flag;
    FST0006 [5.2] "a call to a waiting thread by a wrong version" wrong_version;
    FST0007 [7.3, ABI 19.2] "a call to a thread that waits for another" closed_receive;
    FST0008 [3.1, 3.27] "a ready thread of higher priority runs before the thread that is called" priority;
    FST0009 [7.15] "a call takes a message in its partner's name that was there before" message_in_partners_name;
    FST0010 [7.3] "an answer to one takes the message of another that was there before" waiting_sender;
    FST0011 [EXT 7.2a] "an answer takes a notification that was there before" waiting_notification;
    FST0012 [7.8] "a call ends when the thread that is called is deleted" callee_deleted;
    FST0013 [EXT 9.2] "extended registers are each thread's own from call to call" registers::extended_registers;
    FST0014 [ABI 16] "the thread that is called does not find the caller's selectors" registers::selectors;
    FST0015 [EXT 9.2] "FS base and the UTCB's pointer are each thread's own from call to call" registers::bases;
    FST0016 [EXT 2.2] "a confined thread's call to a waiting thread out of its reach" out_of_reach;
    FST0017 [EXT 2.7] "a thread that has lost its owner is called, and does not run" orphan;
    FST0018 [ABI 5] "registers behind the message, and those that are no outputs, have nothing of the caller's" registers::no_leaks;
    FST0019 [EXT 5.5] "a wrong answer to a foreign system call, by a handler that waits for the next" wrong_answer;
    FST0020 [5.30] "a halted thread that waits is called, and does not run before it is resumed" halted;
    FST0021 [7.5] "a call to oneself" oneself;
    FST0022 [5.2] "a call to a number beyond the last thread's" beyond_the_last;
    FST0023 [7.2a] "an answer to one, and a wait for another that does not exist" waits_for_no_thread;
    FST0024 [3.1] "the thread that is called has its own priority, not the caller's" own_priority;
    FST0025 [5.30] "a thread that was halted before it waits is called, and does not run before it is resumed" halted_before;
    FST0026 [7.19] "a call by a local id to a waiting thread" local_ids::call;
    FST0027 [7.3, 7.19] "a call by a local id to a thread that waits for another" local_ids::closed_receive;
    FST0028 [5.2, 7.19] "calls by local ids reach each the thread that has it" local_ids::apart;
    FST0029 [7.8, 7.19] "a call by a local id ends when the thread that is called is deleted" local_ids::callee_deleted;
    FST0030 [7.4] "a timeout that a call has forestalled does not come later" forestalled_timeout;
}

/// The error with which a wait ends after its timeout.
pub(super) const RECEIVE_TIMEOUT: IpcError = IpcError::new(IpcPhase::Receive, IpcErrorKind::Timeout);

/// Waits until `thread` waits, and waits for it once, since only a thread that others have waited
/// for is called on the fast path.
pub(super) fn await_waiting(thread: ThreadId) {
    await_state(thread, ThreadState::Waiting);
    let _ = ipc::receive_timeout(thread, Time::ZERO);
}

/// Makes a thread that answers every call with its word plus one, the word's sender, and whether
/// the message was propagated.
pub(super) fn server() -> ThreadId {
    let server = spawn(serve);
    await_waiting(server);
    server
}

fn serve() {
    let mut request = ipc::wait().unwrap();
    loop {
        let words = [request.word(0) + 1, request.from.raw(), u64::from(request.tag.is_propagated())];
        request = ipc::reply_wait(request.from, Message::with_words(2, &words)).expect("the caller waits");
    }
}

fn propagated_call() {
    let me = utcb::my_global_id();
    let client = spawn(move || {
        let answer = ipc::receive(me).expect("the server's answer, by the test's");
        ipc::send(me, Message::with_words(1, &[answer.word(0)])).unwrap();
    });
    await_waiting(client);
    let server = spawn(move || {
        let request = ipc::wait().unwrap();
        let words = [request.from.raw(), u64::from(request.tag.is_propagated())];
        ipc::send(me, Message::with_words(2, &words)).unwrap();
    });
    await_waiting(server);
    let answer = ipc::call(server, Message::with_words(1, &[5]).propagated_for(client)).unwrap();
    let client = thread::local_id_of(client).unwrap();
    assert_eq!((answer.word(0), answer.word(1)), (client.raw(), 1));
}

fn call_with_map_item() {
    const WINDOW: u64 = 0x5000_0000_0000;
    let page = arena::page();
    page.write(0, 0x77);
    let server = Space::new().spawn(move || {
        // SAFETY: no Rust object lies in the window.
        unsafe { utcb::accept(Acceptor::new(Fpage::memory(WINDOW, 12), false)) };
        let request = ipc::wait().unwrap();
        let word = arena::read_at(WINDOW);
        let _ = ipc::send(request.from, Message::with_words(2, &[word]));
    });
    await_waiting(server);
    let message = Message::with_words(1, &[1, 2]).map_item(MapItem::map(page.fpage(Rights::READ), 0));
    assert_eq!(ipc::call(server, message).unwrap().word(0), 0x77);
}

fn long_call() {
    let server = spawn(|| {
        let mut request = ipc::wait().unwrap();
        loop {
            let sum: u64 = request.words().sum();
            request =
                ipc::reply_wait(request.from, Message::with_words(2, &[sum])).expect("the caller waits");
        }
    });
    await_waiting(server);
    for count in [7, 8, 9, 16, 63] {
        let message = (1..=count).fold(Message::new(1), Message::word);
        assert_eq!(ipc::call(server, message).unwrap().word(0), count * (count + 1) / 2, "{count} words");
    }
}

fn call_with_timeout() {
    let silent = spawn(|| {
        let _ = ipc::wait();
        l4::start::halt();
    });
    await_waiting(silent);
    let timeouts = Timeouts::new(Time::NEVER, Time::period(1000));
    let error = ipc::call_timeouts(silent, Message::new(1), timeouts).expect_err("it does not answer");
    assert_eq!(error, RECEIVE_TIMEOUT);
}

fn wrong_version() {
    let server = server();
    let wrong = with_version(server.number(), server.version() + 1);
    let error = ipc::call(wrong, Message::with_words(1, &[1])).expect_err("there is no such thread");
    assert_eq!(error, IpcError::new(IpcPhase::Send, IpcErrorKind::NonExistingPartner));
    assert_eq!(
        ipc::call(server, Message::with_words(1, &[1])).unwrap().word(0),
        2,
        "no thread was disturbed"
    );
}

fn closed_receive() {
    let other = spawn(|| l4::start::halt());
    let closed = spawn(move || {
        let _ = ipc::receive(other);
    });
    await_waiting(closed);
    let timeouts = Timeouts::new(Time::ZERO, Time::NEVER);
    let error = ipc::call_timeouts(closed, Message::with_words(1, &[1]), timeouts).expect_err("not for us");
    assert_eq!(error, IpcError::new(IpcPhase::Send, IpcErrorKind::Timeout));
    assert_eq!(state_of(closed), ThreadState::Waiting);
}

fn priority() {
    static TRACE: AtomicU64 = AtomicU64::new(0);
    let trace = |digit| TRACE.store(TRACE.load(Ordering::Relaxed) * 10 + digit, Ordering::Relaxed);
    TRACE.store(0, Ordering::Relaxed);
    let me = utcb::my_global_id();
    let low = spawn(move || {
        let request = ipc::wait().unwrap();
        trace(1);
        let _ = ipc::send(request.from, Message::new(2));
    });
    let middle = spawn(move || {
        let _ = ipc::receive(me);
        trace(2);
    });
    for (thread, priority) in [(low, 50), (middle, 80)] {
        await_waiting(thread);
        thread::set_priority(thread, priority).unwrap();
    }
    // The second thread is ready from here on, and cannot run while the test does.
    ipc::send(middle, Message::new(0)).unwrap();
    ipc::call(low, Message::with_words(1, &[1])).unwrap();
    assert_eq!(TRACE.load(Ordering::Relaxed), 21);
}

fn message_in_partners_name() {
    let me = utcb::my_global_id();
    let silent = spawn(|| {
        let _ = ipc::wait();
        l4::start::halt();
    });
    await_waiting(silent);
    let helper = spawn(move || {
        let message = Message::with_words(3, &[33]).propagated_for(silent);
        ipc::send(me, message).unwrap();
    });
    await_state(helper, ThreadState::PendingSend);
    let answer = ipc::call(silent, Message::with_words(1, &[1])).expect("the helper's, in its name");
    assert_eq!((answer.from, answer.word(0)), (thread::local_id_of(silent).unwrap(), 33));
}

fn waiting_sender() {
    take_waiting_sender(Time::NEVER);
}

/// Answers and waits, with this timeout, while another thread waits to send.
pub(super) fn take_waiting_sender(timeout: Time) {
    let me = utcb::my_global_id();
    let client = spawn(move || {
        let answer = ipc::call(me, Message::with_words(1, &[1])).unwrap();
        ipc::send(me, Message::with_words(3, &[answer.word(0)])).unwrap();
    });
    assert_eq!(ipc::receive(client).unwrap().tag.label(), 1);
    let other = spawn(move || ipc::send(me, Message::new(4)).unwrap());
    await_state(other, ThreadState::PendingSend);
    let timeouts = Timeouts::new(Time::ZERO, timeout);
    let answer = Message::with_words(2, &[2]);
    let next = ipc::ipc(client, ThreadId::ANY, timeouts, answer.tag()).expect("the other's message");
    assert_eq!(next.tag.label(), 4);
    assert_eq!(ipc::receive(client).unwrap().word(0), 2);
}

fn waiting_notification() {
    let me = utcb::my_global_id();
    let client = spawn(move || {
        let _ = ipc::call(me, Message::with_words(1, &[1]));
        l4::start::halt();
    });
    assert_eq!(ipc::receive(client).unwrap().tag.label(), 1);
    extension::notify(me, 0x50).unwrap();
    // SAFETY: no memory is accepted.
    unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
    let next = ipc::reply_wait(client, Message::with_words(2, &[2])).expect("the notification");
    utcb::accept_untyped_words();
    assert_eq!((next.from, next.word(0)), (ThreadId::NIL, 0x50));
}

fn callee_deleted() {
    let me = utcb::my_global_id();
    // The thread receives from any thread, never from one id (a sleep would name its own), and no
    // thread has waited for it before. So the call is the first operation that records a waiting
    // thread.
    let silent = spawn(|| {
        loop {
            let _ = ipc::wait();
        }
    });
    await_state(silent, ThreadState::Waiting);
    let caller = spawn(move || {
        let error = ipc::call(silent, Message::with_words(1, &[1])).expect_err("it goes");
        ipc::send(me, Message::with_words(1, &[error.raw()])).unwrap();
    });
    await_state(caller, ThreadState::Waiting);
    thread::delete(silent).unwrap();
    let expected = IpcError::new(IpcPhase::Receive, IpcErrorKind::NonExistingPartner);
    assert_eq!(ipc::receive(caller).unwrap().word(0), expected.raw());
}

fn out_of_reach() {
    let me = utcb::my_global_id();
    let stranger = Space::new().spawn(serve);
    await_waiting(stranger);
    let space = confined::space();
    let caller = confined::spawn(&space, move || {
        let error = ipc::call(stranger, Message::with_words(1, &[1])).map_or_else(|error| error.raw(), |_| 0);
        let _ = ipc::send(me, Message::with_words(1, &[error]));
    });
    let expected = IpcError::new(IpcPhase::Send, IpcErrorKind::NonExistingPartner);
    assert_eq!(ipc::receive(caller).unwrap().word(0), expected.raw());
    assert_eq!(state_of(stranger), ThreadState::Waiting);
}

fn orphan() {
    call_orphan(Time::NEVER);
}

/// Calls a thread without an owner, with this receive timeout.
pub(super) fn call_orphan(timeout: Time) {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    RUNS.store(0, Ordering::Relaxed);
    let (owner, owned) = (Space::new(), Space::new());
    let server = owned.spawn(|| {
        // The store makes the page present, so that the code after the wait needs no pager.
        RUNS.store(1, Ordering::Relaxed);
        let _ = ipc::wait();
        RUNS.store(2, Ordering::Relaxed);
        l4::start::halt();
    });
    await_waiting(server);
    extension::set_owner(owned.first, owner.first).unwrap();
    thread::delete(owner.first).unwrap();
    spawn(move || {
        let timeouts = Timeouts::new(Time::NEVER, timeout);
        let _ = ipc::call_timeouts(server, Message::with_words(1, &[1]), timeouts);
        RUNS.store(3, Ordering::Relaxed);
    });
    await_state(server, ThreadState::Inactive);
    ipc::sleep(Time::period(2000));
    assert_eq!(RUNS.load(Ordering::Relaxed), 1, "the caller waits for the answer");
}

fn wrong_answer() {
    let space = confined::space();
    extension::set_system_call_mode(space.first, SystemCallMode::Exception).unwrap();
    let program = confined::spawn(&space, || {
        // SAFETY: the handler decides what happens after the instruction: the thread is not
        // resumed.
        unsafe { asm!("syscall", "ud2", out("rcx") _, out("r11") _, in("rax") 1) };
    });
    ipc::receive(program).expect("its call");
    let timeouts = Timeouts::new(Time::ZERO, Time::NEVER);
    let me = utcb::my_global_id();
    let awakener = spawn(move || {
        ipc::sleep(Time::period(3000));
        ipc::send(me, Message::new(0x33)).unwrap();
    });
    // An answer with label 5 is not valid.
    let next = ipc::ipc(program, ThreadId::ANY, timeouts, Message::with_words(5, &[1]).tag()).unwrap();
    assert_eq!((next.tag.label(), next.from), (0x33, thread::local_id_of(awakener).unwrap()));
    await_state(program, ThreadState::Inactive);
}

fn halted() {
    let server = server();
    thread::stop(server).unwrap();
    let me = utcb::my_global_id();
    let caller = spawn(move || {
        let word = ipc::call(server, Message::with_words(1, &[1])).unwrap().word(0);
        ipc::send(me, Message::with_words(1, &[word])).unwrap();
    });
    let error = ipc::receive_timeout(caller, Time::period(2000)).expect_err("the server is halted");
    assert_eq!(error.kind, IpcErrorKind::Timeout);
    thread::resume(server).unwrap();
    assert_eq!(ipc::receive(caller).unwrap().word(0), 2);
}

fn oneself() {
    for to in [utcb::my_global_id(), utcb::my_local_id()] {
        let error = ipc::ipc(to, ThreadId::ANY, Timeouts::NEVER, MessageTag::new(1, 0, 0)).unwrap_err();
        assert_eq!(error, IpcError::new(IpcPhase::Send, IpcErrorKind::NonExistingPartner));
    }
}

fn beyond_the_last() {
    for number in [1 << 18, (1 << 18) + 1, u32::MAX >> 1, u32::MAX] {
        let to = ThreadId::from_raw(u64::from(number) << 32 | 1);
        let error = ipc::call(to, Message::with_words(1, &[1])).expect_err("there is no such thread");
        assert_eq!(error, IpcError::new(IpcPhase::Send, IpcErrorKind::NonExistingPartner), "{number:#x}");
    }
}

fn waits_for_no_thread() {
    let server = spawn(|| {
        loop {
            let _ = ipc::wait();
        }
    });
    let absent = with_version(server.number(), server.version() + 1);
    for _ in 0..2 {
        await_waiting(server);
        let tag = Message::with_words(1, &[1]).tag();
        let error = ipc::ipc(server, absent, Timeouts::NEVER, tag).expect_err("there is no such thread");
        assert_eq!(error, IpcError::new(IpcPhase::Receive, IpcErrorKind::NonExistingPartner));
    }
}

fn own_priority() {
    static TRACE: AtomicU64 = AtomicU64::new(0);
    let trace = |digit| TRACE.store(TRACE.load(Ordering::Relaxed) * 10 + digit, Ordering::Relaxed);
    TRACE.store(0, Ordering::Relaxed);
    let middle = spawn(move || {
        let _ = ipc::wait();
        trace(2);
    });
    let low = spawn(move || {
        let request = ipc::wait().unwrap();
        ipc::send(middle, Message::new(0)).unwrap();
        trace(1);
        let _ = ipc::send(request.from, Message::new(2));
    });
    for (thread, priority) in [(low, 50), (middle, 80)] {
        await_waiting(thread);
        thread::set_priority(thread, priority).unwrap();
    }
    ipc::call(low, Message::with_words(1, &[1])).unwrap();
    assert_eq!(TRACE.load(Ordering::Relaxed), 21);
}

fn halted_before() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    RUNS.store(0, Ordering::Relaxed);
    let me = utcb::my_global_id();
    let thread = spawn(move || {
        let _ = ipc::ipc(me, ThreadId::ANY, Timeouts::NEVER, Message::with_words(1, &[1]).tag());
        RUNS.store(1, Ordering::Relaxed);
        l4::start::halt();
    });
    await_state(thread, ThreadState::PendingSend);
    thread::stop(thread).unwrap();
    // The thread's send phase is over, and it waits.
    assert_eq!(ipc::receive(thread).unwrap().tag.label(), 1);
    let _ = ipc::receive_timeout(thread, Time::ZERO);
    spawn(move || {
        let _ = ipc::call(thread, Message::with_words(1, &[1]));
    });
    ipc::sleep(Time::period(2000));
    assert_eq!(RUNS.load(Ordering::Relaxed), 0);
    thread::resume(thread).unwrap();
    while RUNS.load(Ordering::Relaxed) == 0 {
        thread::yield_now();
    }
}

fn forestalled_timeout() {
    let me = utcb::my_global_id();
    let receiver = spawn(move || {
        let request = ipc::receive_timeout(me, Time::period(500_000)).expect("it comes in time");
        let second = ipc::wait().map_or(0, |message| message.word(0));
        let _ = ipc::send(request.from, Message::with_words(1, &[second]));
    });
    await_waiting(receiver);
    let late = spawn(move || {
        ipc::sleep(Time::period(700_000));
        let _ = ipc::send(receiver, Message::with_words(1, &[7]));
    });
    assert_eq!(ipc::call(receiver, Message::with_words(1, &[1])).unwrap().word(0), 7, "what {late:?} sent");
}
