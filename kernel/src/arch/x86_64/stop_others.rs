//! Stopping the other processors while the kernel has stopped on one, or its debugger is used
//! there. Non-maskable interrupts stop them, whatever they are doing.
//!
//! Works while anything may be broken: without locks, and without what belongs to one processor,
//! but for its number.
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::instructions::read_time_stamp;
use super::local_apic::LOCAL_APIC;
use super::{boot, stacks, time};
use crate::kip::MAX_PROCESSORS;

/// The processor that has stopped the others.
static STOPPED_BY: AtomicU32 = AtomicU32::new(NO_PROCESSOR);
const NO_PROCESSOR: u32 = u32::MAX;
/// Whether the next non-maskable interrupt of a processor is one of these.
static EXPECTED: [AtomicBool; MAX_PROCESSORS] = [const { AtomicBool::new(false) }; MAX_PROCESSORS];
/// The instruction at which each processor was stopped; 0 if it was not.
static STOPPED_AT: [AtomicU64; MAX_PROCESSORS] = [const { AtomicU64::new(0) }; MAX_PROCESSORS];

/// Milliseconds that others are waited for: far more than the longest time without a look at
/// non-maskable interrupts, which there is only in emulators.
const PATIENCE: u64 = 1000;

/// The executing processor's number, as found through its stack.
fn here() -> u32 {
    // SAFETY: the owner of a stack is its processor's data, which is never freed.
    stacks::owner(super::frame_pointer()).map_or(0, |owner| unsafe { (*owner).number })
}

fn others(here: u32) -> impl Iterator<Item = u32> {
    (0..boot::processors::count()).filter(move |&number| number != here)
}

/// Waits until all others are as wanted, but not for ever.
fn await_others(here: u32, wanted: impl Fn(&AtomicU64) -> bool) {
    let start = read_time_stamp();
    let patience = PATIENCE.saturating_mul(time::time_stamp_khz());
    while others(here).any(|number| !wanted(&STOPPED_AT[number as usize]))
        && read_time_stamp().wrapping_sub(start) < patience
    {
        spin_loop();
    }
}

/// Stops all other processors, and waits until they have stopped. `false`: the executing processor
/// has stopped them before. Of two that stop each other, one goes on.
pub fn stop_others() -> bool {
    let here = here();
    // Acquire and release: a processor that stops others sees what they did before, and they see
    // what it has done.
    while let Err(stopper) =
        STOPPED_BY.compare_exchange(NO_PROCESSOR, here, Ordering::AcqRel, Ordering::Relaxed)
    {
        if stopper == here {
            return false;
        }
        spin_loop();
    }
    for number in others(here) {
        EXPECTED[number as usize].store(true, Ordering::Release);
        LOCAL_APIC.send_non_maskable(boot::processors::local_apic_id(number));
    }
    await_others(here, |stopped_at| stopped_at.load(Ordering::Acquire) != 0);
    true
}

/// Lets the other processors go on.
pub fn resume_others() {
    STOPPED_BY.store(NO_PROCESSOR, Ordering::Release);
    // A processor that has not noticed yet would miss that it is stopped again.
    await_others(here(), |stopped_at| stopped_at.load(Ordering::Acquire) == 0);
}

/// The other processors, and where each has been stopped, if it has stopped.
pub fn stopped_others() -> impl Iterator<Item = (u32, Option<u64>)> {
    others(here()).map(|number| {
        let stopped_at = STOPPED_AT[number as usize].load(Ordering::Relaxed);
        (number, Some(stopped_at).filter(|&address| address != 0))
    })
}

/// A non-maskable interrupt has come where the processor was at `address`: if it was sent by
/// [`stop_others`], stands still until the others may go on. Returns whether it was.
pub(super) fn stand_still(address: u64) -> bool {
    let here = here() as usize;
    if !EXPECTED[here].swap(false, Ordering::AcqRel) {
        return false;
    }
    STOPPED_AT[here].store(address.max(1), Ordering::Release);
    while STOPPED_BY.load(Ordering::Acquire) != NO_PROCESSOR {
        spin_loop();
    }
    STOPPED_AT[here].store(0, Ordering::Release);
    true
}
