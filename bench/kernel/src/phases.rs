//! The phases of a call to another processor and of its answer. One call of each kind is made
//! between two instants that are printed, so that its events can be found in the kernel's trace
//! (`./mac trace --phases`). The one time-stamp counter counts what all processors do here.

use core::sync::atomic::{AtomicU64, Ordering};

use l4::{ipc, println, utcb};
use x2::{MessageTag, ThreadId, Timeouts};

use bench_framework::now;

use crate::crossing::{LONG, STATES, pause, place};
use crate::fixture;

/// How many calls precede the one that is measured.
const BEFORE: u32 = 4;

/// Rounds for which the partner waits before it answers.
static REST: AtomicU64 = AtomicU64::new(0);
/// When the partner received the message, and when it answered.
static ARRIVED: AtomicU64 = AtomicU64::new(0);
static ANSWERED: AtomicU64 = AtomicU64::new(0);

extern "C" fn answer() -> ! {
    let mut received = ipc::receive(ThreadId::ANY);
    loop {
        ARRIVED.store(now(), Ordering::Relaxed);
        pause(REST.load(Ordering::Relaxed));
        ANSWERED.store(now(), Ordering::Relaxed);
        received = match received {
            Ok(request) => ipc::ipc(request.from, ThreadId::ANY, Timeouts::NEVER, MessageTag::EMPTY),
            Err(_) => ipc::receive(ThreadId::ANY),
        };
    }
}

pub(crate) fn run() {
    let partner = fixture::elsewhere(answer);
    let call = || ipc::ipc(partner, partner, Timeouts::NEVER, MessageTag::EMPTY).expect("it answers");
    for (from, to) in [(0, 1), (1, 0)] {
        place(utcb::my_global_id(), from);
        place(partner, to);
        for (state, rest) in STATES {
            REST.store(rest, Ordering::Relaxed);
            for _ in 0..BEFORE {
                pause(rest);
                call();
            }
            pause(rest);
            let called = now();
            call();
            let back = now();
            let [arrived, answered] = [&ARRIVED, &ANSWERED].map(|time| time.load(Ordering::Relaxed));
            println!(
                "{{\"client\":{from},\"server\":{to},\"targets\":\"{state}\",\"times\":[{called},{arrived},{answered},{back}]}}"
            );
            pause(LONG);
        }
    }
    place(utcb::my_global_id(), 0);
}
