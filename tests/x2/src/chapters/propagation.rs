//! Tests of propagation: messages in another thread's name (ABI 11.4; X.2 rules 7.14-7.17).

use crate::framework::fixture::{Space, await_state, new_id, spawn};
use crate::framework::tests;
use l4::ipc::{self, Message, Received};
use l4::{thread, utcb};
use x2::control::ThreadState;
use x2::{IpcErrorKind, ThreadId, Time};

tests! {
    PRP0001 [7.14, 7.15] "a thread sends in the name of another of its space" own_space;
    PRP0002 [7.14] "within a space a thread sends in any other's name" receivers_space;
    PRP0003 [7.14] "without the right the message is the sender's own, and not marked" no_right;
    PRP0004 [7.15] "a receiver that waits for the originator gets the message" receiver_waits_for_originator;
    PRP0005 [7.15, 7.17] "a receiver that waits for the sender does not get what is another's" receiver_waits_for_sender;
    PRP0006 [7.16] "an originator that waits for the sender is answered by the receiver" originator_is_turned;
    PRP0007 [7.16] "a failed send turns no receiver, and the error is the sender's" failed_send;
    PRP0008 [7.14] "a message whose originator is deleted while it waits becomes the sender's own" originator_deleted;
    PRP0009 [7.3, 7.15] "a receiver of local messages gets a foreign thread's message in a local thread's name" any_local;
    PRP0010 [7.15, 7.6] "ActualSender is written for propagated messages only" actual_sender;
}

/// Makes a thread of the test's space that only sleeps.
fn idle() -> ThreadId {
    spawn(|| l4::start::halt())
}

/// Makes a thread of another space that receives from `from` and reports what it got: sender,
/// propagation flag, actual sender, word.
fn foreign_witness(from: ThreadId) -> ThreadId {
    let me = utcb::my_global_id();
    let witness = Space::new().spawn(move || {
        utcb::set_virtual_sender(ThreadId::NIL);
        let received = ipc::receive(from).expect("a message");
        tell(me, received);
    });
    await_state(witness, ThreadState::Waiting);
    witness
}

fn tell(to: ThreadId, received: Received) {
    let words = [
        received.from.raw(),
        received.tag.is_propagated().into(),
        utcb::actual_sender().raw(),
        received.word(0),
    ];
    ipc::send(to, Message::with_words(1, &words)).expect("the test waits");
}

fn told(witness: ThreadId) -> [u64; 4] {
    let received = ipc::receive(witness).expect("the witness tells");
    core::array::from_fn(|index| received.word(index))
}

fn own_space() {
    let originator = idle();
    let witness = foreign_witness(ThreadId::ANY);
    ipc::send(witness, Message::with_words(1, &[5]).propagated_for(originator)).unwrap();
    assert_eq!(told(witness), [originator.raw(), 1, utcb::my_global_id().raw(), 5]);
    // The local id names the originator as well.
    let witness = foreign_witness(ThreadId::ANY);
    let local = thread::local_id_of(originator).unwrap();
    ipc::send(witness, Message::with_words(1, &[6]).propagated_for(local)).unwrap();
    assert_eq!(told(witness), [originator.raw(), 1, utcb::my_global_id().raw(), 6]);
}

fn receivers_space() {
    let me = utcb::my_global_id();
    let foreign = Space::new().spawn(|| l4::start::halt());
    let sender = spawn(move || {
        ipc::send(me, Message::with_words(1, &[7]).propagated_for(foreign)).unwrap();
    });
    let received = ipc::receive(foreign).unwrap();
    assert_eq!((received.from, received.word(0)), (foreign, 7));
    assert_eq!(utcb::actual_sender(), thread::local_id_of(sender).unwrap(), "local, in the same space");
}

fn no_right() {
    let me = utcb::my_global_id();
    let foreign = Space::new().spawn(|| l4::start::halt());
    for originator in [foreign, new_id(), ThreadId::NIL, ThreadId::ANY, ThreadId::interrupt(1)] {
        let witness = foreign_witness(ThreadId::ANY);
        ipc::send(witness, Message::with_words(1, &[8]).propagated_for(originator)).unwrap();
        assert_eq!(told(witness), [me.raw(), 0, 0, 8], "{originator:?}");
    }
}

fn receiver_waits_for_originator() {
    let originator = idle();
    let witness = foreign_witness(originator);
    assert_eq!(ipc::reply(witness, Message::new(0)).unwrap_err().kind, IpcErrorKind::Timeout);
    ipc::send(witness, Message::with_words(1, &[9]).propagated_for(originator)).unwrap();
    assert_eq!(told(witness)[0], originator.raw());
}

fn receiver_waits_for_sender() {
    let originator = idle();
    let witness = foreign_witness(utcb::my_global_id());
    let message = Message::with_words(1, &[1]).propagated_for(originator);
    assert_eq!(ipc::reply(witness, message).unwrap_err().kind, IpcErrorKind::Timeout);
    ipc::send(witness, Message::with_words(1, &[2])).unwrap();
    assert_eq!(told(witness)[3], 2);
}

/// Makes a client of another space that waits only for this thread's answer. Returns its id after
/// its request has come.
fn client() -> ThreadId {
    let me = utcb::my_global_id();
    let client = spawn(move || {
        let answer = ipc::call(me, Message::with_words(1, &[1])).expect("an answer");
        tell(me, answer);
    });
    ipc::receive(client).expect("the request");
    client
}

fn originator_is_turned() {
    let client = client();
    let worker = spawn(|| {
        let request = ipc::wait().expect("the client's request");
        ipc::reply(request.from, Message::with_words(1, &[request.word(0) + 1])).expect("it waits for this");
        l4::start::halt()
    });
    await_state(worker, ThreadState::Waiting);
    ipc::send(worker, Message::with_words(1, &[20]).propagated_for(client)).unwrap();
    let [from, propagated, _, word] = told(client);
    assert_eq!((from, propagated, word), (thread::local_id_of(worker).unwrap().raw(), 0, 21));
}

fn failed_send() {
    let client = client();
    let busy = idle();
    let message = Message::with_words(1, &[3]).propagated_for(client);
    assert_eq!(ipc::reply(busy, message).unwrap_err().kind, IpcErrorKind::Timeout);
    ipc::reply(client, Message::with_words(1, &[4])).expect("it still waits for this thread");
    assert_eq!(told(client)[3], 4);
}

fn originator_deleted() {
    let me = utcb::my_global_id();
    let originator = idle();
    let sender = spawn(move || {
        ipc::send(me, Message::with_words(1, &[11]).propagated_for(originator)).unwrap();
    });
    await_state(sender, ThreadState::PendingSend);
    assert_eq!(ipc::receive_timeout(sender, Time::ZERO).unwrap_err().kind, IpcErrorKind::Timeout);
    thread::delete(originator).unwrap();
    let received = ipc::receive(sender).expect("its own message");
    assert_eq!((received.tag.is_propagated(), received.word(0)), (false, 11));
}

fn any_local() {
    let me = utcb::my_global_id();
    let space = Space::new();
    let originator = space.spawn(|| l4::start::halt());
    // The witness and the originator share a space; the sender has the right because it shares one
    // with the originator.
    let witness = space.spawn(move || {
        let received = ipc::receive(ThreadId::ANY_LOCAL).expect("a local thread's message");
        tell(me, received);
    });
    await_state(witness, ThreadState::Waiting);
    assert_eq!(ipc::reply(witness, Message::with_words(1, &[1])).unwrap_err().kind, IpcErrorKind::Timeout);
    let sender = space.spawn(move || {
        ipc::send(witness, Message::with_words(1, &[2]).propagated_for(originator)).unwrap();
    });
    let [from, propagated, actual, word] = told(witness);
    assert_eq!((propagated, word), (1, 2));
    assert!(ThreadId::from_raw(from).is_local() && ThreadId::from_raw(actual).is_local());
    assert_ne!(from, actual);
    let _ = sender;
}

fn actual_sender() {
    let mark = ThreadId::interrupt(99);
    let me = utcb::my_global_id();
    let sender = spawn(move || {
        ipc::send(me, Message::with_words(1, &[1])).unwrap();
        ipc::send(me, Message::with_words(1, &[1]).propagated_for(utcb::my_global_id())).unwrap();
    });
    for _ in 0..2 {
        utcb::set_virtual_sender(mark);
        let received = ipc::receive(sender).unwrap();
        assert!(!received.tag.is_propagated(), "one's own name is no propagation");
        assert_eq!(utcb::actual_sender(), mark);
    }
}
