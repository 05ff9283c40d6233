//! A queue of deadlines: insertion, removal and the earliest in O(log n).

use alloc::collections::BTreeMap;
use core::time::Duration;

/// Deadlines, each with a value; equal deadlines are in the order of insertion.
#[derive(Debug)]
pub struct TimerQueue<T> {
    entries: BTreeMap<(Duration, u64), T>,
    next: u64,
}

impl<T> Default for TimerQueue<T> {
    fn default() -> Self {
        TimerQueue { entries: BTreeMap::new(), next: 0 }
    }
}

impl<T> TimerQueue<T> {
    /// Adds a deadline; returns its place in the queue, for [`TimerQueue::remove`].
    pub fn insert(&mut self, deadline: Duration, value: T) -> (Duration, u64) {
        self.next += 1;
        self.entries.insert((deadline, self.next), value);
        (deadline, self.next)
    }

    /// Removes the deadline at `place`, if there is one.
    pub fn remove(&mut self, place: Option<(Duration, u64)>) -> Option<T> {
        self.entries.remove(&place?)
    }

    /// The earliest deadline of the queue; `None` if the queue is empty.
    pub fn first(&self) -> Option<Duration> {
        self.entries.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    /// Removes the earliest deadline and returns its value.
    pub fn take_first(&mut self) -> Option<T> {
        self.entries.pop_first().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The queue behaves as a sorted list does.
        #[test]
        fn matches_a_model(steps in prop::collection::vec((any::<bool>(), 0u64..20, any::<prop::sample::Index>()), 0..100)) {
            let mut queue = TimerQueue::default();
            let mut model: Vec<((Duration, u64), usize)> = Vec::new();
            for (index, (insert, deadline, which)) in steps.into_iter().enumerate() {
                if insert {
                    model.push((queue.insert(Duration::from_secs(deadline), index), index));
                } else if !model.is_empty() && deadline < 10 {
                    let (place, value) = model.remove(which.index(model.len()));
                    prop_assert_eq!(queue.remove(Some(place)), Some(value));
                    prop_assert_eq!(queue.remove(Some(place)), None);
                } else {
                    model.sort();
                    let first = (!model.is_empty()).then(|| model.remove(0).1);
                    prop_assert_eq!(queue.take_first(), first);
                }
                prop_assert_eq!(queue.first(), model.iter().map(|((deadline, _), _)| *deadline).min());
            }
        }
    }
}
