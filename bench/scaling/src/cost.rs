//! Costs that must not grow with the number of other threads: those of timeouts with the threads
//! that sleep, those of switches with the threads that are ready.

use crate::world::{RUNNING, delete, id, make_program_space, start};
use crate::{AVERAGED, time};
use l4::ipc::{self, Message};
use l4::{kip, thread};
use x2::{MessageTag, ThreadId, Time, Timeouts};

const OTHERS: [u64; 4] = [0, 10, 100, RUNNING - 1];
/// A time that is longer than the whole benchmark.
const LONG: Time = Time::period(3_600_000_000);
const PRIORITY: u8 = 100;

/// Sleeps for ever, each time with a timeout.
extern "C" fn sleeper() -> ! {
    loop {
        ipc::sleep(LONG);
    }
}

/// A thread that is ready and never runs: the root task's priority is above its own.
extern "C" fn idler() -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Answers every message of the root task.
extern "C" fn echo() -> ! {
    let root = kip().root();
    let _ = ipc::receive(root);
    loop {
        let _ = ipc::ipc(root, root, Timeouts::NEVER, MessageTag::new(0, 0, 0));
    }
}

pub(crate) fn run() {
    let (space, partner) = (id(0), id(1));
    make_program_space(space);
    let other = |number: u64| id(1 + number);
    for others in OTHERS {
        start(partner, space, 0, echo);
        (1..=others).for_each(|number| {
            start(other(number), space, number, idler);
            thread::set_priority(other(number), PRIORITY).expect("this is its scheduler");
        });
        time("call-beside-ready-threads", others, AVERAGED, || {
            ipc::call(partner, Message::new(0)).expect("the partner answers");
        });
        time("yield-beside-ready-threads", others, AVERAGED, || thread::switch_to(ThreadId::NIL));
        (1..=others).for_each(|number| delete(other(number)));
        (1..=others).for_each(|number| {
            start(other(number), space, number, sleeper);
            thread::switch_to(other(number));
        });
        let timeouts = Timeouts::new(Time::NEVER, Time::period(1_000_000));
        time("call-with-timeout-beside-sleepers", others, AVERAGED, || {
            ipc::call_timeouts(partner, Message::new(0), timeouts).expect("the partner answers");
        });
        (0..=others).for_each(|number| delete(other(number)));
    }
    delete(space);
}
