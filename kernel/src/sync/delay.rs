//! Random delays at the points where processors race, to make rare interleavings frequent: the boot
//! option `delays=SEED`, for tests. Without it a point costs one load and one branch, and lies on
//! no fast path.

use core::hint::spin_loop;

use super::{SEVERAL, SharedWord};

/// Places in the kernel where a test can delay a processor.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Point {
    /// An object has left its processor, and is in no request queue yet.
    Post = 1,
    /// Objects have been taken out of a request queue, and wait to be admitted.
    Admit,
    /// A processor has looked at its request queues for the last time before it sleeps.
    Sleep,
    /// Page tables have changed, and no other processor knows.
    ShootDown,
    /// A processor has forgotten translations, and has not said so.
    Answer,
    /// Page tables are walked without a lock.
    Walk,
    /// A lock was taken just now.
    Lock,
    /// An interrupt that has occurred again is about to be noted, or one is about to be opened.
    Again,
    /// A call has looked up the thread that it is about, and has not touched it.
    LookUp,
    /// The fast path has looked up the thread that a message is for.
    FastLookUp,
    /// The lock of mappings is about to be taken.
    BeforeLock,
}

/// The longest delay, in rounds of a loop; most are far shorter.
const LONGEST: u64 = 1 << 14;

/// State of the generator; 0: no delays. All processors use it, and races to it do no harm.
static STATE: SharedWord = SharedWord::new(0);

/// Delays from now on, chosen by `seed`; 0 = none.
pub fn enable(seed: u64) {
    STATE.set(seed);
}

/// A point where frequent calls come by, which no delay is worth a load and a branch: there, only
/// tests on the host let another processor do something (`script`).
#[inline(always)]
pub fn between(point: Point) {
    #[cfg(test)]
    script::reach(point);
    #[cfg(not(test))]
    let _ = point;
}

/// Delays this processor for a random time, if the option says so.
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
    // One call in eight waits, half of these a short time.
    if random & 7 == 0 {
        let bound = LONGEST >> ((random >> 8) % 12);
        for _ in 0..(random >> 16) % bound {
            spin_loop();
        }
    }
}

/// Lets other processors act in the middle of an operation of the selected one, in tests on the
/// host.
#[cfg(test)]
pub mod script {
    use std::boxed::Box;
    use std::cell::RefCell;
    use std::thread_local;

    use super::Point;

    type Action = Box<dyn FnOnce()>;

    thread_local! {
        static NEXT: RefCell<Option<(Point, Action)>> = const { RefCell::new(None) };
    }

    /// Does `action` when `point` is reached next.
    pub fn once(point: Point, action: impl FnOnce() + 'static) {
        NEXT.set(Some((point, Box::new(action))));
    }

    /// Whether that has been done.
    pub fn is_done() -> bool {
        NEXT.with_borrow(Option::is_none)
    }

    pub(super) fn reach(point: Point) {
        let action = NEXT.with_borrow_mut(|next| next.take_if(|(at, _)| *at == point));
        if let Some((_, action)) = action {
            action();
        }
    }
}
