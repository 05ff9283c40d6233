//! Tests of several processors: operations between threads on different processors have the same
//! results as on one (docs/src/architecture.md, K6 and K12; X.2 rules 3.8, 5.15, 5.27, 7, 8). With
//! one processor the tests run the same code on that processor.

use super::thread_state::{Image, XMM3, expect_recall};
use crate::framework::arena;
use crate::framework::confined;
use crate::framework::fixture::{Space, await_state, image_fault_answer, receive_as_pager, spawn};
use crate::framework::tests;
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use followers::many_follow;
use identity::{ids_that_change, lookups_of_the_deleted};
use l4::ipc::{self, Message};
use l4::{extension, kip, space, thread, utcb};
use strings::{string_faults, string_of_lost_page, strings};
use x2::control::{ThreadState, UNCHANGED};
use x2::extension::ACCEPT_NOTIFICATION;
use x2::protocol::page_fault_tag;
use x2::{IpcErrorKind, MapItem, Rights, ThreadId, Time, Timeouts};

tests! {
    SMP0001 [3.8, 13.1] "a thread lives where its scheduler says, and its UTCB says where" placement;
    SMP0002 [7.1] "calls and answers go from every processor to every other" ping_pong;
    SMP0003 [7.9] "messages of all sizes arrive whole" sizes;
    SMP0004 [7.7a] "one server answers clients on all processors" many_clients;
    SMP0005 [1.6, 1.7] "timeouts of zero and of some time, in both phases" timeouts;
    SMP0006 [7.32, 7.35, 12.2] "a page is mapped to another processor's thread, and its loss is seen there without delay" unmap_is_seen;
    SMP0007 [7.29] "strings go from processor to processor" strings;
    SMP0008 [7.22] "a string arrives although both pagers are elsewhere" string_faults;
    SMP0009 [5.27, 5.32] "sends and receives are aborted again and again, and go on" aborts;
    SMP0010 [5.15] "a server is deleted while clients send to it: each of them learns of it" delete_against_deliver;
    SMP0011 [3.8] "threads that talk are moved about, and talk on" migrate_repeatedly;
    SMP0012 [3.8, 7.7a] "a receiver moves, and threads that wait to send to it find it" queue_moves;
    SMP0013 [EXT 7.1] "notifications reach other processors" notifications;
    SMP0014 [3.4] "each processor has timeslices and a clock of its own" timeslices;
    SMP0015 [7.14, 7.16] "a forwarded request is answered by the third thread, wherever the three are" forwarding;
    SMP0016 [5.12, 5.15] "threads come and go on all processors" creation;
    SMP0017 [5.30] "a running thread is halted and resumed from another processor" halting;
    SMP0018 [EXT 6.1] "registers that another processor still holds are read and written" held_elsewhere;
    SMP0019 [7.32, 12.2] "a space that a call has entered sees without delay what it loses" unmap_after_call;
    SMP0020 [8.6] "use of pages is read and reset by two processors in parallel" two_read_use;
    SMP0021 [7.29, 8.2d] "memory that is taken from the sender of a string while it is read is not given away before that ends" string_of_lost_page;
    SMP0022 [1.6] "a timeout ends on a processor to which other threads come again and again" timeout_among_requests;
    SMP0023 [EXT 6.3] "a thread that runs on another processor is recalled, and goes on" recall_elsewhere;
    SMP0025 [5.15, 5.23a] "a thread is looked up by its local id while another processor deletes it: it is there or not" lookups_of_the_deleted;
    SMP0027 [2.2a] "the clock does not go back from one processor to another" one_clock;
    SMP0028 [3.8, 5.27, 7.7a] "a receiver moves to and fro with hundreds that wait to send to it: those that nothing ends are served in their order" many_follow;
    SMP0029 [5.14a, 7.1] "a message for an id that a thread of another processor is losing does not reach the next id" ids_that_change;
}

mod followers;
mod identity;
mod strings;

/// How many processors there are.
fn processors() -> u64 {
    u64::from(kip().processor_info().processors)
}

/// Whether threads with these home processors, modulo the number of processors, run on different
/// processors.
pub(super) fn are_apart(one: u64, other: u64) -> bool {
    one % processors() != other % processors()
}

/// Moves `thread` to processor `processor` modulo the number of processors.
pub(super) fn place(thread: ThreadId, processor: u64) -> ThreadId {
    let processor = processor % processors();
    thread::schedule(thread, UNCHANGED, processor, UNCHANGED, UNCHANGED).expect("the processor exists");
    thread
}

/// A random generator that is seeded, so that tests can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Answers each request with its first word plus one, and the number of the processor.
fn serve() {
    serve_and(|| ());
}

/// Answers each request as [`serve`] does, and calls `look` before each answer.
fn serve_and(look: impl Fn()) {
    let mut request = ipc::wait();
    loop {
        request = match request {
            Ok(request) => {
                look();
                let words = [request.word(0).wrapping_add(1), utcb::processor_number()];
                ipc::reply_wait(request.from, Message::with_words(1, &words))
            }
            Err(_) => ipc::wait(),
        };
    }
}

fn server(processor: u64) -> ThreadId {
    place(spawn(serve), processor)
}

/// The hardware's id of each processor; all ones until a thread there has stored it.
static HARDWARE: [AtomicU64; 64] = [const { AtomicU64::new(u64::MAX) }; 64];

/// Checks that a thread runs only on its home processor: the hardware's id is always the same for
/// each processor's number, and differs between numbers.
fn assert_at_home() {
    let home = utcb::processor_number();
    let hardware = u64::from(core::arch::x86_64::__cpuid(1).ebx >> 24);
    if utcb::processor_number() != home {
        return;
    }
    for (number, known) in (0..).zip(&HARDWARE).take(processors() as usize) {
        let known = match known.load(Ordering::Relaxed) {
            u64::MAX if number == home => {
                HARDWARE[number as usize].store(hardware, Ordering::Relaxed);
                hardware
            }
            known => known,
        };
        assert_eq!(known == hardware, number == home, "{hardware} executes a thread of processor {home}");
    }
}

/// Calls `server` `count` times, then sends a message to `boss`.
fn client(server: ThreadId, count: u64, boss: ThreadId) {
    for number in 0..count {
        let answer = ipc::call(server, Message::with_words(0, &[number])).expect("the server answers");
        assert_eq!(answer.word(0), number + 1);
        assert_at_home();
    }
    ipc::send(boss, Message::with_words(2, &[count])).expect("the test waits");
}

fn expect_report(thread: ThreadId, count: u64) {
    let report = ipc::receive(thread).expect("the client is done");
    assert_eq!((report.tag.label(), report.word(0)), (2, count));
}

fn placement() {
    let thread = spawn(serve);
    for processor in (0..processors()).chain((0..processors()).rev()) {
        place(thread, processor);
        for _ in 0..3 {
            let answer = ipc::call(thread, Message::with_words(0, &[7])).unwrap();
            assert_eq!((answer.word(0), answer.word(1)), (8, processor));
        }
    }
    let me = utcb::my_global_id();
    for processor in (0..processors()).rev() {
        place(me, processor);
        assert_eq!(utcb::processor_number(), processor);
    }
}

fn ping_pong() {
    const ROUNDS: u64 = 200;
    let me = utcb::my_global_id();
    for from in 0..processors() {
        for to in 0..processors() {
            let server = place(spawn(|| serve_and(assert_at_home)), to);
            let client = place(spawn(move || client(server, ROUNDS, me)), from);
            expect_report(client, ROUNDS);
            thread::delete(client).unwrap();
            thread::delete(server).unwrap();
        }
    }
}

fn sizes() {
    let echo = place(
        spawn(|| {
            let mut request = ipc::wait();
            loop {
                let received = request.expect("a request");
                let mut words = [0; 63];
                let count = received.tag.untyped();
                words.iter_mut().zip(received.words()).for_each(|(place, word)| *place = !word);
                request = ipc::reply_wait(received.from, Message::with_words(5, &words[..count]));
            }
        }),
        1,
    );
    for count in 0..=63 {
        let words: [u64; 63] = core::array::from_fn(|index| (index as u64 + 1) << 32 | count as u64);
        let answer = ipc::call(echo, Message::with_words(4, &words[..count])).unwrap();
        assert_eq!((answer.tag.label(), answer.tag.untyped()), (5, count));
        assert!(answer.words().zip(words).all(|(got, sent)| got == !sent), "{count} words");
    }
}

fn many_clients() {
    const ROUNDS: u64 = 100;
    const CLIENTS: usize = 12;
    let me = utcb::my_global_id();
    for at in 0..processors().min(2) {
        let server = server(at);
        let clients: [ThreadId; CLIENTS] =
            core::array::from_fn(|number| place(spawn(move || client(server, ROUNDS, me)), number as u64));
        clients.iter().for_each(|client| expect_report(*client, ROUNDS));
    }
}

fn timeouts() {
    let deaf = place(spawn(|| l4::start::halt()), 1);
    await_state(deaf, ThreadState::Waiting);
    let kind = |result: ipc::Result<()>| result.map_err(|error| error.kind);
    let silent = place(
        spawn(|| {
            let _ = ipc::receive(kip().root());
        }),
        1,
    );
    await_state(silent, ThreadState::Waiting);
    for time in [Time::ZERO, Time::period(3000)] {
        for _ in 0..5 {
            let sent = ipc::send_timeout(silent, Message::new(0), time);
            assert_eq!(kind(sent), Err(IpcErrorKind::Timeout));
            let got = ipc::receive_timeout(silent, time).map(drop);
            assert_eq!(kind(got), Err(IpcErrorKind::Timeout));
        }
    }
    // The message arrives but the answer does not, and the caller is back on its home processor.
    let swallow = place(
        spawn(|| {
            loop {
                let _ = ipc::wait();
            }
        }),
        1,
    );
    for _ in 0..5 {
        let timeouts = Timeouts::new(Time::NEVER, Time::period(2000));
        let called = ipc::call_timeouts(swallow, Message::new(0), timeouts).map(drop);
        assert_eq!(kind(called), Err(IpcErrorKind::Timeout));
        let called =
            ipc::call_timeouts(swallow, Message::new(0), Timeouts::new(Time::NEVER, Time::ZERO)).map(drop);
        assert_eq!(kind(called), Err(IpcErrorKind::Timeout));
        // A send timeout of zero is enough if the receiver waits already.
        await_state(swallow, ThreadState::Waiting);
        ipc::send_timeout(swallow, Message::new(0), Time::ZERO).expect("it waits");
    }
}

/// How often the reader has read.
static READS: AtomicU64 = AtomicU64::new(0);

/// Waits until `counter` has grown by `more`.
fn await_growth(counter: &AtomicU64, more: u64) {
    let goal = counter.load(Ordering::Relaxed) + more;
    while counter.load(Ordering::Relaxed) < goal {
        thread::yield_now();
    }
}

/// Unmaps `page` from `reader`, which reads it and counts that, and receives its page fault: it has
/// not read the page since.
fn take_from_reader(page: arena::Page, reader: ThreadId) -> ipc::Received {
    space::unmap_one(page.fpage(Rights::ALL));
    let seen = READS.load(Ordering::Relaxed);
    let fault = receive_as_pager(reader).unwrap();
    let later = READS.load(Ordering::Relaxed);
    assert!(later <= seen + 1, "it read {} times after it had lost the page", later - seen);
    fault
}

/// Answers a fault of `reader`, on `page` or on the program itself.
fn answer_reader(page: arena::Page, reader: ThreadId, fault: ipc::Received) {
    let address = page.fpage(Rights::NONE).region().expect("memory").base;
    let message = if fault.word(0) == address {
        Message::new(0).map_item(MapItem::map(page.fpage(Rights::READ), address))
    } else {
        image_fault_answer(fault).expect("of the program")
    };
    ipc::reply(reader, message).unwrap();
}

/// Answers `reader` until it has read `page` three times more than `before`.
fn await_reads(page: arena::Page, reader: ThreadId, before: u64) {
    while READS.load(Ordering::Relaxed) < before + 3 {
        if let Ok(fault) = ipc::receive_timeout(reader, Time::period(500)) {
            answer_reader(page, reader, fault);
        }
    }
}

/// A page with a 5 that is about to be read, and its address.
fn page_to_read() -> (arena::Page, u64) {
    let page = arena::page();
    page.write(0, 5);
    READS.store(0, Ordering::Relaxed);
    (page, page.fpage(Rights::NONE).region().expect("memory").base)
}

/// Reads the page once, and counts that.
fn read(address: u64) {
    assert_eq!(arena::read_at(address), 5);
    READS.fetch_add(1, Ordering::Relaxed);
}

fn unmap_is_seen() {
    let (page, address) = page_to_read();
    let reader = Space::new().spawn_paged_by(utcb::my_global_id(), move || {
        loop {
            read(address);
        }
    });
    place(reader, 1);
    let expected = page_fault_tag(Rights::READ).with_cross_processor(are_apart(0, 1));
    let mut fault = receive_as_pager(reader).unwrap();
    for round in 0..60 {
        assert_eq!((fault.tag, fault.word(0)), (expected, address), "round {round}");
        let before = READS.load(Ordering::Relaxed);
        answer_reader(page, reader, fault);
        await_reads(page, reader, before);
        fault = take_from_reader(page, reader);
    }
}

static STOP: AtomicU64 = AtomicU64::new(0);

fn unmap_after_call() {
    let me = utcb::my_global_id();
    let (page, address) = page_to_read();
    let reader = Space::new().spawn_paged_by(me, move || {
        loop {
            let caller = ipc::wait().expect("a call").from;
            while STOP.load(Ordering::Relaxed) == 0 {
                read(address);
            }
            let _ = ipc::send(caller, Message::new(0));
        }
    });
    let caller = spawn(move || {
        loop {
            ipc::receive(me).expect("an order");
            ipc::call(reader, Message::new(0)).expect("an answer");
            ipc::send(me, Message::new(0)).expect("the test waits");
        }
    });
    place(reader, 1);
    place(caller, 1);
    for _ in 0..20 {
        STOP.store(0, Ordering::Relaxed);
        let before = READS.load(Ordering::Relaxed);
        ipc::send(caller, Message::new(0)).unwrap();
        await_reads(page, reader, before);
        let fault = take_from_reader(page, reader);
        let expected = page_fault_tag(Rights::READ).with_cross_processor(are_apart(0, 1));
        assert_eq!((fault.tag, fault.word(0)), (expected, address));
        STOP.store(1, Ordering::Relaxed);
        answer_reader(page, reader, fault);
        while let Err(error) = ipc::receive_timeout(caller, Time::period(500)) {
            assert_eq!(error.kind, IpcErrorKind::Timeout);
            if let Ok(fault) = ipc::receive_timeout(reader, Time::ZERO) {
                answer_reader(page, reader, fault);
            }
        }
    }
}

fn two_read_use() {
    const ROUNDS: u64 = 1000;
    let me = utcb::my_global_id();
    let workers = [0, 1].map(|processor| {
        let page = arena::page();
        let worker = spawn(move || {
            for round in 0..ROUNDS {
                page.write(0, round);
                let mut use_of = [page.fpage(Rights::NONE)];
                // SAFETY: no right is taken away.
                unsafe { space::flush(&mut use_of) };
                assert!(use_of[0].rights().contains(Rights::WRITE), "it has just been written");
            }
            ipc::send(me, Message::with_words(2, &[ROUNDS])).expect("the test waits");
        });
        place(worker, processor)
    });
    workers.into_iter().for_each(|worker| expect_report(worker, ROUNDS));
}

/// How many calls were answered, and how many were aborted.
static ANSWERED: AtomicU64 = AtomicU64::new(0);

fn aborts() {
    let server = server(1);
    let clients: [ThreadId; 3] = core::array::from_fn(|number| {
        let client = spawn(move || {
            loop {
                match ipc::call(server, Message::with_words(0, &[1])) {
                    Ok(answer) => assert_eq!(answer.word(0), 2),
                    Err(error) => {
                        assert!(matches!(error.kind, IpcErrorKind::Cancelled | IpcErrorKind::Aborted));
                    }
                }
                ANSWERED.fetch_add(1, Ordering::Relaxed);
            }
        });
        place(client, number as u64)
    });
    let mut random = Random(7);
    for _ in 0..300 {
        let victim = match random.below(4) {
            3 => server,
            number => clients[number as usize],
        };
        thread::abort_ipc(victim).unwrap();
        if random.below(8) == 0 {
            thread::stop(victim).unwrap();
            thread::resume(victim).unwrap();
        }
    }
    await_growth(&ANSWERED, 50);
}

fn delete_against_deliver() {
    const ROUNDS: usize = 25;
    let me = utcb::my_global_id();
    let mut random = Random(3);
    for round in 0..ROUNDS {
        let server = server(random.below(4));
        let clients: [ThreadId; 3] = core::array::from_fn(|_| {
            let client = spawn(move || {
                let error = loop {
                    if let Err(error) = ipc::call(server, Message::with_words(0, &[1])) {
                        break error;
                    }
                };
                ipc::send(me, Message::with_words(4, &[error.kind as u64])).unwrap();
            });
            place(client, random.below(4))
        });
        for _ in 0..random.below(40) {
            thread::yield_now();
        }
        thread::delete(server).unwrap();
        for client in clients {
            let report = ipc::receive(client).unwrap();
            assert_eq!(report.word(0), IpcErrorKind::NonExistingPartner as u64, "round {round}");
            thread::delete(client).unwrap();
        }
    }
}

fn migrate_repeatedly() {
    const ROUNDS: u64 = 400;
    const PAIRS: usize = 4;
    let me = utcb::my_global_id();
    let servers: [ThreadId; PAIRS] = core::array::from_fn(|number| server(number as u64));
    let clients: [ThreadId; PAIRS] = core::array::from_fn(|number| {
        let server = servers[number];
        place(spawn(move || client(server, ROUNDS, me)), number as u64 + 1)
    });
    let mut random = Random(5);
    for _ in 0..400 {
        let among = if random.below(2) == 0 { servers } else { clients };
        place(among[random.below(PAIRS as u64) as usize], random.below(4));
        if random.below(16) == 0 {
            place(me, random.below(4));
        }
    }
    clients.iter().for_each(|client| expect_report(*client, ROUNDS));
    place(me, 0);
}

fn queue_moves() {
    let receiver = spawn(|| {
        l4::ipc::receive(kip().root()).expect_err("it is aborted");
        serve();
    });
    await_state(receiver, ThreadState::Waiting);
    let me = utcb::my_global_id();
    let clients: [ThreadId; 6] =
        core::array::from_fn(|number| place(spawn(move || client(receiver, 20, me)), number as u64));
    clients.iter().for_each(|client| await_state(*client, ThreadState::PendingSend));
    for processor in 1..=processors() {
        place(receiver, processor);
        clients.iter().for_each(|client| await_state(*client, ThreadState::PendingSend));
    }
    place(receiver, 1);
    thread::abort_ipc(receiver).unwrap();
    clients.iter().for_each(|client| expect_report(*client, 20));
}

fn notifications() {
    let me = utcb::my_global_id();
    let listener = place(
        spawn(move || {
            loop {
                // SAFETY: the acceptor takes no mappings or strings.
                unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
                let bits = ipc::wait().expect("notified").word(0);
                utcb::accept_untyped_words();
                ipc::send(me, Message::with_words(6, &[bits])).unwrap();
            }
        }),
        1,
    );
    for number in 0..200 {
        let bits = 1 << (number % 64);
        extension::notify(listener, bits).unwrap();
        assert_eq!(ipc::receive(listener).unwrap().word(0), bits);
    }
}

fn one_clock() {
    static LATEST: AtomicU64 = AtomicU64::new(0);
    let me = utcb::my_global_id();
    let readers: [ThreadId; 4] = core::array::from_fn(|number| {
        let reader = spawn(move || {
            for _ in 0..5000 {
                let latest = LATEST.load(Ordering::SeqCst);
                let now = thread::system_clock();
                assert!(now >= latest, "{now} after {latest} on processor {number}");
                LATEST.fetch_max(now, Ordering::SeqCst);
            }
            ipc::send(me, Message::new(1)).expect("the test waits");
        });
        place(reader, number as u64)
    });
    for reader in readers {
        assert_eq!(ipc::receive(reader).expect("it has read").tag.label(), 1);
    }
}

static SPINS: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

fn timeslices() {
    let spinners: [ThreadId; 8] = core::array::from_fn(|number| {
        let spinner = spawn(move || {
            loop {
                SPINS[number].fetch_add(1, Ordering::Relaxed);
            }
        });
        place(spinner, number as u64)
    });
    for spins in &SPINS {
        let before = spins.load(Ordering::Relaxed);
        while spins.load(Ordering::Relaxed) == before {
            ipc::sleep(Time::period(1000));
        }
    }
    spinners.iter().for_each(|spinner| thread::delete(*spinner).unwrap());
}

fn timeout_among_requests() {
    const REQUESTS: usize = 100_000;
    static ENDED: AtomicU64 = AtomicU64::new(0);
    place(utcb::my_global_id(), 0);
    let server = place(spawn(serve), 1);
    let boss = utcb::my_global_id();
    let sleeper = spawn(move || {
        ipc::send(boss, Message::new(0)).expect("the test waits");
        ipc::sleep(Time::period(100));
        ENDED.store(1, Ordering::Relaxed);
    });
    place(sleeper, 1);
    ipc::receive(sleeper).expect("it is about to sleep");
    // A thread that reads the state of another by Schedule goes to that thread's processor.
    let has_ended = || {
        thread::schedule(server, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED).expect("it lives");
        ENDED.load(Ordering::Relaxed) != 0
    };
    assert!((0..REQUESTS).any(|_| has_ended()), "{REQUESTS} requests, and the timeout has not ended");
}

fn forwarding() {
    // The client calls the dispatcher, which passes the request on in the client's name. The worker
    // answers the client.
    let worker = spawn(serve);
    let dispatcher = spawn(move || {
        loop {
            let request = ipc::wait().expect("a request");
            let message = Message::with_words(0, &[request.word(0)]).propagated_for(request.from);
            let _ = ipc::send(worker, message);
        }
    });
    let me = utcb::my_global_id();
    for round in 0..processors() * processors() * processors() {
        place(worker, round / processors() / processors());
        place(dispatcher, round / processors());
        place(me, round);
        for number in 0..10 {
            let tag = Message::with_words(0, &[number]).tag();
            let answer = ipc::ipc(dispatcher, worker, Timeouts::NEVER, tag).expect("the worker answers");
            assert_eq!(answer.word(0), number + 1);
            assert_at_home();
            let answer =
                ipc::call(dispatcher, Message::with_words(0, &[number])).expect("turned to the worker");
            assert_eq!(answer.word(0), number + 1);
            assert_at_home();
        }
    }
    place(me, 0);
}

fn creation() {
    let me = utcb::my_global_id();
    for round in 0..20u64 {
        place(me, round);
        let near = server(round + 1);
        let space = Space::new();
        let far = place(space.spawn(serve), round + 2);
        for thread in [near, far] {
            assert_eq!(ipc::call(thread, Message::with_words(0, &[round])).unwrap().word(0), round + 1);
            thread::delete(thread).unwrap();
        }
    }
    place(me, 0);
}

static RUNS: AtomicU64 = AtomicU64::new(0);

fn halting() {
    let runner = spawn(|| {
        loop {
            RUNS.fetch_add(1, Ordering::Relaxed);
        }
    });
    for round in 0..40 {
        place(runner, round);
        await_growth(&RUNS, 1);
        thread::stop(runner).unwrap();
        let stopped = RUNS.load(Ordering::Relaxed);
        for _ in 0..20 {
            thread::yield_now();
        }
        assert_eq!(RUNS.load(Ordering::Relaxed), stopped, "it does not run while it is halted");
        thread::resume(runner).unwrap();
    }
}

/// A thread waits, and its processor is idle: the thread's extended state is then still in that
/// processor's registers.
fn held_elsewhere() {
    const SET: u64 = 1;
    const TELL: u64 = 2;
    let me = utcb::my_global_id();
    for processor in 0..processors() {
        let thread = confined::spawn(&confined::space(), move || {
            loop {
                let request = ipc::receive(me).expect("the test sends");
                if request.tag.label() == SET {
                    // SAFETY: Rust code of this program does not use the vector registers.
                    unsafe { asm!("movq xmm3, {}", in(reg) request.word(0)) };
                    continue;
                }
                let value: u64;
                // SAFETY: Rust code of this program does not use the vector registers.
                unsafe { asm!("movq {}, xmm3", out(reg) value) };
                ipc::send(me, Message::with_words(TELL, &[value])).expect("the owner is in reach");
            }
        });
        await_state(thread, ThreadState::Waiting);
        place(thread, processor);
        let mut image = Image::new();
        for value in [0x77, 0x1234_5678_9abc_def0] {
            ipc::send(thread, Message::with_words(SET, &[value])).expect("it takes it");
            await_state(thread, ThreadState::Waiting);
            let size = extension::read_extended_state(thread, &mut image.0).expect("the space is owned");
            assert_eq!(image.word(XMM3), value, "on processor {processor}");
            image.set_word(XMM3, !value);
            extension::write_extended_state(thread, &image.0[..size]).expect("it was read there");
            let told = ipc::call(thread, Message::new(TELL)).expect("it answers");
            assert_eq!(told.word(0), !value, "on processor {processor}");
        }
        thread::delete(thread).expect("it exists");
    }
}

fn recall_elsewhere() {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    for processor in 0..processors() {
        let thread = confined::spawn(&confined::space(), || {
            loop {
                COUNT.fetch_add(1, Ordering::Relaxed);
            }
        });
        place(thread, processor);
        for _ in 0..20 {
            await_growth(&COUNT, 1);
            extension::recall(thread).expect("the space is owned");
            let frame = expect_recall(ipc::receive(thread).expect("its message"));
            let seen = COUNT.load(Ordering::Relaxed);
            thread::yield_now();
            assert_eq!(COUNT.load(Ordering::Relaxed), seen, "it does not run on processor {processor}");
            ipc::send(thread, Message::with_words(0, &frame)).expect("it waits for the answer");
        }
        thread::delete(thread).expect("it exists");
    }
}
