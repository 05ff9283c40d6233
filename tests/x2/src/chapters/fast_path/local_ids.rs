//! Tests of calls to local ids.

use super::{await_waiting, server};
use crate::framework::fixture::{await_state, spawn, state_of};
use l4::ipc::{self, Message};
use l4::{thread, utcb};
use x2::control::ThreadState;
use x2::{IpcError, IpcErrorKind, IpcPhase, Time, Timeouts};

pub(super) fn call() {
    let server = thread::local_id_of(server()).unwrap();
    for word in 0..4 {
        let answer = ipc::call(server, Message::with_words(1, &[word])).unwrap();
        assert_eq!((answer.from, answer.word(0)), (server, word + 1));
        assert_eq!(answer.word(1), utcb::my_local_id().raw());
    }
}

pub(super) fn closed_receive() {
    let other = spawn(|| l4::start::halt());
    let closed = spawn(move || {
        let _ = ipc::receive(other);
    });
    await_waiting(closed);
    let closed = thread::local_id_of(closed).unwrap();
    let timeouts = Timeouts::new(Time::ZERO, Time::NEVER);
    // The first call finds the thread of the local id, and stores it for the fast path of the
    // second.
    for _ in 0..2 {
        let error = ipc::call_timeouts(closed, Message::with_words(1, &[1]), timeouts);
        let error = error.expect_err("it does not wait for us");
        assert_eq!(error, IpcError::new(IpcPhase::Send, IpcErrorKind::Timeout));
        assert_eq!(state_of(closed), ThreadState::Waiting);
    }
}

pub(super) fn apart() {
    // There are more servers than a space remembers local ids: some share a place in its table.
    let servers = [(); 9].map(|()| {
        let server = spawn(|| {
            let mut request = ipc::wait().unwrap();
            loop {
                let words = [utcb::my_local_id().raw()];
                request =
                    ipc::reply_wait(request.from, Message::with_words(2, &words)).expect("the caller waits");
            }
        });
        await_waiting(server);
        thread::local_id_of(server).unwrap()
    });
    for server in servers.iter().chain(&servers) {
        let answer = ipc::call(*server, Message::new(1)).unwrap();
        assert_eq!((answer.from.raw(), answer.word(0)), (server.raw(), server.raw()));
    }
}

pub(super) fn callee_deleted() {
    let me = utcb::my_global_id();
    let silent = spawn(|| {
        let _ = ipc::wait();
        l4::start::halt();
    });
    await_waiting(silent);
    let local = thread::local_id_of(silent).unwrap();
    let caller = spawn(move || {
        let error = ipc::call(local, Message::with_words(1, &[1])).expect_err("it goes");
        ipc::send(me, Message::with_words(1, &[error.raw()])).unwrap();
    });
    await_state(caller, ThreadState::Waiting);
    thread::delete(silent).unwrap();
    let expected = IpcError::new(IpcPhase::Receive, IpcErrorKind::NonExistingPartner);
    assert_eq!(ipc::receive(caller).unwrap().word(0), expected.raw());
}
