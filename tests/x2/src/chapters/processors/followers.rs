//! Tests of many threads that wait to send to a thread that moves.

use super::place;
use crate::framework::fixture::{await_state, spawn, state_of};
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::{kip, thread, utcb};
use x2::control::ThreadState;
use x2::{IpcErrorKind, ThreadId, Time};

const SENDERS: usize = 220;

/// How the send of each thread has ended.
static ENDS: [AtomicU64; SENDERS] = [const { AtomicU64::new(PENDING) }; SENDERS];
const PENDING: u64 = 0;
const DELIVERED: u64 = 1;
const ABORTED: u64 = 2;
const TIMED_OUT: u64 = 3;

/// The messages that the receiver got, in this order, and their number.
static LOG: [AtomicU64; SENDERS] = [const { AtomicU64::new(0) }; SENDERS];
static LOGGED: AtomicU64 = AtomicU64::new(0);

/// What happens to a sender while its receiver moves.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Waits,
    IsAborted,
    IsDeleted,
    /// The thread's timeout ends at some time.
    TimesOut,
}

fn fate(number: usize) -> Fate {
    match number % 11 {
        3 => Fate::IsAborted,
        6 => Fate::IsDeleted,
        1 | 8 => Fate::TimesOut,
        _ => Fate::Waits,
    }
}

fn sender(receiver: ThreadId, number: usize) {
    let timeout = match fate(number) {
        Fate::TimesOut => Time::period(20_000 + 700 * number as u64),
        _ => Time::NEVER,
    };
    let sent = ipc::send_timeout(receiver, Message::with_words(0, &[number as u64]), timeout);
    let end = match sent.map_err(|error| error.kind) {
        Ok(()) => DELIVERED,
        Err(IpcErrorKind::Cancelled) => ABORTED,
        Err(IpcErrorKind::Timeout) => TIMED_OUT,
        Err(kind) => panic!("{number} ends by {kind:?}"),
    };
    ENDS[number].store(end, Ordering::Relaxed);
}

/// Ends the sends of the threads with this fate, while the receiver moves.
fn end_some(senders: &[ThreadId]) {
    for (number, &sender) in senders.iter().enumerate() {
        match fate(number) {
            Fate::IsAborted => drop(thread::abort_ipc(sender).expect("it is a neighbour")),
            Fate::IsDeleted => thread::delete(sender).expect("nothing else deletes it"),
            Fate::Waits | Fate::TimesOut => {}
        }
    }
}

pub(super) fn many_follow() {
    const MOVES: u64 = 12;
    let me = place(utcb::my_global_id(), 0);
    ENDS.iter().for_each(|end| end.store(PENDING, Ordering::Relaxed));
    LOGGED.store(0, Ordering::Relaxed);
    let receiver = spawn(|| {
        ipc::receive(kip().root()).expect_err("it is aborted");
        loop {
            let message = ipc::wait().expect("a sender");
            let place = LOGGED.load(Ordering::Relaxed);
            LOG[place as usize].store(message.word(0), Ordering::Relaxed);
            LOGGED.store(place + 1, Ordering::Relaxed);
        }
    });
    await_state(receiver, ThreadState::Waiting);
    let senders: [ThreadId; SENDERS] = core::array::from_fn(|number| {
        let sender = spawn(move || sender(receiver, number));
        if number % 3 == 0 {
            place(sender, number as u64);
        }
        // Waits until the sender waits, or its timeout has expired: the next sender is then after
        // it in the queue.
        while state_of(sender) == ThreadState::Running {
            thread::yield_now();
        }
        sender
    });
    let ender = spawn(move || {
        ipc::receive(me).expect("the order");
        end_some(&senders);
        ipc::send(me, Message::new(0)).expect("the test waits");
    });
    place(ender, 1);
    place(receiver, 1);
    ipc::send(ender, Message::new(0)).expect("it waits for it");
    for number in 0..MOVES {
        place(receiver, number);
    }
    ipc::receive(ender).expect("it is done");
    place(receiver, 1);
    thread::abort_ipc(receiver).expect("it is a neighbour");
    let ended = |number: usize| ENDS[number].load(Ordering::Relaxed);
    let is_left = |number: &usize| fate(*number) != Fate::IsDeleted;
    while (0..SENDERS).filter(is_left).any(|number| ended(number) == PENDING) {
        thread::yield_now();
    }
    let delivered = || (0..SENDERS).filter(|number| ended(*number) == DELIVERED);
    while LOGGED.load(Ordering::Relaxed) < delivered().count() as u64 {
        thread::yield_now();
    }
    assert_eq!(LOGGED.load(Ordering::Relaxed), delivered().count() as u64, "each message arrives once");
    for (number, logged) in delivered().zip(&LOG) {
        assert_eq!(logged.load(Ordering::Relaxed), number as u64, "in order");
    }
    for number in (0..SENDERS).filter(is_left) {
        let expected = match fate(number) {
            Fate::Waits => DELIVERED,
            Fate::IsAborted => ABORTED,
            _ => ended(number),
        };
        assert_eq!(ended(number), expected, "sender {number}");
    }
}
