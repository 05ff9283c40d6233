//! The controller: a thread of the root task's space that makes privileged calls about the
//! attackers' threads, spaces and memory.

use crate::attacker;
use crate::choose::Chooser;
use crate::layout::CONTROLLER;
use crate::random::Random;
use crate::scarcity;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use l4::ipc;
use x2::Time;

/// The average number of calls between two spaces that get no memory.
const SCARCITY: u64 = 256;
const BREAK: Time = Time::period(500);

/// The maximum number of calls that the controller may have made: a part of what the attackers have
/// made. With more, attackers would do little else than wait to be created again.
static ALLOWED: AtomicU64 = AtomicU64::new(0);
/// Set when the supervisor wants the controller to make no calls.
static STOP: AtomicBool = AtomicBool::new(true);
/// Set while the controller makes no calls.
static STOPPED: AtomicBool = AtomicBool::new(false);

#[repr(C, align(4096))]
struct Page(UnsafeCell<[u64; 512]>);

// SAFETY: no reference to the content is ever made.
unsafe impl Sync for Page {}

static ITEMS: Page = Page(UnsafeCell::new([0; 512]));
static BUFFER: Page = Page(UnsafeCell::new([0; 512]));

/// The main function of the controller.
pub(crate) fn run() -> ! {
    let random = Random::new(&CONTROLLER.state);
    let chooser = Chooser {
        random,
        is_controller: true,
        items: Some(ITEMS.0.get() as u64),
        buffer: BUFFER.0.get() as u64,
    };
    loop {
        let stop = STOP.load(Ordering::Acquire);
        STOPPED.store(stop, Ordering::Release);
        if !stop {
            // Relaxed: the number only grows, and an old value only makes the controller wait
            // longer.
            while CONTROLLER.progress().unwrap_or(0) < ALLOWED.load(Ordering::Relaxed)
                && !STOP.load(Ordering::Relaxed)
            {
                attacker::step(chooser, &CONTROLLER);
                if random.one_in(SCARCITY) {
                    scarcity::make(chooser);
                }
            }
        }
        ipc::sleep(BREAK);
    }
}

/// Allows the controller this number of calls.
pub(crate) fn allow(calls: u64) {
    ALLOWED.store(calls, Ordering::Relaxed);
}

pub(crate) fn start() {
    STOP.store(false, Ordering::Release);
}

/// Stops the controller. Returns whether it has stopped.
pub(crate) fn stop() -> bool {
    STOP.store(true, Ordering::Release);
    (0..20_000).any(|_| {
        ipc::sleep(BREAK);
        STOPPED.load(Ordering::Acquire)
    })
}
