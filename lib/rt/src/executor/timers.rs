//! The timers of one worker: an indexed binary heap, so that arming, firing and cancelling cost a
//! logarithm and nothing remains of a cancelled timer.

use super::{Instant, OutOfMemory};
use alloc::vec::Vec;
use core::task::Waker;
use spin::Mutex;

/// Identifies an armed timer until it is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimerId(usize);

struct Slot {
    deadline: Instant,
    /// The position in `heap`; if `waker` is `None`, the next free slot.
    position: usize,
    waker: Option<Waker>,
}

struct Heap {
    /// Slot numbers, the earliest deadline first (a binary heap).
    heap: Vec<usize>,
    slots: Vec<Slot>,
    /// The first of the list of free slots; `NONE` at its end.
    free: usize,
}

const NONE: usize = usize::MAX;

pub(super) struct Timers(Mutex<Heap>);

impl Timers {
    pub(super) fn new() -> Self {
        Timers(Mutex::new(Heap { heap: Vec::new(), slots: Vec::new(), free: NONE }))
    }

    /// Arms a timer that wakes `waker` at `deadline`. Also returns whether it is the earliest now,
    /// so that a sleeping worker must be notified.
    pub(super) fn arm(&self, deadline: Instant, waker: &Waker) -> Result<(TimerId, bool), OutOfMemory> {
        let mut heap = self.0.lock();
        let slot = heap.arm(deadline, waker)?;
        Ok((TimerId(slot), heap.heap[0] == slot))
    }

    /// Replaces the waker of an armed timer. No effect if the timer has fired.
    pub(super) fn rearm(&self, id: TimerId, waker: &Waker) {
        let mut heap = self.0.lock();
        if let Some(current) = heap.slots[id.0].waker.as_mut() {
            current.clone_from(waker);
        }
    }

    /// Cancels a timer, whether it has fired or not, and frees its slot.
    pub(super) fn cancel(&self, id: TimerId) {
        let waker = self.0.lock().remove(id.0);
        drop(waker); // outside the lock: it may be a task's last reference
    }

    /// The earliest deadline.
    pub(super) fn earliest(&self) -> Option<Instant> {
        let heap = self.0.lock();
        heap.heap.first().map(|&slot| heap.slots[slot].deadline)
    }

    /// Wakes every timer whose deadline is not after `now`. A fired timer stays in its slot, out of
    /// the heap, until its owner cancels it. So a `TimerId` never identifies the timer of another
    /// owner.
    pub(super) fn fire(&self, now: Instant) {
        loop {
            let waker = {
                let mut heap = self.0.lock();
                let Some(&slot) = heap.heap.first() else { return };
                if heap.slots[slot].deadline > now {
                    return;
                }
                heap.unlink(slot);
                heap.slots[slot].waker.clone()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// The `position` of a timer that has fired and was not cancelled yet.
const FIRED: usize = usize::MAX - 1;

impl Heap {
    fn arm(&mut self, deadline: Instant, waker: &Waker) -> Result<usize, OutOfMemory> {
        // The heap never has more elements than there are slots, so room for one is enough for each
        // new slot.
        self.heap.try_reserve(1).map_err(|_| OutOfMemory)?;
        let position = self.heap.len();
        let slot = if self.free != NONE {
            let slot = self.free;
            self.free = self.slots[slot].position;
            self.slots[slot] = Slot { deadline, position, waker: Some(waker.clone()) };
            slot
        } else {
            self.slots.try_reserve(1).map_err(|_| OutOfMemory)?;
            self.slots.push(Slot { deadline, position, waker: Some(waker.clone()) });
            self.slots.len() - 1
        };
        self.heap.push(slot);
        self.sift_up(position);
        Ok(slot)
    }

    fn remove(&mut self, slot: usize) -> Option<Waker> {
        if self.slots[slot].position != FIRED {
            self.unlink(slot);
        }
        self.slots[slot].position = self.free;
        self.free = slot;
        self.slots[slot].waker.take()
    }

    /// Removes a timer from the heap and marks it as fired.
    fn unlink(&mut self, slot: usize) {
        let position = self.slots[slot].position;
        let last = self.heap.len() - 1;
        self.swap(position, last);
        self.heap.pop();
        if position < last {
            let moved = self.sift_up(position);
            self.sift_down(moved);
        }
        self.slots[slot].position = FIRED;
    }

    fn deadline_at(&self, position: usize) -> Instant {
        self.slots[self.heap[position]].deadline
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.slots[self.heap[a]].position = a;
        self.slots[self.heap[b]].position = b;
    }

    fn sift_up(&mut self, mut position: usize) -> usize {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.deadline_at(parent) <= self.deadline_at(position) {
                break;
            }
            self.swap(parent, position);
            position = parent;
        }
        position
    }

    fn sift_down(&mut self, mut position: usize) {
        loop {
            let (left, right) = (2 * position + 1, 2 * position + 2);
            let mut first = position;
            if left < self.heap.len() && self.deadline_at(left) < self.deadline_at(first) {
                first = left;
            }
            if right < self.heap.len() && self.deadline_at(right) < self.deadline_at(first) {
                first = right;
            }
            if first == position {
                return;
            }
            self.swap(first, position);
            position = first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::sync::Arc;
    use alloc::task::Wake;
    use proptest::prelude::*;
    use std::sync::Mutex as StdMutex;

    struct Log(usize, Arc<StdMutex<Vec<usize>>>);

    impl Wake for Log {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Arm(u64),
        Cancel(usize),
        Advance(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u64..200).prop_map(Step::Arm),
            any::<usize>().prop_map(Step::Cancel),
            (0u64..60).prop_map(Step::Advance),
        ]
    }

    proptest! {
        /// Compares the timers with a sorted set: at each step the same timers fire, in order of
        /// their deadlines. Slots are reused.
        #[test]
        fn behaves_as_a_sorted_set(steps in proptest::collection::vec(step(), 1..200)) {
            let timers = Timers::new();
            let fired = Arc::new(StdMutex::new(Vec::new()));
            let mut model: BTreeSet<(u64, usize)> = BTreeSet::new();
            let mut armed: Vec<(usize, TimerId)> = Vec::new();
            let mut deadlines: Vec<u64> = Vec::new();
            let mut now = 0;
            for step in steps {
                match step {
                    Step::Arm(delay) => {
                        let name = deadlines.len();
                        let waker = Waker::from(Arc::new(Log(name, fired.clone())));
                        let (id, first) = timers.arm(now + delay, &waker).unwrap();
                        let earliest = model.first().map(|&(deadline, _)| deadline);
                        prop_assert_eq!(first, earliest.is_none_or(|earliest| now + delay < earliest));
                        deadlines.push(now + delay);
                        model.insert((now + delay, name));
                        armed.push((name, id));
                    }
                    Step::Cancel(which) if !armed.is_empty() => {
                        let (name, id) = armed.swap_remove(which % armed.len());
                        timers.cancel(id);
                        model.remove(&(deadlines[name], name));
                    }
                    Step::Cancel(_) => {}
                    Step::Advance(by) => {
                        now += by;
                        timers.fire(now);
                        let mut due: Vec<usize> = Vec::new();
                        while let Some(&(deadline, name)) = model.first() {
                            if deadline > now { break; }
                            model.pop_first();
                            due.push(name);
                        }
                        let mut got = core::mem::take(&mut *fired.lock().unwrap());
                        prop_assert!(got.windows(2).all(|pair| deadlines[pair[0]] <= deadlines[pair[1]]));
                        got.sort_unstable();
                        due.sort_unstable();
                        prop_assert_eq!(got, due);
                    }
                }
                prop_assert_eq!(timers.earliest(), model.first().map(|&(deadline, _)| deadline));
            }
            for (_, id) in armed.drain(..) {
                timers.cancel(id);
            }
            let heap = timers.0.lock();
            prop_assert!(heap.heap.is_empty() && heap.slots.iter().all(|slot| slot.waker.is_none()));
        }
    }
}
