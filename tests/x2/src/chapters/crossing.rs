//! Tests of calls and answers between processors: the cases that their fast path leaves to the
//! general path. With one processor the tests run the same code on that processor.

use super::processors::{are_apart, place};
use crate::framework::fixture::{Space, await_state, call_as_pager, receive_as_pager, spawn};
use crate::framework::{arena, confined, tests};
use l4::ipc::{self, Message, Received};
use l4::{extension, thread, utcb};
use x2::control::ThreadState;
use x2::extension::{ACCEPT_NOTIFICATION, NOTIFICATION_LABEL};
use x2::protocol::page_fault_tag;
use x2::{Fpage, IpcErrorKind, IpcPhase, MapItem, MessageTag, Rights, ThreadId, Time, Timeouts};

tests! {
    CRO0001 [7.3, 7.7a] "a call waits as long as its receiver on another processor waits for another thread" waits_for_another;
    CRO0002 [7.3, 7.7a] "a thread that waits for an answer from another processor takes it from no other thread there" answer_of_another;
    CRO0003 [EXT 2.2] "a thread out of reach is so on another processor" out_of_reach;
    CRO0004 [EXT 2.2] "a call from another processor and from out of reach cannot be answered" no_answer_out_of_reach;
    CRO0005 [7.18a] "a call and its answer say whether they come from another processor, however they get there" calls_are_marked;
    CRO0006 [7.18ab] "a message that has waited says whether it comes from another processor" waiting_messages_are_marked;
    CRO0007 [7.18a] "of a message in another's name the processor counts on which its sender runs" propagated_messages_are_marked;
    CRO0008 [7.18a] "a page fault says whether it comes from another processor, a notification never" faults_are_marked;
    CRO0009 [7.1, 7.7a] "messages alone arrive once each and in order, whether their receiver's processor has nothing else to do" messages_alone;
}

const ANSWER: u64 = 7;
const OTHER: u64 = 9;

fn no_partner() -> u64 {
    x2::IpcError::new(IpcPhase::Send, IpcErrorKind::NonExistingPartner).raw()
}

/// Answers like a server and waits for the next request, without timeouts.
fn answer(to: ThreadId, label: u64) -> ipc::Result<Received> {
    ipc::ipc(to, ThreadId::ANY, Timeouts::NEVER, MessageTag::new(label, 0, 0))
}

/// Makes a thread on the first processor that calls the thread whose id the test sends it.
fn caller() -> ThreadId {
    let me = utcb::my_global_id();
    let caller = spawn(move || {
        let told = ipc::receive(me).expect("the test tells");
        let answer = ipc::call(ThreadId::from_raw(told.word(0)), Message::new(0)).expect("it is answered");
        ipc::send(me, Message::new(answer.tag.label())).expect("the test waits");
        // The thread waits here until the test deletes it.
        let _ = ipc::receive(me);
    });
    place(caller, 0)
}

fn waits_for_another() {
    let me = utcb::my_global_id();
    let (awaited, early) = (caller(), caller());
    let receiver = place(
        spawn(move || {
            ipc::receive(me).expect("the test begins");
            for partner in [awaited, early] {
                ipc::receive(partner).expect("it calls");
                ipc::reply(partner, Message::new(ANSWER)).expect("it waits");
            }
        }),
        1,
    );
    ipc::send(receiver, Message::new(0)).expect("it waits");
    await_state(receiver, ThreadState::Waiting);
    let name = || Message::with_words(0, &[receiver.raw()]);
    ipc::send(early, name()).expect("it waits");
    await_state(early, ThreadState::PendingSend);
    ipc::send(awaited, name()).expect("it waits");
    for thread in [awaited, early] {
        assert_eq!(ipc::receive(thread).expect("it was answered").tag.label(), ANSWER);
        thread::delete(thread).expect("it exists");
    }
}

fn answer_of_another() {
    let me = utcb::my_global_id();
    let early = caller();
    let server = place(
        spawn(move || {
            let request = ipc::receive(early).expect("it calls");
            ipc::receive(me).expect("the test lets it answer");
            ipc::reply(request.from, Message::new(ANSWER)).expect("it waits");
        }),
        1,
    );
    let intruder = place(
        spawn(move || {
            ipc::receive(me).expect("the test tells");
            // A server answers a thread that has not called it.
            let _ = answer(early, OTHER);
        }),
        1,
    );
    ipc::send(early, Message::with_words(0, &[server.raw()])).expect("it waits");
    await_state(early, ThreadState::Waiting);
    ipc::send(intruder, Message::new(0)).expect("it waits");
    await_state(intruder, ThreadState::PendingSend);
    ipc::send(server, Message::new(0)).expect("it waits");
    assert_eq!(ipc::receive(early).expect("it was answered").tag.label(), ANSWER);
    for thread in [early, intruder] {
        thread::delete(thread).expect("it exists");
    }
}

fn out_of_reach() {
    let me = utcb::my_global_id();
    let stranger = Space::new().spawn(|| {
        let _ = ipc::receive(ThreadId::ANY);
    });
    await_state(stranger, ThreadState::Waiting);
    place(stranger, 1);
    let thread = confined::spawn(&confined::space(), move || {
        let outcome = ipc::send(stranger, Message::new(0)).err().map_or(0, |error| error.raw());
        ipc::send(me, Message::with_words(0, &[outcome])).expect("the owner is in reach");
    });
    assert_eq!(ipc::receive(thread).expect("it tells").word(0), no_partner());
    thread::delete(stranger).expect("it exists");
}

fn no_answer_out_of_reach() {
    let me = utcb::my_global_id();
    let server = confined::spawn(&confined::space(), move || {
        let request = ipc::wait().expect("it is called");
        let answered = answer(request.from, ANSWER);
        let outcome = answered.err().map_or(0, |error| error.raw());
        ipc::send(me, Message::with_words(0, &[outcome])).expect("the owner is in reach");
    });
    await_state(server, ThreadState::Waiting);
    place(server, 1);
    let stranger = Space::new().spawn(move || {
        let _ = ipc::call(server, Message::new(0));
    });
    assert_eq!(ipc::receive(server).expect("it tells").word(0), no_partner());
    thread::delete(stranger).expect("it exists");
}

/// How many messages each sender sends, and how many message registers they have: none but the tag,
/// as many as fit into processor registers, more.
const ALONE: u64 = 600;
const LENGTHS: [usize; 3] = [1, 7, 40];

fn messages_alone() {
    let me = utcb::my_global_id();
    let receiver = spawn(move || {
        let mut next = [0; 2];
        while next != [ALONE; 2] {
            let message = ipc::wait().expect("a message");
            let (sender, number) = (message.tag.label() as usize, message.word(0));
            let length = LENGTHS[number as usize % LENGTHS.len()];
            assert_eq!((number, message.tag.untyped()), (next[sender], length));
            assert!((0..length).all(|index| message.word(index) == number + index as u64), "{number}");
            next[sender] += 1;
            // Sometimes the receiver waits with a timeout, which ends with a message or expires.
            if number % 16 == 3 {
                let _ = ipc::receive_timeout(me, Time::period(number % 64 + 1));
            }
        }
        ipc::send(me, Message::new(ANSWER)).expect("the test waits");
    });
    place(receiver, 1);
    for (label, processor) in [(0, 2), (1, 3)] {
        let sender = spawn(move || {
            for number in 0..ALONE {
                let length = LENGTHS[number as usize % LENGTHS.len()] as u64;
                let words: [u64; 40] = core::array::from_fn(|index| number + index as u64);
                let message = Message::with_words(label, &words[..length as usize]);
                ipc::send(receiver, message).expect("it waits");
                // The receiver's processor is often idle.
                if number % 4 != 0 {
                    let _ = ipc::receive_timeout(me, Time::period(1 << (number % 7)));
                }
            }
        });
        place(sender, processor);
    }
    assert_eq!(ipc::receive(receiver).expect("it has all").tag.label(), ANSWER);
}

/// Pairs of home processors of two threads. With one processor both are the same.
const PAIRS: [(u64, u64); 4] = [(0, 0), (0, 1), (1, 0), (1, 1)];

/// Calls `server` with `words` words, and `item`, and returns whether the request and the answer
/// were marked.
fn marks_of_call(server: ThreadId, words: usize, timeouts: Timeouts, item: bool) -> [bool; 2] {
    let message = Message::with_words(0, &[0; 60][..words]);
    let message = if item { message.map_item(MapItem::map(Fpage::NIL, 0)) } else { message };
    let answer = ipc::call_timeouts(server, message, timeouts).expect("it answers");
    [answer.word(0) == 1, answer.tag.is_cross_processor()]
}

fn calls_are_marked() {
    let me = utcb::my_global_id();
    for (from, to) in PAIRS {
        let server = place(
            spawn(|| {
                let mut request = ipc::wait();
                loop {
                    let received = request.expect("a request");
                    let mark = u64::from(received.tag.is_cross_processor());
                    // The receive timeout changes with each request: an answer with a timeout takes
                    // another path.
                    let wait = if received.tag.label() == 0 { Time::NEVER } else { Time::period(1 << 30) };
                    let answer = Message::with_words(0, &[mark]).tag();
                    let timeouts = Timeouts::new(Time::ZERO, wait);
                    request = ipc::ipc(received.from, ThreadId::ANY, timeouts, answer);
                }
            }),
            to,
        );
        let caller = spawn(move || {
            let for_ever = Timeouts::NEVER;
            let for_long = Timeouts::new(Time::NEVER, Time::period(1 << 30));
            let all = [
                marks_of_call(server, 0, for_ever, false),
                marks_of_call(server, 0, for_ever, false),
                marks_of_call(server, 60, for_ever, false),
                marks_of_call(server, 1, for_long, false),
                marks_of_call(server, 2, for_ever, true),
            ];
            let marks: [u64; 10] = core::array::from_fn(|index| all[index / 2][index % 2].into());
            ipc::send(me, Message::with_words(0, &marks)).expect("the test waits");
        });
        place(caller, from);
        let report = ipc::receive(caller).expect("it tells");
        assert_eq!(report.tag.is_cross_processor(), are_apart(from, 0));
        assert!(report.words().all(|mark| mark == are_apart(from, to).into()), "from {from} to {to}");
        thread::delete(server).expect("it exists");
    }
}

fn waiting_messages_are_marked() {
    let me = utcb::my_global_id();
    for (from, to) in PAIRS {
        place(me, to);
        let sender = place(
            spawn(move || {
                ipc::send(me, Message::new(0)).expect("the test waits");
                // The other flags of a sent tag are ignored.
                let tag = MessageTag::new(0, 0, 0).with_cross_processor(true);
                ipc::ipc(me, ThreadId::NIL, Timeouts::NEVER, tag).expect("the test waits");
            }),
            from,
        );
        for _ in 0..2 {
            await_state(sender, ThreadState::PendingSend);
            let received = ipc::wait().expect("it waits");
            assert_eq!(received.tag, MessageTag::EMPTY.with_cross_processor(are_apart(from, to)));
        }
    }
    place(me, 0);
}

fn propagated_messages_are_marked() {
    let me = utcb::my_global_id();
    for (from, originator_at) in PAIRS {
        let originator = place(spawn(|| l4::start::halt()), originator_at);
        await_state(originator, ThreadState::Waiting);
        let sender = place(
            spawn(move || {
                ipc::send(me, Message::new(0).propagated_for(originator)).expect("the test waits");
            }),
            from,
        );
        let received = ipc::wait().expect("it sends");
        assert_eq!(received.from, thread::local_id_of(originator).expect("it exists"));
        let expected = MessageTag::EMPTY.with_propagated(true).with_cross_processor(are_apart(from, 0));
        assert_eq!(received.tag, expected, "sent on {from} in the name of a thread on {originator_at}");
        thread::delete(sender).expect("it exists");
    }
}

/// An address at which the program of [`faults_are_marked`] has nothing mapped.
const FAR: u64 = 0x40_0000_0000;

fn faults_are_marked() {
    let me = utcb::my_global_id();
    for processor in 0..2 {
        let thread = Space::new().spawn_paged_by(me, move || {
            ipc::call(me, Message::new(0)).expect("it was placed");
            extension::notify(me, 1).expect("it exists");
            arena::read_at(FAR);
        });
        receive_as_pager(thread).expect("it asks where to go");
        place(thread, processor);
        let fault = call_as_pager(thread, Message::new(0));
        let expected = page_fault_tag(Rights::READ).with_cross_processor(are_apart(processor, 0));
        assert_eq!((fault.tag, fault.word(0)), (expected, FAR));
        // SAFETY: the acceptor takes no mappings or strings.
        unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
        let notified = ipc::wait().expect("it has notified");
        utcb::accept_untyped_words();
        assert_eq!(notified.tag, MessageTag::new(NOTIFICATION_LABEL, 1, 0));
        thread::delete(thread).expect("it exists");
    }
}
