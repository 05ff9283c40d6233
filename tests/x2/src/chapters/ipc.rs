//! Tests of IPC of untyped words: phases, partners, timeouts, errors (ABI 11; X.2 rules 7.1-7.10,
//! 7.19).

use crate::framework::fixture::{Space, await_state, new_id, spawn, with_version};
use crate::framework::tests;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message, Received};
use l4::{kip, registers, thread, utcb};
use x2::control::ThreadState;
use x2::{IpcError, IpcErrorKind, IpcPhase, MessageTag, ThreadId, Time, Timeouts};

tests! {
    IPC0001 [7.9, 7.6] "all 63 words, label and sender arrive in the same space" words_in_one_space;
    IPC0002 [7.9, 7.6, 7.21] "all 63 words, label and sender arrive from another space" words_between_spaces;
    IPC0003 [1.12] "a send with timeout zero to a thread that does not wait for it fails without blocking" send_zero_timeout;
    IPC0004 [1.12] "a receive with timeout zero and no sender fails without blocking" receive_zero_timeout;
    IPC0005 [7.2a, 5.1, 5.2, 5.22] "a send to an id of no thread fails" send_to_no_thread;
    IPC0006 [7.2a, 5.2, 5.22] "a closed receive from an id of no thread fails" receive_from_no_thread;
    IPC0007 [1.8a, 2.2b] "a send timeout does not end before its time" send_timeout;
    IPC0008 [1.8a, 2.2b] "a receive timeout does not end before its time" receive_timeout;
    IPC0009 [7.3] "a closed receive takes only its partner's message" closed_receive;
    IPC0010 [7.3] "an open receive takes a sender that was there before" open_receive;
    IPC0011 [7.3] "a receive from anylocalthread takes only threads of the own space" any_local;
    IPC0012 [7.1, 7.20] "a server answers many clients with reply-and-wait" server_loop;
    IPC0013 [7.1] "an IPC without phases does nothing" no_phase;
    IPC0014 [7.5] "receiving from oneself is sleeping" sleeping;
    IPC0015 [7.5] "sending to oneself fails" send_to_oneself;
    IPC0016 [7.4, 13.5] "a local id names a thread as destination and as source" local_ids;
    IPC0017 [7.4] "a local id of another space names no thread" foreign_local_id;
    IPC0018 [7.2a] "a tag that announces more words than there are registers is refused" too_many_words;
    IPC0019 [7.1] "a failed send phase leaves out the receive phase" failed_send_has_no_receive;
    IPC0020 [7.1, 7.19] "Lipc has the results of Ipc" lipc;
    IPC0021 [13.6] "messages in registers leave the message registers in memory alone" register_messages;
    IPC0022 [7.7a] "waiting senders are served by priority, then in their order" order_of_senders;
    IPC0023 [ABI 5] "no registers but the outputs carry anything from the kernel or the sender" no_leaks;
    IPC0024 [7.3, ABI 19.2] "a thread in a closed receive does not get a third thread's message" third_thread_waits;
    IPC0025 [1.12, 7.20] "a reply to a thread that does not wait is lost" lost_reply;
    IPC0026 [1.10] "only the timeout of a phase that takes place counts" timeout_of_other_phase;
    IPC0027 [7.1] "a call reaches a partner that replies without blocking" immediate_reply;
    IPC0028 [1.2] "periods of length zero with any exponent do not wait" zero_periods;
    IPC0029 [7.18b] "flags other than P do not count on a send" flags_of_a_send;
    IPC0030 [7.2ab] "the first of several things that are wrong with a call is its error" order_of_checks;
    IPC0031 [13.3] "buffer registers keep what they have over messages" buffer_registers_stay;
    IPC0032 [7.7b] "an open receive does not end with a thread that is deleted" open_receive_goes_on;
}

pub(crate) fn error(phase: IpcPhase, kind: IpcErrorKind) -> IpcError {
    IpcError::new(phase, kind)
}

const SEND_TIMEOUT: IpcError = IpcError::new(IpcPhase::Send, IpcErrorKind::Timeout);
const RECEIVE_TIMEOUT: IpcError = IpcError::new(IpcPhase::Receive, IpcErrorKind::Timeout);

/// Sends 63 words, the first of which is `first`.
fn send_63(to: ThreadId, first: u64) {
    let message = (0..63).fold(Message::new(0xabc_def0_1234), |message, index| message.word(first + index));
    ipc::send(to, message).expect("the receiver takes it");
}

fn check_63(received: Received, first: u64) {
    assert_eq!(received.tag, MessageTag::new(0xabc_def0_1234, 63, 0));
    for index in 0..63 {
        assert_eq!(received.word(index), first + index as u64, "MR{}", index + 1);
    }
}

fn words_in_one_space() {
    let me = utcb::my_global_id();
    let sender = spawn(move || {
        send_63(me, 1000);
        send_63(me, 2000);
    });
    let received = ipc::wait().expect("a message");
    check_63(received, 1000);
    assert_eq!(received.from, thread::local_id_of(sender).unwrap());
    // In the second round the receiver comes first or second, as the scheduler likes: both orders
    // are tested over time.
    await_state(sender, ThreadState::PendingSend);
    check_63(ipc::receive(sender).expect("a message"), 2000);
}

fn words_between_spaces() {
    let me = utcb::my_global_id();
    let sender = Space::new().spawn(move || {
        send_63(me, 1000);
        send_63(me, 2000);
    });
    let received = ipc::wait().expect("a message");
    check_63(received, 1000);
    assert_eq!(received.from, sender);
    await_state(sender, ThreadState::PendingSend);
    check_63(ipc::receive(sender).expect("a message"), 2000);
}

/// Makes a thread that waits for another thread than the test's.
fn busy_thread() -> ThreadId {
    let silent = spawn(|| l4::start::halt());
    let busy = spawn(move || {
        let _ = ipc::receive(silent);
    });
    await_state(busy, ThreadState::Waiting);
    busy
}

fn send_zero_timeout() {
    let busy = busy_thread();
    assert_eq!(ipc::reply(busy, Message::with_words(1, &[2, 3])), Err(SEND_TIMEOUT));
    assert_eq!(MessageTag::from_raw(utcb::message_register(0)), MessageTag::ERROR);
}

fn receive_zero_timeout() {
    let silent = spawn(|| l4::start::halt());
    for from in [ThreadId::ANY, ThreadId::ANY_LOCAL, silent, thread::local_id_of(silent).unwrap()] {
        assert_eq!(ipc::receive_timeout(from, Time::ZERO), Err(RECEIVE_TIMEOUT), "{from:?}");
        assert_eq!(MessageTag::from_raw(utcb::message_register(0)), MessageTag::ERROR);
    }
}

/// Ids that no thread can have.
fn no_threads() -> [ThreadId; 7] {
    let info = kip().thread_info();
    let me = utcb::my_global_id();
    [
        new_id(),
        with_version(me.number(), me.version() + 1),
        with_version(info.system_base, 1),
        with_version(info.user_base - 1, 1),
        with_version((1 << info.number_bits) - 1, 1),
        with_version(1 << info.number_bits | me.number(), me.version()),
        ThreadId::local(utcb::pointer() + 0x40),
    ]
}

fn send_to_no_thread() {
    for to in no_threads().into_iter().chain([ThreadId::ANY, ThreadId::ANY_LOCAL]) {
        for timeout in [Time::ZERO, Time::NEVER] {
            let result = ipc::send_timeout(to, Message::new(1), timeout);
            assert_eq!(result, Err(error(IpcPhase::Send, IpcErrorKind::NonExistingPartner)), "{to:?}");
        }
    }
}

fn receive_from_no_thread() {
    for from in no_threads() {
        for timeout in [Time::ZERO, Time::NEVER] {
            let result = ipc::receive_timeout(from, timeout);
            assert_eq!(result, Err(error(IpcPhase::Receive, IpcErrorKind::NonExistingPartner)), "{from:?}");
        }
    }
}

const WAIT_MICROS: u64 = 3000;

fn send_timeout() {
    let busy = busy_thread();
    let before = thread::system_clock();
    assert_eq!(ipc::send_timeout(busy, Message::new(1), Time::period(WAIT_MICROS)), Err(SEND_TIMEOUT));
    assert!(thread::system_clock() - before >= WAIT_MICROS);
}

fn receive_timeout() {
    let before = thread::system_clock();
    assert_eq!(ipc::receive_timeout(ThreadId::ANY, Time::period(WAIT_MICROS)), Err(RECEIVE_TIMEOUT));
    assert!(thread::system_clock() - before >= WAIT_MICROS);
}

fn closed_receive() {
    let me = utcb::my_global_id();
    let first = spawn(move || send_63(me, 1));
    let second = spawn(move || send_63(me, 100));
    await_state(first, ThreadState::PendingSend);
    await_state(second, ThreadState::PendingSend);
    check_63(ipc::receive(second).unwrap(), 100);
    assert_eq!(ipc::receive_timeout(second, Time::ZERO), Err(RECEIVE_TIMEOUT));
    check_63(ipc::receive(first).unwrap(), 1);
}

fn open_receive() {
    let me = utcb::my_global_id();
    let sender = Space::new().spawn(move || send_63(me, 7));
    await_state(sender, ThreadState::PendingSend);
    let received = ipc::receive_timeout(ThreadId::ANY, Time::ZERO).expect("a sender was waiting");
    assert_eq!(received.from, sender);
    check_63(received, 7);
}

fn any_local() {
    let me = utcb::my_global_id();
    let foreign = Space::new().spawn(move || send_63(me, 1));
    await_state(foreign, ThreadState::PendingSend);
    assert_eq!(ipc::receive_timeout(ThreadId::ANY_LOCAL, Time::ZERO), Err(RECEIVE_TIMEOUT));
    let local = spawn(move || send_63(me, 2));
    let received = ipc::receive(ThreadId::ANY_LOCAL).unwrap();
    assert_eq!(received.from, thread::local_id_of(local).unwrap());
    check_63(received, 2);
    check_63(ipc::receive(foreign).unwrap(), 1);
}

fn server_loop() {
    const ROUNDS: u64 = 20;
    let server = spawn(|| {
        let mut request = ipc::wait().expect("a request");
        loop {
            let doubled = request.word(0) * 2;
            request = ipc::reply_wait(request.from, Message::with_words(1, &[doubled])).expect("a request");
        }
    });
    let me = utcb::my_global_id();
    let space = Space::new();
    for client in 0..6 {
        let body = move || {
            for round in 0..ROUNDS {
                let value = client * 1000 + round;
                let answer = ipc::call(server, Message::with_words(2, &[value])).expect("an answer");
                assert_eq!((answer.tag, answer.word(0)), (MessageTag::new(1, 1, 0), value * 2));
            }
            ipc::send(me, Message::new(3)).expect("the test counts");
        };
        if client % 2 == 0 {
            spawn(body)
        } else {
            space.spawn(body)
        };
    }
    for _ in 0..6 {
        assert_eq!(ipc::wait().unwrap().tag, MessageTag::new(3, 0, 0));
    }
}

fn no_phase() {
    utcb::set_message_register(1, 0x1234);
    let result = ipc::ipc(ThreadId::NIL, ThreadId::NIL, Timeouts::NEVER, MessageTag::new(5, 1, 0));
    assert_eq!(result.expect("no error").from, ThreadId::NIL);
}

fn sleeping() {
    for id in [utcb::my_global_id(), utcb::my_local_id()] {
        let before = thread::system_clock();
        assert_eq!(ipc::receive_timeout(id, Time::period(WAIT_MICROS)), Err(RECEIVE_TIMEOUT));
        assert!(thread::system_clock() - before >= WAIT_MICROS);
        assert_eq!(utcb::error_word(), 3);
    }
}

fn send_to_oneself() {
    for id in [utcb::my_global_id(), utcb::my_local_id()] {
        let expected = error(IpcPhase::Send, IpcErrorKind::NonExistingPartner);
        assert_eq!(ipc::send(id, Message::new(1)), Err(expected));
        assert_eq!(ipc::call(id, Message::new(1)), Err(expected));
    }
}

fn local_ids() {
    let me = utcb::my_local_id();
    let partner = spawn(move || {
        let request = ipc::receive(me).expect("a request");
        assert_eq!(request.from, me);
        ipc::send(me, Message::with_words(2, &[request.word(0) + 1])).expect("the test waits");
    });
    let local = thread::local_id_of(partner).unwrap();
    assert!(local.is_local());
    let answer = ipc::call(local, Message::with_words(1, &[41])).expect("an answer");
    assert_eq!((answer.from, answer.word(0)), (local, 42));
}

fn foreign_local_id() {
    let me = utcb::my_global_id();
    let sender = Space::new().spawn(move || {
        let _ = ipc::send(me, Message::new(1));
    });
    await_state(sender, ThreadState::PendingSend);
    // The sender's UTCB is the first of its space's area, where this space has the runner's.
    let place = ThreadId::local(crate::framework::fixture::root_utcb_area() + x2::utcb::MR0_OFFSET);
    assert_eq!(ipc::receive_timeout(place, Time::ZERO), Err(RECEIVE_TIMEOUT), "that is the runner");
    assert_eq!(ipc::wait().unwrap().from, sender);
}

fn too_many_words() {
    let partner = spawn(|| {
        let _ = ipc::wait();
    });
    await_state(partner, ThreadState::Waiting);
    for (untyped, typed) in [(63, 1), (1, 63), (32, 32), (63, 63)] {
        let tag = MessageTag::new(1, untyped, typed);
        let result = ipc::ipc(partner, ThreadId::NIL, Timeouts::NEVER, tag);
        assert_eq!(result, Err(error(IpcPhase::Send, IpcErrorKind::MessageOverflow)), "{tag:?}");
        assert_eq!(crate::framework::fixture::state_of(partner), ThreadState::Waiting);
    }
    ipc::send(partner, Message::new(1)).expect("the partner still waits");
}

fn failed_send_has_no_receive() {
    let me = utcb::my_global_id();
    let sender = spawn(move || send_63(me, 5));
    await_state(sender, ThreadState::PendingSend);
    let result = ipc::ipc(new_id(), ThreadId::ANY, Timeouts::NEVER, MessageTag::EMPTY);
    assert_eq!(result, Err(error(IpcPhase::Send, IpcErrorKind::NonExistingPartner)));
    check_63(ipc::wait().expect("the message is still there"), 5);
}

fn lipc() {
    let partner = spawn(|| {
        let mut request = ipc::wait().expect("a request");
        loop {
            let sum = request.words().sum();
            let tag = Message::with_words(9, &[sum]).tag();
            let timeouts = Timeouts::new(Time::ZERO, Time::NEVER);
            request = ipc::lipc(request.from, ThreadId::ANY_LOCAL, timeouts, tag).expect("a request");
        }
    });
    let local = thread::local_id_of(partner).unwrap();
    for id in [partner, local] {
        let tag = Message::with_words(8, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).tag();
        let answer = ipc::lipc(id, id, Timeouts::NEVER, tag).expect("an answer");
        assert_eq!((answer.from, answer.tag, answer.word(0)), (local, MessageTag::new(9, 1, 0), 55));
    }
    let result = ipc::lipc(new_id(), ThreadId::NIL, Timeouts::NEVER, MessageTag::EMPTY);
    assert_eq!(result, Err(error(IpcPhase::Send, IpcErrorKind::NonExistingPartner)));
    let result = ipc::lipc(ThreadId::NIL, ThreadId::ANY, Timeouts::ZERO, MessageTag::EMPTY);
    assert_eq!(result, Err(RECEIVE_TIMEOUT));
}

fn register_messages() {
    let partner = spawn(|| {
        let (mut from, (_, mut words)) = registers::receive(ThreadId::ANY).expect("a request");
        loop {
            let answer = (MessageTag::new(4, 7, 0), words.map(|word| !word));
            (from, (_, words)) = registers::reply_wait(from, answer).expect("a request");
        }
    });
    for index in 1..8 {
        utcb::set_message_register(index, 0x1111 * index as u64);
    }
    let words = [1, 2, 3, 4, 5, 6, u64::MAX];
    let (tag, answer) = registers::call(partner, (MessageTag::new(3, 7, 0), words)).expect("an answer");
    assert_eq!((tag, answer), (MessageTag::new(4, 7, 0), words.map(|word| !word)));
}

/// The senders of which the receiver of `order_of_senders` got messages, a decimal digit for each.
static ORDER: AtomicU64 = AtomicU64::new(0);

fn order_of_senders() {
    let me = utcb::my_global_id();
    ORDER.store(0, Ordering::Relaxed);
    for (digit, priority) in [(1, 50), (2, 90), (3, 50), (4, 90)] {
        let sender = spawn(move || {
            let _ = ipc::receive(me);
            let _ = ipc::send(me, Message::with_words(1, &[digit]));
        });
        thread::set_priority(sender, priority).expect("root may");
        ipc::send(sender, Message::new(0)).expect("it waits");
        while crate::framework::fixture::state_of(sender) != ThreadState::PendingSend {
            ipc::sleep(Time::period(500));
        }
    }
    for _ in 0..4 {
        let digit = ipc::wait().expect("a sender").word(0);
        ORDER.store(ORDER.load(Ordering::Relaxed) * 10 + digit, Ordering::Relaxed);
    }
    assert_eq!(ORDER.load(Ordering::Relaxed), 2413);
}

fn no_leaks() {
    let me = utcb::my_global_id();
    let sender = Space::new().spawn(move || ipc::send(me, Message::with_words(1, &[1])).unwrap());
    await_state(sender, ThreadState::PendingSend);
    let (mut rcx, mut rdx, mut r8, mut r11): (u64, u64, u64, u64);
    // SAFETY: the operands are the register contract of the call; MR1 arrives in RAX and is not
    // used.
    unsafe {
        core::arch::asm!(
            "push rbp",
            "push rbx",
            "call [{entry}]",
            "pop rbx",
            "pop rbp",
            entry = in(reg) kip().base() + x2::kip::IPC as u64,
            inout("rsi") 0u64 => _, inout("rdi") utcb::pointer() => _,
            inout("rdx") ThreadId::ANY.raw() => rdx, inout("r8") 0u64 => r8, inout("r9") 0u64 => _,
            lateout("rax") _, lateout("r10") _, lateout("r12") _, lateout("r13") _, lateout("r14") _,
            lateout("r15") _, lateout("rcx") rcx, lateout("r11") r11,
        );
    }
    for (name, value) in [("rcx", &mut rcx), ("rdx", &mut rdx), ("r8", &mut r8), ("r11", &mut r11)] {
        // RCX may be the return address in a stub, which lies in the kernel's half.
        let is_stub = *value & !0xfff == kip().word(x2::kip::IPC) & !0xfff;
        assert!(*value < 1 << 47 || *value == u64::MAX || is_stub, "{name} is {value:#x}");
    }
}

fn third_thread_waits() {
    let me = utcb::my_global_id();
    let partner = spawn(move || {
        let _ = ipc::receive(me);
        let _ = ipc::receive(me);
        ipc::send(me, Message::new(2)).unwrap();
    });
    ipc::send(partner, Message::new(1)).unwrap();
    await_state(partner, ThreadState::Waiting);
    let third = spawn(move || {
        assert_eq!(ipc::reply(partner, Message::new(3)), Err(SEND_TIMEOUT));
        ipc::send(partner, Message::new(4)).expect_err("the partner is deleted in the end");
    });
    await_state(third, ThreadState::PendingSend);
    ipc::send(partner, Message::new(1)).unwrap();
    assert_eq!(ipc::receive(partner).unwrap().tag.label(), 2);
}

fn lost_reply() {
    let client = spawn(|| l4::start::halt());
    assert_eq!(ipc::reply(client, Message::new(1)), Err(SEND_TIMEOUT));
}

fn timeout_of_other_phase() {
    let me = utcb::my_global_id();
    let partner = spawn(move || {
        // A receive timeout of zero has no effect on a send.
        let timeouts = Timeouts::new(Time::NEVER, Time::ZERO);
        ipc::ipc(me, ThreadId::NIL, timeouts, MessageTag::new(1, 0, 0)).expect("the test receives");
        l4::thread::yield_now();
        ipc::send(me, Message::new(2)).expect("the test receives");
    });
    await_state(partner, ThreadState::PendingSend);
    assert_eq!(ipc::receive(partner).unwrap().tag.label(), 1);
    let timeouts = Timeouts::new(Time::ZERO, Time::NEVER);
    let received = ipc::ipc(ThreadId::NIL, partner, timeouts, MessageTag::EMPTY).expect("the partner sends");
    assert_eq!(received.tag.label(), 2);
}

fn immediate_reply() {
    let partner = spawn(|| {
        let mut request = ipc::wait().unwrap();
        loop {
            // With a timeout of zero the caller must already be receiving.
            request = ipc::reply_wait(request.from, Message::new(2)).expect("the caller waits");
        }
    });
    thread::set_priority(partner, 200).unwrap();
    for _ in 0..100 {
        assert_eq!(ipc::call(partner, Message::new(1)).unwrap().tag.label(), 2);
    }
    thread::set_priority(partner, 20).unwrap();
    for _ in 0..100 {
        assert_eq!(ipc::call(partner, Message::new(1)).unwrap().tag.label(), 2);
    }
}

fn zero_periods() {
    for exponent in 1..32 {
        let zero = Time::from_raw(exponent << 10);
        assert_eq!(ipc::receive_timeout(ThreadId::ANY, zero), Err(RECEIVE_TIMEOUT));
    }
}

fn flags_of_a_send() {
    let partner = spawn(|| {
        let mut request = ipc::wait().unwrap();
        loop {
            let words = [request.tag.raw()];
            request =
                ipc::reply_wait(request.from, Message::with_words(2, &words)).expect("the caller waits");
        }
    });
    for flags in [1 << 13, 1 << 14, 1 << 15, 7 << 13] {
        let tag = MessageTag::new(5, 0, 0);
        let answer = ipc::ipc(partner, partner, Timeouts::NEVER, MessageTag::from_raw(tag.raw() | flags));
        assert_eq!(answer.unwrap().word(0), tag.raw(), "{flags:#x}");
    }
}

fn order_of_checks() {
    let (unused, busy, too_long) = (new_id(), busy_thread(), MessageTag::new(1, 63, 63));
    let call = |to, tag| ipc::ipc(to, unused, Timeouts::ZERO, tag).map(drop);
    let refused = |phase| Err(error(phase, IpcErrorKind::NonExistingPartner));
    assert_eq!(call(unused, too_long), refused(IpcPhase::Send));
    assert_eq!(call(busy, too_long), Err(error(IpcPhase::Send, IpcErrorKind::MessageOverflow)));
    assert_eq!(call(busy, MessageTag::EMPTY), Err(SEND_TIMEOUT));
    // The source is checked after the transfer, and before the wait.
    let me = utcb::my_global_id();
    let partner = spawn(move || {
        let label = ipc::receive(me).expect("the message").tag.label();
        ipc::send(me, Message::new(label + 1)).expect("the test waits");
    });
    await_state(partner, ThreadState::Waiting);
    assert_eq!(call(partner, MessageTag::new(8, 0, 0)), refused(IpcPhase::Receive));
    assert_eq!(ipc::receive(partner).expect("its answer").tag.label(), 9);
    assert_eq!(call(ThreadId::NIL, too_long), refused(IpcPhase::Receive), "there is no message");
}

fn buffer_registers_stay() {
    let me = utcb::my_global_id();
    let partner = Space::new().spawn(move || {
        loop {
            let request = ipc::receive(me).expect("a request");
            let answer = (0..63).fold(Message::new(1), |message, index| message.word(index));
            let answer = if request.tag.label() == 1 {
                answer
            } else {
                Message::with_words(2, &[7]).map_item(x2::MapItem::map(x2::Fpage::NIL, 0))
            };
            ipc::send(me, answer).expect("the test waits");
        }
    });
    utcb::accept_untyped_words();
    let values: [u64; 32] = core::array::from_fn(|index| 0xb000 + index as u64);
    for (index, value) in values.into_iter().enumerate() {
        // SAFETY: neither mappings nor strings are accepted.
        unsafe { utcb::set_buffer_register(1 + index, value) };
    }
    for label in [1, 2] {
        assert_eq!(ipc::call(partner, Message::new(label)).expect("an answer").tag.label(), label);
        let found: [u64; 32] = core::array::from_fn(|index| utcb::buffer_register(1 + index));
        assert_eq!((utcb::buffer_register(0), found), (x2::Acceptor::UNTYPED_WORDS.raw(), values));
    }
}

fn open_receive_goes_on() {
    let me = utcb::my_global_id();
    let gone = spawn(|| l4::start::halt());
    let receivers = [ThreadId::ANY, ThreadId::ANY_LOCAL].map(|from| {
        let receiver = spawn(move || {
            let label = ipc::receive(from).map_or(0, |message| message.tag.label());
            ipc::send(me, Message::new(label)).expect("the test waits");
        });
        await_state(receiver, ThreadState::Waiting);
        receiver
    });
    thread::delete(gone).unwrap();
    for receiver in receivers {
        ipc::send(receiver, Message::new(5)).expect("it still waits");
        assert_eq!(ipc::receive(receiver).expect("it tells").tag.label(), 5);
    }
}
