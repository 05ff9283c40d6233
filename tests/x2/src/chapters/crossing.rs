//! Calls and answers between processors: what the path that they have of their own leaves to the general one. With one
//! processor the same, without company.

use super::processors::place;
use crate::framework::confined;
use crate::framework::fixture::{Space, await_state, spawn};
use crate::framework::tests;
use l4::ipc::{self, Message, Received};
use l4::{thread, utcb};
use x2::control::ThreadState;
use x2::{IpcErrorKind, IpcPhase, MessageTag, ThreadId, Timeouts};

tests! {
    CRO0001 [7.3, 7.7] "a call waits as long as its receiver on another processor waits for somebody else" waits_for_another;
    CRO0002 [7.3, 7.7] "who waits for an answer from another processor takes it from nobody else there" answer_of_another;
    CRO0003 [EXT 2.2] "a thread out of reach is so on another processor" out_of_reach;
    CRO0004 [EXT 2.2] "a call from another processor and from out of reach cannot be answered" no_answer_out_of_reach;
}

const ANSWER: u64 = 7;
const OTHER: u64 = 9;

fn nobody() -> u64 {
    x2::IpcError::new(IpcPhase::Send, IpcErrorKind::NonExistingPartner).raw()
}

/// Sends as a server does that answers and waits for the next request, but for as long as that takes.
fn answer(to: ThreadId, label: u64) -> ipc::Result<Received> {
    ipc::ipc(to, ThreadId::ANY, Timeouts::NEVER, MessageTag::new(label, 0, 0))
}

/// A thread on the first processor that calls whom the test names.
fn caller() -> ThreadId {
    let me = utcb::my_global_id();
    let caller = spawn(move || {
        let told = ipc::receive(me).expect("the test tells");
        let answer = ipc::call(ThreadId::from_raw(told.word(0)), Message::new(0)).expect("it is answered");
        ipc::send(me, Message::new(answer.tag.label())).expect("the test waits");
        // The test deletes it.
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
            // A server's answer to somebody who has not asked.
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
    assert_eq!(ipc::receive(thread).expect("it tells").word(0), nobody());
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
    assert_eq!(ipc::receive(server).expect("it tells").word(0), nobody());
    thread::delete(stranger).expect("it exists");
}
