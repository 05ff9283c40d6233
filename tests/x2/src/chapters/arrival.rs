//! Tests of many threads that go to another processor at the same time, by their system calls. Only
//! under instruction counting do timers fire at the right instant, and do processors take turns, so
//! that threads arrive while one waits for its own processor. Here only a few arrive at a time.
//! That the kernel looks for interrupts between two of many arrivals is shown by its tests on the
//! host (`thread/tests/arrival.rs`).

use super::processors::place;
use crate::framework::fixture::spawn;
use crate::framework::tests;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::{thread, utcb};
use x2::control::{TimeControl, UNCHANGED};
use x2::{ThreadId, Time};

tests! {
    SMP0024 [3.4] "a timeslice ends on a processor to which many come together" timeslice_beside_arrivals;
}

/// How many threads make the system call at the same time.
const CALLERS: usize = 96;
/// The timeslice in microseconds: less than the processor takes to serve all of the threads.
const TIMESLICE: u64 = 50;
/// How many threads may read that nothing is left of the timeslice. After its end the processor
/// serves at most one more thread before it takes the timer's interrupt; and a thread that is
/// served in the last microsecond reads 0, too.
const FEW: usize = 4;

/// A thread that reads the timeslice of another by Schedule goes to that thread's processor. So
/// each thread learns how much of the timeslice was left when its request was served.
fn timeslice_beside_arrivals() {
    static ROUNDS: AtomicU64 = AtomicU64::new(0);
    static LEFT: [AtomicU64; CALLERS] = [const { AtomicU64::new(0) }; CALLERS];
    let boss = place(utcb::my_global_id(), 0);
    let runs = || loop {
        ROUNDS.fetch_add(1, Ordering::Relaxed);
    };
    let runner = place(spawn(runs), 1);
    let time = TimeControl::new(Some(Time::period(TIMESLICE)), None).raw();
    thread::schedule(runner, time, UNCHANGED, UNCHANGED, UNCHANGED).expect("a timeslice");
    let left = move || {
        let (_, time) =
            thread::schedule(runner, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED).expect("it runs");
        let left = TimeControl::from_raw(time).timeslice().expect("it has timeslices");
        left.micros().expect("they end")
    };
    let callers: [ThreadId; CALLERS] = core::array::from_fn(|number| {
        let caller = spawn(move || {
            loop {
                ipc::receive(boss).expect("the test goes on");
                LEFT[number].store(left(), Ordering::Relaxed);
                ipc::send(boss, Message::new(0)).expect("the test waits");
            }
        });
        place(caller, 0)
    });
    for round in 0..20 {
        callers.iter().for_each(|&caller| ipc::send(caller, Message::new(0)).expect("it waits"));
        for caller in callers {
            ipc::receive(caller).expect("it has been there");
        }
        let after_its_end = LEFT.iter().filter(|left| left.load(Ordering::Relaxed) == 0).count();
        assert!(after_its_end <= FEW, "round {round}: {after_its_end} requests after the end of a timeslice");
    }
}
