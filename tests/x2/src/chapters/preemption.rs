//! Total quanta and preemption (X.2 rules 3.15, 3.18-3.23, 4.1-4.14). The kernel's host tests check
//! how long a delay lasts, with a clock that they set; these tests check only the order of events.

use crate::framework::fixture::{await_state, spawn};
use crate::framework::tests;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message, Received};
use l4::thread::{self, ThreadControl};
use l4::utcb;
use x2::control::{PreemptionControl, ThreadState, TimeControl, UNCHANGED};
use x2::protocol::{PREEMPTION_TAG, exception};
use x2::utcb::preempt_flags::{DELAY, PENDING, SIGNAL};
use x2::{ThreadId, Time, Timeouts};

tests! {
    PRE0001 [2.2b, 3.18a, 3.19, 3.20, 3.23a, 12.1] "a thread whose total quantum is used up tells its scheduler, and runs again with a new one" total_quantum;
    PRE0002 [3.21] "neither being resumed nor ThreadSwitch helps it" stopped;
    PRE0003 [3.19, 4.14] "the message changes nothing in the thread" quantum_is_transparent;
    PRE0004 [3.18a] "an infinite quantum is never used up" infinite_quantum;
    PRE0005 [2.2b, 4.9a, ABI 13] "a preemption fault tells the handler when" fault;
    PRE0006 [4.2, 4.4a, 4.8] "a delayed preemption is seen pending, and takes place when the thread gives up the processor" delay;
    PRE0007 [4.5, 4.7, 4.10] "a preemption at the end of a delay is an exception, and the thread goes on with the answer" exception_at_the_end;
    PRE0008 [4.11] "without a handler the thread is halted" no_handler;
}

/// A priority below that of the test.
const LOW: u8 = 90;
static COUNT: AtomicU64 = AtomicU64::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);

/// Makes a thread of low priority that runs `body` when it is told to. This thread is its scheduler
/// and exception handler.
fn low(body: impl FnOnce() + 'static) -> ThreadId {
    COUNT.store(0, Ordering::Relaxed);
    SEEN.store(0, Ordering::Relaxed);
    let me = utcb::my_global_id();
    let id = spawn(move || {
        utcb::set_exception_handler(me);
        ipc::receive(me).expect("the test tells it to go");
        body();
    });
    // The thread's quantum is not used up by its start, however slow that is.
    await_state(id, ThreadState::Waiting);
    let arguments = ThreadControl { space: id, scheduler: me, pager: ThreadId::NIL, utcb: None };
    thread::control(id, arguments).expect("a new scheduler");
    thread::set_priority(id, LOW).expect("the test is its scheduler");
    id
}

fn go(id: ThreadId) {
    ipc::send(id, Message::new(0)).expect("it waits");
}

fn count_for_ever() {
    loop {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

fn set_times(id: ThreadId, slice: Option<Time>, quantum: Option<Time>) -> (ThreadState, u16) {
    let control = TimeControl::new(slice, quantum).raw();
    let (state, times) = thread::schedule(id, control, UNCHANGED, UNCHANGED, UNCHANGED).unwrap();
    (state, times as u16)
}

fn allow_delay(id: ThreadId, max_delay: u16) {
    let control = PreemptionControl { max_delay, sensitive_priority: 200 }.raw();
    thread::schedule(id, UNCHANGED, UNCHANGED, UNCHANGED, control).unwrap();
    set_times(id, Some(Time::NEVER), None);
}

fn total_quantum() {
    let id = low(count_for_ever);
    assert_eq!(set_times(id, None, Some(Time::period(3000))).1, Time::NEVER.raw());
    go(id);
    let mut counted = 0;
    for _ in 0..3 {
        let before = thread::system_clock();
        let told = ipc::receive(id).expect("the end of its quantum");
        assert_eq!(told.tag, PREEMPTION_TAG);
        assert!((before..=thread::system_clock()).contains(&told.word(0)), "the clock at the end");
        assert_eq!(told.word(1), 0);
        // The thread may have made little progress: the time of a slow emulator counts, too.
        counted = COUNT.load(Ordering::Relaxed);
        ipc::sleep(Time::period(1000));
        assert_eq!(COUNT.load(Ordering::Relaxed), counted, "it has stopped");
        let before = set_times(id, None, Some(Time::period(1000)));
        assert_eq!(before, (ThreadState::Running, Time::ZERO.raw()));
    }
    ipc::receive(id).expect("the end of the last one");
    set_times(id, None, Some(Time::NEVER));
    while COUNT.load(Ordering::Relaxed) == counted {
        ipc::sleep(Time::period(1000));
    }
}

fn stopped() {
    let id = low(count_for_ever);
    set_times(id, None, Some(Time::period(1000)));
    go(id);
    ipc::receive(id).expect("the end of its quantum");
    let counted = COUNT.load(Ordering::Relaxed);
    thread::resume(id).unwrap();
    thread::switch_to(id);
    thread::stop(id).unwrap();
    thread::resume(id).unwrap();
    thread::switch_to(id);
    ipc::sleep(Time::period(1000));
    assert_eq!(COUNT.load(Ordering::Relaxed), counted);
    set_times(id, None, Some(Time::NEVER));
    while COUNT.load(Ordering::Relaxed) == counted {
        ipc::sleep(Time::period(1000));
    }
}

fn quantum_is_transparent() {
    let id = low(|| {
        (0..64).for_each(|index| utcb::set_message_register(index, 0x9000 + index as u64));
        utcb::set_error_word(0x55);
        while SEEN.load(Ordering::Relaxed) < 5 {
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
        (0..64).for_each(|index| assert_eq!(utcb::message_register(index), 0x9000 + index as u64));
        assert_eq!(utcb::error_word(), 0x55);
        SEEN.store(100, Ordering::Relaxed);
    });
    set_times(id, None, Some(Time::period(1000)));
    go(id);
    for _ in 0..5 {
        assert_eq!(ipc::receive(id).expect("the end of its quantum").tag, PREEMPTION_TAG);
        SEEN.fetch_add(1, Ordering::Relaxed);
        set_times(id, None, Some(Time::period(1000)));
    }
    set_times(id, None, Some(Time::NEVER));
    while SEEN.load(Ordering::Relaxed) != 100 {
        let timeouts = Timeouts::new(Time::NEVER, Time::period(1000));
        if ipc::ipc(ThreadId::NIL, id, timeouts, x2::MessageTag::EMPTY).is_ok() {
            set_times(id, None, Some(Time::NEVER));
        }
    }
}

fn infinite_quantum() {
    let id = low(count_for_ever);
    assert_eq!(set_times(id, None, Some(Time::period(500))).1, Time::NEVER.raw());
    let left = Time::from_raw(set_times(id, None, Some(Time::NEVER)).1).micros();
    assert!(left.is_some_and(|left| left > 490), "{left:?} us of 500 are left");
    go(id);
    for _ in 0..5 {
        ipc::sleep(Time::period(1000));
    }
    assert_eq!(
        thread::schedule(id, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED).unwrap().0,
        ThreadState::Running
    );
}

fn fault() {
    let me = utcb::my_global_id();
    let handler = spawn(move || {
        let told = ipc::wait().expect("a preemption");
        let words = [told.tag.raw(), told.word(0), told.word(1)];
        ipc::send(me, Message::with_words(0, &words)).unwrap();
    });
    let id = low(move || {
        utcb::set_exception_handler(handler);
        utcb::set_preempt_flags(SIGNAL);
        count_for_ever();
    });
    let start = thread::system_clock();
    go(id);
    // The thread is preempted each time that the test wakes up.
    let told: Received = loop {
        if let Ok(told) = ipc::receive_timeout(handler, Time::period(1000)) {
            break told;
        }
    };
    assert_eq!(told.word(0), PREEMPTION_TAG.raw());
    assert!((start..=thread::system_clock()).contains(&told.word(1)));
    assert_eq!(told.word(2), 0);
}

fn delay() {
    let id = low(|| {
        while utcb::flags() as u8 & PENDING == 0 {
            if utcb::flags() as u8 & DELAY == 0 {
                // The delay was over before the thread looked at the flag.
                utcb::set_preempt_flags(DELAY);
            }
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
        SEEN.store(1, Ordering::Relaxed);
        thread::yield_now();
        SEEN.store(2, Ordering::Relaxed);
        count_for_ever();
    });
    allow_delay(id, u16::MAX);
    go(id);
    ipc::sleep(Time::period(1000));
    // SEEN becomes 1 at the latest when the delay ends, while the thread still has the processor.
    while SEEN.load(Ordering::Relaxed) == 0 {
        ipc::sleep(Time::period(1000));
    }
    while SEEN.load(Ordering::Relaxed) == 1 {
        ipc::sleep(Time::period(1000));
    }
}

fn exception_at_the_end() {
    let id = low(|| {
        utcb::set_preempt_flags(DELAY | SIGNAL);
        while SEEN.load(Ordering::Relaxed) == 0 {
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
        SEEN.store(0x100 | u64::from(utcb::flags() as u8), Ordering::Relaxed);
        count_for_ever();
    });
    allow_delay(id, 500);
    go(id);
    // The test would preempt the thread each time that it wakes up.
    let raised = loop {
        if let Ok(raised) = ipc::receive_timeout(id, Time::period(1000)) {
            break raised;
        }
    };
    assert_eq!(raised.tag, exception::PREEMPTION_TAG);
    assert_eq!(raised.word(exception::NUMBER - 1), exception::PREEMPTION_NUMBER);
    let ip = raised.word(exception::RIP - 1);
    assert!(crate::framework::image::range().contains(&ip));
    let registers: [u64; exception::REPLY_WORDS] = core::array::from_fn(|index| raised.word(index));
    SEEN.store(1, Ordering::Relaxed);
    let counted = COUNT.load(Ordering::Relaxed);
    ipc::sleep(Time::period(1000));
    assert_eq!(COUNT.load(Ordering::Relaxed), counted, "it waits for the answer");
    ipc::send(id, Message::with_words(0, &registers)).expect("it waits");
    while SEEN.load(Ordering::Relaxed) == 1 {
        ipc::sleep(Time::period(1000));
    }
    assert_eq!(SEEN.load(Ordering::Relaxed), 0x100 | u64::from(SIGNAL), "delay and pending are cleared");
}

fn no_handler() {
    let id = low(|| {
        utcb::set_exception_handler(ThreadId::NIL);
        utcb::set_preempt_flags(DELAY | SIGNAL);
        count_for_ever();
    });
    allow_delay(id, 500);
    go(id);
    while !thread::inspect(id).expect("it exists").state.halted {
        ipc::sleep(Time::period(1000));
    }
}
