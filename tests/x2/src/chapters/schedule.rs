//! Tests of Schedule, ThreadSwitch, priorities, and threads of interrupts (ABI 12.4, 12.5; X.2
//! rules 3.1-3.17, 5.19-5.21).

use crate::framework::fixture::{Space, activate, await_state, new_id, new_root_utcb, spawn, state_of};
use crate::framework::tests;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::{kip, thread, utcb};
use x2::control::{PreemptionControl, ThreadState, TimeControl, UNCHANGED};
use x2::{ErrorCode, IpcErrorKind, ThreadId, Time};

tests! {
    SCH0001 [3.12a] "Schedule tells the state of a thread" states;
    SCH0002 [3.13] "Schedule on what is no thread" of_no_thread;
    SCH0003 [3.5c] "only the scheduler's space may call Schedule" foreign_caller;
    SCH0004 [1.9b, 3.3b, 3.10, 3.11, 3.14, 3.18c] "parameters out of range are error 5 and change nothing" invalid_parameters;
    SCH0005 [3.1, 3.27] "a thread of higher priority runs as soon as it can" higher_priority_first;
    SCH0006 [3.17a] "a thread that comes before the own by a new priority, its own or this one's, runs" changed_priorities;
    SCH0007 [3.25] "ThreadSwitch reaches a thread of lower priority" switch_to_lower;
    SCH0008 [3.25] "ThreadSwitch to what cannot run is no error" switch_to_halted;
    SCH0009 [3.1] "threads of equal priority share the processor" round_robin;
    SCH0010 [3.15] "the time word tells a timeslice and an infinite quantum" time_word;
    SCH0011 [5.19, 5.20, 3.13] "interrupts are associated, once delivered, and refused when they cannot be" interrupt_threads;
    SCH0012 [2.1, 2.2a] "the clock never goes back, between threads neither" monotonic_clock;
    SCH0013 [3.6, 13.5] "Schedule takes local ids, and threads that are inactive or halted" any_thread;
    SCH0014 [3.16] "a new timeslice and a new quantum replace what was left" new_times;
    SCH0015 [3.24] "giving up the processor lets the others of the same priority run" yielding;
    SCH0016 [3.5ab, 3.9] "a priority above the caller's own is error 5, also a sensitive one, but for the privileged" priority_above_own;
    SCH0017 [3.4] "a preempted thread keeps the rest of the timeslice, and comes first among its equals" preempted_goes_on;
    SCH0018 [3.26] "ThreadSwitch to oneself gives nothing up" switch_to_oneself;
    SCH0019 [13.5] "local ids of threads of the own space go wherever an id is taken, but to name a space or a thread to control" local_ids;
    SCH0020 [3.2a] "a new thread has priority 100, a timeslice of 10 ms and no total quantum" new_thread;
}

fn states() {
    let waiting = spawn(|| l4::start::halt());
    await_state(waiting, ThreadState::Waiting);
    let sending = spawn(move || {
        let _ = ipc::send(waiting, Message::new(0));
    });
    await_state(sending, ThreadState::PendingSend);
    assert_eq!(state_of(utcb::my_global_id()), ThreadState::Running);
    assert_eq!(state_of(utcb::my_local_id()), ThreadState::Running);
    thread::stop(sending).unwrap();
    thread::delete(sending).unwrap();
}

fn schedule_nothing(id: ThreadId) -> thread::Result<ThreadState> {
    thread::schedule(id, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED).map(|(state, _)| state)
}

fn of_no_thread() {
    assert_eq!(schedule_nothing(new_id()), Ok(ThreadState::Dead));
    let info = kip().thread_info();
    for id in [ThreadId::NIL, ThreadId::interrupt(info.system_base), ThreadId::interrupt(5)] {
        assert_eq!(schedule_nothing(id), Err(Some(ErrorCode::InvalidThread)), "{id:?}");
    }
}

fn foreign_caller() {
    let me = utcb::my_global_id();
    let other = Space::new().spawn(move || {
        for id in [me, kip().root(), utcb::my_global_id()] {
            assert_eq!(schedule_nothing(id), Err(Some(ErrorCode::NoPrivilege)), "{id:?}");
        }
        ipc::send(me, Message::new(1)).unwrap();
    });
    ipc::receive(other).unwrap();
}

fn invalid_parameters() {
    let other = spawn(|| l4::start::halt());
    await_state(other, ThreadState::Waiting);
    let before = thread::schedule(other, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED).unwrap();
    let point = Time::from_raw(0x8123);
    let processors = u64::from(kip().processor_info().processors);
    for (time, processor) in [
        (TimeControl::new(Some(Time::ZERO), None).raw(), UNCHANGED),
        (TimeControl::new(Some(point), None).raw(), UNCHANGED),
        (TimeControl::new(None, Some(Time::ZERO)).raw(), UNCHANGED),
        (TimeControl::new(None, Some(point)).raw(), UNCHANGED),
        (UNCHANGED, processors),
        (TimeControl::new(Some(Time::period(1000)), None).raw(), processors),
    ] {
        let result = thread::schedule(other, time, processor, UNCHANGED, UNCHANGED);
        assert_eq!(result, Err(Some(ErrorCode::InvalidParameter)), "{time:#x} {processor}");
    }
    assert_eq!(thread::schedule(other, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED).unwrap(), before);
}

/// A trace of the threads that ran, in order: a digit for each.
static TRACE: AtomicU64 = AtomicU64::new(0);

fn trace(digit: u64) {
    // No other thread that writes to the trace preempts this one here, because they run by
    // priority.
    TRACE.store(TRACE.load(Ordering::Relaxed) * 10 + digit, Ordering::Relaxed);
}

/// Makes a thread that waits for a message from the test and then appends `digit` to the trace.
fn tracer(digit: u64, priority: u8) -> ThreadId {
    let me = utcb::my_global_id();
    let thread = spawn(move || {
        let _ = ipc::receive(me);
        trace(digit);
    });
    await_state(thread, ThreadState::Waiting);
    thread::set_priority(thread, priority).unwrap();
    thread
}

fn higher_priority_first() {
    TRACE.store(0, Ordering::Relaxed);
    let (low, high) = (tracer(1, 99), tracer(2, 101));
    ipc::send(low, Message::new(0)).unwrap();
    trace(3);
    ipc::send(high, Message::new(0)).unwrap();
    trace(4);
    while TRACE.load(Ordering::Relaxed) < 1000 {
        ipc::sleep(Time::period(1000));
    }
    assert_eq!(TRACE.load(Ordering::Relaxed), 3241);
}

fn changed_priorities() {
    TRACE.store(0, Ordering::Relaxed);
    let low = tracer(1, 99);
    ipc::send(low, Message::new(0)).unwrap();
    trace(2);
    thread::set_priority(low, 150).unwrap();
    trace(3);
    assert_eq!(TRACE.load(Ordering::Relaxed), 213);
    let next = tracer(4, 99);
    ipc::send(next, Message::new(0)).unwrap();
    trace(5);
    thread::set_priority(utcb::my_global_id(), 98).unwrap();
    trace(6);
    assert_eq!(TRACE.load(Ordering::Relaxed), 213_546);
}

fn switch_to_lower() {
    TRACE.store(0, Ordering::Relaxed);
    let low = tracer(1, 50);
    ipc::send(low, Message::new(0)).unwrap();
    // The thread runs on the rest of this thread's timeslice, which may be short. But it must never
    // run without a switch to it.
    for _ in 0..100 {
        thread::yield_now();
    }
    assert_eq!(TRACE.load(Ordering::Relaxed), 0);
    while TRACE.load(Ordering::Relaxed) == 0 {
        thread::switch_to(low);
    }
}

fn switch_to_halted() {
    let waiting = spawn(|| l4::start::halt());
    await_state(waiting, ThreadState::Waiting);
    for id in
        [new_id(), waiting, utcb::my_global_id(), utcb::my_local_id(), ThreadId::ANY, ThreadId::interrupt(1)]
    {
        thread::switch_to(id);
    }
}

fn round_robin() {
    static COUNTS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
    COUNTS.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    for count in &COUNTS {
        let thread = spawn(move || {
            loop {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        thread::set_priority(thread, 90).unwrap();
        let slice = TimeControl::new(Some(Time::period(1000)), None);
        thread::schedule(thread, slice.raw(), UNCHANGED, UNCHANGED, UNCHANGED).unwrap();
    }
    while COUNTS.iter().any(|count| count.load(Ordering::Relaxed) == 0) {
        ipc::sleep(Time::period(2000));
    }
}

fn time_word() {
    let other = spawn(|| l4::start::halt());
    await_state(other, ThreadState::Waiting);
    let slice = TimeControl::new(Some(Time::period(5000)), Some(Time::NEVER));
    thread::schedule(other, slice.raw(), UNCHANGED, UNCHANGED, UNCHANGED).unwrap();
    let (_, time) = thread::schedule(other, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED).unwrap();
    assert_eq!(time as u16, Time::NEVER.raw(), "total quantum");
    let rest = Time::from_raw((time >> 16) as u16).micros().expect("a finite period");
    assert!(rest <= 5000 && rest > 4900, "{rest} us of 5000 are left");
}

fn interrupt_threads() {
    let root = kip().root();
    // The interrupt line of the old coprocessors, on which no interrupt occurs.
    let line = ThreadId::interrupt(13);
    assert_eq!(schedule_nothing(line), Err(Some(ErrorCode::InvalidThread)));
    let me = utcb::my_global_id();
    thread::associate_interrupt(line, me).expect("the line exists");
    thread::set_priority(line, 200).expect("an associated interrupt has a priority");
    let acknowledge = ipc::reply(line, Message::new(0)).unwrap_err();
    assert_eq!(acknowledge.kind, IpcErrorKind::Timeout, "nothing was delivered");
    assert_eq!(ipc::receive_timeout(line, Time::ZERO).unwrap_err().kind, IpcErrorKind::Timeout);
    thread::disassociate_interrupt(line).unwrap();
    let other_version = ThreadId::global(13, 2).unwrap();
    assert_eq!(thread::associate_interrupt(other_version, me), Err(Some(ErrorCode::InvalidThread)));
    assert_eq!(thread::associate_interrupt(line, new_id()), Err(Some(ErrorCode::InvalidThread)));
    let wrong_space = thread::ThreadControl { space: root, scheduler: ThreadId::NIL, pager: me, utcb: None };
    assert_eq!(thread::control(line, wrong_space), Err(Some(ErrorCode::InvalidSpace)));
}

fn monotonic_clock() {
    static LATEST: AtomicU64 = AtomicU64::new(0);
    let check = || {
        for _ in 0..2000 {
            let latest = LATEST.load(Ordering::SeqCst);
            let now = thread::system_clock();
            assert!(now >= latest, "{now} after {latest}");
            LATEST.store(now, Ordering::SeqCst);
        }
    };
    let me = utcb::my_global_id();
    let other = spawn(move || {
        check();
        ipc::send(me, Message::new(1)).unwrap();
    });
    check();
    ipc::receive(other).unwrap();
}

fn any_thread() {
    let inactive = new_id();
    let root = kip().root();
    let control = thread::ThreadControl { space: root, scheduler: root, pager: ThreadId::NIL, utcb: None };
    thread::control(inactive, control).unwrap();
    thread::set_priority(inactive, 30).expect("inactive");
    assert_eq!(state_of(inactive), ThreadState::Inactive);
    let halted = spawn(|| l4::start::halt());
    await_state(halted, ThreadState::Waiting);
    let local = thread::local_id_of(halted).unwrap();
    thread::abort_ipc(halted).unwrap();
    thread::stop(halted).unwrap();
    thread::set_priority(local, 30).expect("halted, by its local id");
    assert_eq!(schedule_nothing(local), schedule_nothing(halted));
    let foreign = ThreadId::local(utcb::pointer() + 0x40);
    assert_eq!(schedule_nothing(foreign), Err(Some(ErrorCode::InvalidThread)));
}

fn new_times() {
    let other = spawn(|| l4::start::halt());
    await_state(other, ThreadState::Waiting);
    for (slice, quantum) in [(8000, 80_000), (3000, 32_000), (5000, 48_000)] {
        let times = TimeControl::new(Some(Time::period(slice)), Some(Time::period(quantum)));
        thread::schedule(other, times.raw(), UNCHANGED, UNCHANGED, UNCHANGED).unwrap();
        let (_, rest) = thread::schedule(other, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED).unwrap();
        for (rest, full) in [(rest >> 16, slice), (rest & 0xffff, quantum)] {
            let rest = Time::from_raw(rest as u16).micros().expect("a finite period");
            assert!(rest <= full && rest > full - full / 16, "{rest} of {full} us");
        }
    }
}

fn yielding() {
    static TURNS: AtomicU64 = AtomicU64::new(0);
    TURNS.store(0, Ordering::Relaxed);
    spawn(|| {
        loop {
            TURNS.fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
        }
    });
    // Sometimes a thread's timeslice ends just before it counts.
    let others_ran = (0..100).filter(|_| {
        let before = TURNS.load(Ordering::Relaxed);
        thread::yield_now();
        TURNS.load(Ordering::Relaxed) > before
    });
    assert!(others_ran.count() > 50);
}

fn priority_above_own() {
    const OWN: u8 = 90;
    let me = utcb::my_global_id();
    let space = Space::new();
    let other = space.spawn(|| l4::start::halt());
    let control = |scheduler| {
        let arguments = thread::ThreadControl { space: other, scheduler, pager: ThreadId::NIL, utcb: None };
        thread::control(other, arguments).unwrap();
    };
    let scheduler = space.spawn(move || {
        ipc::receive(me).unwrap();
        let sensitive = |priority| PreemptionControl { max_delay: 100, sensitive_priority: priority }.raw();
        let schedule = |priority: u8, preemption| {
            thread::schedule(other, UNCHANGED, UNCHANGED, priority.into(), preemption).map(drop)
        };
        for (priority, preemption) in
            [(OWN + 1, UNCHANGED), (OWN, sensitive(OWN + 1)), (u8::MAX, sensitive(1))]
        {
            assert_eq!(schedule(priority, preemption), Err(Some(ErrorCode::InvalidParameter)), "{priority}");
        }
        assert_eq!(schedule(OWN, sensitive(OWN)), Ok(()));
        assert_eq!(schedule(OWN - 1, UNCHANGED), Ok(()));
        ipc::send(me, Message::new(1)).unwrap();
    });
    // The scheduler is another thread of the caller's space.
    control(other);
    thread::set_priority(scheduler, OWN).unwrap();
    ipc::send(scheduler, Message::new(0)).unwrap();
    assert_eq!(ipc::receive(scheduler).unwrap().tag.label(), 1);
    // The test is not in the scheduler's space, but in a privileged one. Its own priority is lower
    // than this.
    thread::set_priority(other, u8::MAX).unwrap();
}

fn new_thread() {
    let unstarted = new_id();
    activate(unstarted, kip().root(), new_root_utcb()).unwrap();
    let (_, times) = thread::schedule(unstarted, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED).unwrap();
    assert_eq!(times as u16, Time::NEVER.raw(), "total quantum");
    let slice = Time::from_raw((times >> 16) as u16).micros().expect("a finite period");
    assert!((9900..=10_000).contains(&slice), "{slice} us");
    // Waiting senders are served by priority, and in their order where it is the same.
    let me = utcb::my_global_id();
    for (digit, priority) in [(1, Some(99)), (2, Some(100)), (3, None), (4, Some(101)), (5, Some(100))] {
        let sender = spawn(move || {
            ipc::receive(me).expect("the test says when");
            ipc::send(me, Message::with_words(1, &[digit])).expect("the test waits");
        });
        await_state(sender, ThreadState::Waiting);
        if let Some(priority) = priority {
            thread::set_priority(sender, priority).unwrap();
        }
        ipc::send(sender, Message::new(0)).unwrap();
        while state_of(sender) != ThreadState::PendingSend {
            ipc::sleep(Time::period(500));
        }
    }
    let order = (0..5).fold(0, |order, _| order * 10 + ipc::wait().expect("they all send").word(0));
    assert_eq!(order, 42351);
}

/// Makes two threads of priority 90 that count, with timeslices so long that none ends in a test.
/// Returns their counters, too.
fn two_counting() -> ([ThreadId; 2], &'static [AtomicU64; 2]) {
    static COUNTS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
    COUNTS.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    let threads = [0, 1].map(|number: usize| {
        let thread = spawn(move || {
            loop {
                COUNTS[number].fetch_add(1, Ordering::Relaxed);
            }
        });
        thread::set_priority(thread, 90).unwrap();
        thread::schedule(thread, LONG.raw(), UNCHANGED, UNCHANGED, UNCHANGED).unwrap();
        thread
    });
    (threads, &COUNTS)
}

const LONG: TimeControl = TimeControl::new(Some(Time::period(60_000_000)), None);

fn preempted_goes_on() {
    let (threads, counts) = two_counting();
    let rest = |thread| {
        let (_, time) = thread::schedule(thread, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED).unwrap();
        Time::from_raw((time >> 16) as u16).micros().expect("a finite period")
    };
    let full = rest(threads[0]);
    // The running thread is preempted each time that this thread wakes up.
    let mut last = full;
    let mut preemptions = 0;
    while preemptions < 10 || last == full {
        ipc::sleep(Time::period(10_000));
        preemptions += 1;
        let [first, second] = [0, 1].map(|number: usize| counts[number].load(Ordering::Relaxed));
        assert!(first == 0 || second == 0, "after {preemptions} preemptions: {first} and {second}");
        let now = threads.map(rest).into_iter().min().unwrap_or(full);
        assert!(now <= last, "{now} us are left, and were {last}");
        last = now;
    }
}

fn switch_to_oneself() {
    let (threads, counts) = two_counting();
    let me = utcb::my_global_id();
    thread::schedule(me, LONG.raw(), UNCHANGED, UNCHANGED, UNCHANGED).unwrap();
    threads.iter().for_each(|&thread| thread::set_priority(thread, x2::control::DEFAULT_PRIORITY).unwrap());
    let before = counts[0].load(Ordering::Relaxed);
    for _ in 0..100 {
        thread::switch_to(me);
        thread::switch_to(utcb::my_local_id());
    }
    assert_eq!(counts[0].load(Ordering::Relaxed), before, "the others of this priority have not run");
}

fn local_ids() {
    let other = spawn(|| l4::start::halt());
    await_state(other, ThreadState::Waiting);
    let local = thread::local_id_of(other).unwrap();
    // The next call is ExchangeRegisters.
    assert_eq!(thread::inspect(local).unwrap().id, other);
    let me = utcb::my_local_id();
    // ThreadControl may name the scheduler and the pager, but not the thread or the space.
    let root = kip().root();
    let with = |space, scheduler, pager| thread::ThreadControl { space, scheduler, pager, utcb: None };
    thread::control(other, with(root, me, me)).expect("both are named by a local id");
    assert_eq!(thread::control(local, with(root, root, root)), Err(Some(ErrorCode::InvalidThread)));
    assert_eq!(thread::control(other, with(local, root, root)), Err(Some(ErrorCode::InvalidSpace)));
    // SpaceControl may name the redirector, but not the space.
    let space = Space::new();
    let redirect = |space, to| l4::space::control(space, 0, x2::Fpage::NIL, x2::Fpage::NIL, to).map(drop);
    assert_eq!(redirect(space.first, local), Ok(()));
    assert_eq!(redirect(local, local), Err(Some(ErrorCode::InvalidSpace)));
    // The next call is ThreadSwitch.
    TRACE.store(0, Ordering::Relaxed);
    let low = tracer(1, 50);
    let low_local = thread::local_id_of(low).unwrap();
    ipc::send(low, Message::new(0)).unwrap();
    while TRACE.load(Ordering::Relaxed) == 0 {
        thread::switch_to(low_local);
    }
}
