//! The controller: a thread of the root task's space that makes privileged calls about the attackers' threads, spaces and memory.

use crate::attacker;
use crate::choose::Chooser;
use crate::layout::CONTROLLER;
use crate::random::Random;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};
use l4::ipc;
use x2::Time;

/// Calls between breaks.
const BURST: u64 = 16;
const BREAK: Time = Time::period(500);

/// The supervisor wants it to make no call.
static STOP: AtomicBool = AtomicBool::new(true);
/// It makes none.
static STOPPED: AtomicBool = AtomicBool::new(false);

#[repr(C, align(4096))]
struct Items(UnsafeCell<[u64; 512]>);

// SAFETY: nothing forms a reference to the content.
unsafe impl Sync for Items {}

static ITEMS: Items = Items(UnsafeCell::new([0; 512]));

/// What the thread does.
pub(crate) fn run() -> ! {
    let random = Random::new(&CONTROLLER.state);
    let chooser = Chooser { random, is_controller: true, items: Some(ITEMS.0.get() as u64) };
    loop {
        let stop = STOP.load(Ordering::Acquire);
        STOPPED.store(stop, Ordering::Release);
        if !stop {
            for _ in 0..BURST {
                attacker::step(chooser, &CONTROLLER);
            }
        }
        ipc::sleep(BREAK);
    }
}

pub(crate) fn start() {
    STOP.store(false, Ordering::Release);
}

/// Returns whether it has stopped.
pub(crate) fn stop() -> bool {
    STOP.store(true, Ordering::Release);
    (0..20_000).any(|_| {
        ipc::sleep(BREAK);
        STOPPED.load(Ordering::Acquire)
    })
}
