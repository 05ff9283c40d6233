//! Many threads that come to a processor together. Only under instruction counting does a timer
//! fire when it should, and do processors take turns, so that others come while one waits for its
//! own. Here they come in small numbers at a time: that interrupts are looked for between two of
//! many, the kernel's tests on the host show (`thread/tests/arrival.rs`).

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

/// How many come together.
const VISITORS: usize = 96;
/// Less than it takes to see to all of them.
const TIMESLICE: u64 = 50;
/// When it ends, nobody or one of them is seen to before the processor looks; the last microsecond
/// counts as nothing, too.
const FEW: usize = 4;

/// Whoever asks for a thread's timeslice goes to where that is, so each visitor learns what was
/// left of it when it was seen to.
fn timeslice_beside_arrivals() {
    static ROUNDS: AtomicU64 = AtomicU64::new(0);
    static LEFT: [AtomicU64; VISITORS] = [const { AtomicU64::new(0) }; VISITORS];
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
    let visitors: [ThreadId; VISITORS] = core::array::from_fn(|number| {
        let visitor = spawn(move || {
            loop {
                ipc::receive(boss).expect("the test goes on");
                LEFT[number].store(left(), Ordering::Relaxed);
                ipc::send(boss, Message::new(0)).expect("the test waits");
            }
        });
        place(visitor, 0)
    });
    for round in 0..20 {
        visitors.iter().for_each(|&visitor| ipc::send(visitor, Message::new(0)).expect("it waits"));
        for visitor in visitors {
            ipc::receive(visitor).expect("it has visited");
        }
        let after_its_end = LEFT.iter().filter(|left| left.load(Ordering::Relaxed) == 0).count();
        assert!(after_its_end <= FEW, "round {round}: {after_its_end} visits after the end of a timeslice");
    }
}
