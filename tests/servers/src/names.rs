//! Tests of servers that find each other by name.

use crate::report::Report;
use l4::ipc::{self, Message};
use l4::utcb;
use l4::x2::{IpcErrorKind, ThreadId};
use rt::root::Status;
use rt::root::names::{lookup, lookup_wait, register};

/// Answers each word with its successor; the word 0 ends the server.
pub(crate) fn echo() -> ! {
    register(utcb::my_global_id()).expect("it is a thread of this server");
    let mut received = ipc::wait();
    loop {
        received = match received {
            Ok(message) if message.tag.untyped() == 1 && message.word(0) != 0 => {
                let next = message.word(0) + 1;
                ipc::reply_wait(message.from, Message::with_words(0, &[next]))
            }
            Ok(message) if message.tag.untyped() == 1 => rt::root::exit(0),
            _ => ipc::wait(),
        };
    }
}

/// A server that never registers: waits for a message of the tests, then ends.
pub(crate) fn silent() -> ! {
    let tests = lookup_wait("tests");
    rt::root::exit(tests.is_err().into())
}

fn next_of(thread: ThreadId, word: u64) -> Option<u64> {
    ipc::call(thread, Message::with_words(0, &[word])).ok().map(|answer| answer.word(0))
}

pub(crate) fn test(report: &mut Report) {
    let unknown = ["nobody", "", "tests", "silent"].map(|name| lookup(name).map(drop));
    let not_there = unknown == [Err(Status::NotFound); 4];
    let not_waited_for = lookup_wait("nobody") == Err(Status::NotFound);
    report.test(
        not_there && not_waited_for,
        "ROOT0330",
        "who does not exist or has not registered is not found",
    );
    // Root has numbered the servers' first threads in order.
    let me = utcb::my_global_id();
    let guess = ThreadId::global(me.number() + 1, me.version()).unwrap_or(ThreadId::NIL);
    let before = ipc::call(guess, Message::with_words(0, &[1])).map_err(|error| error.kind);
    let closed = before.map(drop) == Err(IpcErrorKind::NonExistingPartner);
    let echo = lookup_wait("echo");
    report.test(
        closed && echo == Ok(guess) && next_of(guess, 41) == Some(42),
        "ROOT0331",
        "servers reach each other from a look-up on",
    );
    let others = [ThreadId::NIL, utcb::pager(), guess].map(register);
    report.test(
        others == [Err(Status::InvalidArgument); 3] && lookup("echo") == Ok(guess),
        "ROOT0332",
        "a server's name is for its own threads",
    );
    let registered = register(me) == Ok(());
    report.test(
        registered && lookup_wait("silent") == Err(Status::NotFound),
        "ROOT0333",
        "who waits for a name is told when it is there, and when it will never be",
    );
    let ended = ipc::call(guess, Message::with_words(0, &[0])).is_err();
    report.test(
        ended && lookup("echo") == Err(Status::NotFound) && lookup_wait("echo") == Err(Status::NotFound),
        "ROOT0334",
        "a server that has ended is neither reached nor found",
    );
}
