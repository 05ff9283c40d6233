//! Tests of calls and answers with receive timeouts. The fast paths begin them and do not cancel
//! them, since most never expire. Every case must have the result of the general path
//! (docs/src/ipc-fast-path.md).

use super::fast_path::{self, RECEIVE_TIMEOUT, await_waiting, server};
use crate::framework::fixture::spawn;
use crate::framework::{confined, tests};
use l4::ipc::{self, Message};
use l4::{thread, utcb};
use x2::{IpcError, ThreadId, Time, Timeouts};

tests! {
    FTM0001 [1.11a] "of two calls with timeouts, the second waits as long as it says" second_timeout;
    FTM0002 [1.11a] "of two calls with timeouts, the second can end before the first would have" earlier_second_timeout;
    FTM0003 [1.11a] "an answer and an open wait, with a timeout, end by a message or by the timeout" timed_open_wait;
    FTM0004 [1.11a, 1.12] "a call whose receive timeout is a point, or has passed" receive_timeouts_of_all_kinds;
    FTM0005 [1.11a] "a thread that waits with a timeout is called by another than it waits for" timed_closed_receive;
    FTM0006 [7.3] "an answer and a wait with a timeout takes the message of another that was there before" waiting_sender;
    FTM0007 [ABI 16] "the thread that is called with a timeout does not find the caller's selectors" selectors;
    FTM0008 [EXT 2.7] "a thread that has lost its owner is called with a timeout, and does not run" orphan;
    FTM0009 [1.11a, 7.19] "a call by a local id with a timeout ends by the answer or by the timeout" timed_local_call;
    FTM0010 [1.11a, EXT 2.2] "a confined thread's call with a timeout ends by the answer or by the timeout" timed_confined_call;
}

const LONG: Time = Time::period(60_000_000);

fn waiting_sender() {
    fast_path::take_waiting_sender(LONG);
}

fn selectors() {
    fast_path::registers::call_with_selectors(LONG);
}

fn orphan() {
    fast_path::call_orphan(LONG);
}

/// Calls `to`, which answers if it is the server, with a receive timeout of `micros`. Returns the
/// result and how long the call took.
fn timed_call(to: ThreadId, micros: u64) -> (Result<u64, IpcError>, u64) {
    let before = thread::system_clock();
    let timeouts = Timeouts::new(Time::NEVER, Time::period(micros));
    let answer = ipc::call_timeouts(to, Message::with_words(1, &[41]), timeouts);
    (answer.map(|answer| answer.word(0)), thread::system_clock() - before)
}

/// Makes a thread that receives messages and never answers.
fn silent() -> ThreadId {
    let silent = spawn(|| {
        loop {
            let _ = ipc::wait();
        }
    });
    await_waiting(silent);
    silent
}

fn second_timeout() {
    let (server, silent) = (server(), silent());
    assert_eq!(timed_call(server, 20_000).0, Ok(42));
    let (error, taken) = timed_call(silent, 60_000);
    assert!(error == Err(RECEIVE_TIMEOUT) && taken >= 60_000, "{error:?} after {taken} us");
}

fn earlier_second_timeout() {
    let (server, silent) = (server(), silent());
    assert_eq!(timed_call(server, 60_000_000).0, Ok(42));
    let (error, taken) = timed_call(silent, 1000);
    assert!(
        error == Err(RECEIVE_TIMEOUT) && (1000..30_000_000).contains(&taken),
        "{error:?} after {taken} us"
    );
}

fn timed_open_wait() {
    let server = spawn(|| {
        let mut request = ipc::wait().unwrap();
        loop {
            let answer = Message::with_words(2, &[request.word(0) + 1]);
            let (to, timeouts) = (request.from, Timeouts::new(Time::ZERO, Time::period(50_000)));
            request = match ipc::ipc(to, ThreadId::ANY, timeouts, answer.tag()) {
                Ok(request) => request,
                Err(error) if error == RECEIVE_TIMEOUT => ipc::wait().unwrap(),
                Err(error) => panic!("{error:?}"),
            };
        }
    });
    await_waiting(server);
    for _ in 0..3 {
        assert_eq!(ipc::call(server, Message::with_words(1, &[1])).unwrap().word(0), 2);
    }
    ipc::sleep(Time::period(100_000));
    assert_eq!(ipc::call(server, Message::with_words(1, &[2])).unwrap().word(0), 3);
}

fn receive_timeouts_of_all_kinds() {
    let (server, silent) = (server(), silent());
    let call = |to: ThreadId, receive: Time| {
        ipc::call_timeouts(to, Message::with_words(1, &[41]), Timeouts::new(Time::NEVER, receive))
            .map(|answer| answer.word(0))
    };
    let in_time = |micros: u64| {
        let now = thread::system_clock();
        Time::point(now, now + micros).expect("near enough")
    };
    assert_eq!(call(server, in_time(5_000_000)), Ok(42), "a point in time");
    assert_eq!(call(silent, in_time(2000)), Err(RECEIVE_TIMEOUT), "a point");
    let past = in_time(0);
    ipc::sleep(Time::period(1000));
    for timeout in [past, Time::ZERO] {
        assert_eq!(call(silent, timeout), Err(RECEIVE_TIMEOUT), "{timeout:?}");
    }
}

fn timed_closed_receive() {
    let silent = silent();
    let caller = spawn(move || {
        let (answer, _) = timed_call(silent, 100_000);
        let ended = u64::from(answer == Err(RECEIVE_TIMEOUT));
        let request = ipc::wait().unwrap();
        let _ = ipc::reply(request.from, Message::with_words(1, &[ended]));
    });
    await_waiting(caller);
    assert_eq!(ipc::call(caller, Message::new(1)).unwrap().word(0), 1, "it has waited for another");
}

fn timed_local_call() {
    let [server, silent] = [server(), silent()].map(|callee| thread::local_id_of(callee).unwrap());
    // The first call of each thread finds the thread of the local id, and stores it for the fast
    // path of the second.
    for _ in 0..2 {
        assert_eq!(timed_call(server, 60_000_000).0, Ok(42));
        let (error, taken) = timed_call(silent, 20_000);
        assert!(error == Err(RECEIVE_TIMEOUT) && taken >= 20_000, "{error:?} after {taken} us");
    }
}

fn timed_confined_call() {
    let me = utcb::my_global_id();
    let space = confined::space();
    let caller = confined::spawn(&space, move || {
        let (answer, _) = timed_call(me, 60_000_000);
        let (error, taken) = timed_call(me, 20_000);
        let as_said = answer == Ok(42) && error == Err(RECEIVE_TIMEOUT) && taken >= 20_000;
        let _ = ipc::send(me, Message::with_words(2, &[u64::from(as_said)]));
    });
    let request = ipc::receive(caller).unwrap();
    let second = ipc::call(caller, Message::with_words(1, &[request.word(0) + 1])).unwrap();
    assert_eq!(second.tag.label(), 1, "the second call, which is not answered");
    let told = ipc::receive(caller).unwrap();
    assert_eq!((told.tag.label(), told.word(0)), (2, 1));
}
