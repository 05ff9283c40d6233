//! Random delays at the points where processors race, to make rare interleavings frequent: the boot option `delays=SEED`,
//! for tests. Without it a point costs one load and one branch, and lies on no fast path.

use core::hint::spin_loop;

use super::{SEVERAL, SharedWord};

/// Where a processor can be delayed.
#[derive(Clone, Copy)]
#[repr(u64)]
pub enum Point {
    /// An object has left, and is in no mailbox yet.
    Post = 1,
    /// Objects have been taken out of a mailbox, and wait to be admitted.
    Admit,
    /// A processor has looked at its mailboxes for the last time before it sleeps.
    Sleep,
    /// Page tables have changed, and no other processor knows.
    ShootDown,
    /// A processor has forgotten translations, and has not said so.
    Answer,
    /// Page tables are walked without a lock.
    Walk,
    /// A lock was taken.
    Lock,
    /// An interrupt that has occurred again is about to be noted, or one is about to be opened.
    Again,
}

/// The longest delay, in rounds of a loop; most are far shorter.
const LONGEST: u64 = 1 << 14;

/// State of the generator; 0: no delays. All processors use it, and nobody minds what races do to it.
static STATE: SharedWord = SharedWord::new(0);

/// Delays from now on, chosen by `seed`; 0 = none.
pub fn enable(seed: u64) {
    STATE.set(seed);
}

/// Delays this processor, perhaps.
#[inline]
pub fn at(point: Point) {
    let state = STATE.get();
    if SEVERAL && state != 0 {
        crate::arch::call_seldom(wait, state, point as u64);
    }
}

#[cold]
extern "C" fn wait(state: u64, point: u64) {
    let number = u64::from(crate::arch::cpu_number());
    let mut random = state ^ (number << 32 | point).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    STATE.set(random | 1);
    // One in eight waits, half of these a short time.
    if random & 7 == 0 {
        let bound = LONGEST >> ((random >> 8) % 12);
        for _ in 0..(random >> 16) % bound {
            spin_loop();
        }
    }
}
