//! Tests of IPC timeouts: points, when a period begins, events that are pending when it ends (X.2
//! rules 1.4-1.14).

use crate::framework::fixture::{await_state, new_id, spawn, state_of};
use crate::framework::tests;
use l4::ipc::{self, Message};
use l4::{thread, utcb};
use x2::control::ThreadState;
use x2::{IpcError, IpcErrorKind, IpcPhase, MessageTag, ThreadId, Time, Timeouts};

tests! {
    TIM0001 [1.6, 1.8a, 1.9a, 2.2b] "a receive up to a point ends then, and not before" receive_until;
    TIM0002 [1.6, 1.8a, 1.9a, 2.2b] "a send up to a point ends then, and not before" send_until;
    TIM0003 [1.6, 1.12] "a point that has passed does not wait, and takes what is there" passed;
    TIM0004 [1.4] "an instant too far away has no point; the farthest one has" farthest;
    TIM0005 [1.11a] "the period of a receive phase begins after the send phase" begins_after_the_send;
    TIM0006 [1.14] "what is pending when a thread gets the processor late is received" late;
    TIM0007 [1.10] "bits above the two timeouts are ignored" upper_bits;
}

const SEND: IpcError = IpcError::new(IpcPhase::Send, IpcErrorKind::Timeout);
const RECEIVE: IpcError = IpcError::new(IpcPhase::Receive, IpcErrorKind::Timeout);

/// How many microseconds before its exact time a point may be in these tests.
const STEP: u64 = 64;

fn point_in(micros: u64) -> Time {
    let now = thread::system_clock();
    Time::point(now, now + micros).expect("near enough")
}

/// Checks that `wait`, called with a point, ends at that point.
fn ends_at_the_point(wait: impl Fn(Time)) {
    for micros in [200, 3000, 20_000] {
        let before = thread::system_clock();
        wait(point_in(micros));
        let taken = thread::system_clock() - before;
        assert!(taken + STEP >= micros, "{taken} us instead of {micros}");
    }
}

fn receive_until() {
    let silent = spawn(|| l4::start::halt());
    for from in [ThreadId::ANY, ThreadId::ANY_LOCAL, silent, utcb::my_global_id()] {
        ends_at_the_point(|point| assert_eq!(ipc::receive_timeout(from, point), Err(RECEIVE)));
    }
}

fn send_until() {
    let busy = spawn(|| l4::start::halt());
    ends_at_the_point(|point| assert_eq!(ipc::send_timeout(busy, Message::new(1), point), Err(SEND)));
}

fn passed() {
    let point = point_in(500);
    let me = utcb::my_global_id();
    let sender = spawn(move || ipc::send(me, Message::with_words(1, &[5])).unwrap());
    await_state(sender, ThreadState::PendingSend);
    ipc::sleep(Time::period(2000));
    assert_eq!(ipc::receive_timeout(sender, point).expect("it waits already").word(0), 5);
    let before = thread::system_clock();
    assert_eq!(ipc::receive_timeout(ThreadId::ANY, point), Err(RECEIVE));
    assert_eq!(ipc::send_timeout(sender, Message::new(1), point), Err(SEND));
    assert!(thread::system_clock() - before < 1_000_000, "neither waits");
}

fn farthest() {
    let now = thread::system_clock();
    let longest = 1023u64 << 15;
    assert_eq!(Time::point(now, now + longest + (2 << 15)), None);
    // A message ends the wait for a point half a minute away.
    let me = utcb::my_global_id();
    let sender = spawn(move || {
        ipc::sleep(Time::period(1000));
        ipc::send(me, Message::new(1)).unwrap();
    });
    let far = Time::point(now, now + longest).expect("it has one");
    assert!(ipc::receive_timeout(sender, far).is_ok());
}

fn begins_after_the_send() {
    const SEND_WAITS: u64 = 6000;
    const RECEIVE_WAITS: u64 = 4000;
    let me = utcb::my_global_id();
    // The thread calls the test, which does not answer, and reports when its receive phase has
    // ended.
    let caller = spawn(move || {
        let timeouts = Timeouts::new(Time::NEVER, Time::period(RECEIVE_WAITS));
        assert_eq!(ipc::call_timeouts(me, Message::new(1), timeouts), Err(RECEIVE));
        ipc::send(me, Message::with_words(2, &[thread::system_clock()])).unwrap();
    });
    await_state(caller, ThreadState::PendingSend);
    ipc::sleep(Time::period(SEND_WAITS));
    let taken = thread::system_clock();
    assert_eq!(ipc::receive(caller).unwrap().tag.label(), 1);
    let ended = ipc::receive(caller).unwrap().word(0);
    assert!(ended >= taken + RECEIVE_WAITS, "{} us", ended - taken);
}

fn late() {
    let me = utcb::my_global_id();
    let other = spawn(move || {
        let receiver = ipc::receive(me).unwrap().word(0);
        ipc::send(ThreadId::from_raw(receiver), Message::with_words(1, &[7])).unwrap();
    });
    // The thread sends to the test, and then receives with a short timeout; the test keeps the
    // processor for longer than that.
    let receiver = spawn(move || {
        let timeouts = Timeouts::new(Time::NEVER, Time::period(100));
        let received = ipc::ipc(me, other, timeouts, MessageTag::new(1, 0, 0));
        let word = received.map_or(0, |received| received.word(0));
        ipc::send(me, Message::with_words(2, &[word])).unwrap();
    });
    thread::set_priority(receiver, 50).unwrap();
    while state_of(receiver) != ThreadState::PendingSend {
        ipc::sleep(Time::period(500));
    }
    ipc::send(other, Message::with_words(0, &[receiver.raw()])).unwrap();
    await_state(other, ThreadState::PendingSend);
    assert_eq!(ipc::receive(receiver).unwrap().tag.label(), 1);
    let until = thread::system_clock() + 3000;
    while thread::system_clock() < until {}
    assert_eq!(ipc::receive(receiver).unwrap().word(0), 7);
}

fn upper_bits() {
    let absent = new_id();
    let timeouts = Timeouts::from_raw(Timeouts::ZERO.raw() | 0xabcd_ef01 << 32);
    let result = ipc::ipc(ThreadId::NIL, ThreadId::ANY, timeouts, MessageTag::EMPTY);
    assert_eq!(result, Err(RECEIVE));
    let result = ipc::ipc(absent, ThreadId::NIL, timeouts, MessageTag::EMPTY);
    assert_eq!(result.unwrap_err().kind, IpcErrorKind::NonExistingPartner);
}
