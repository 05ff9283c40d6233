//! Process and thread ids: one space of numbers.

use core::num::NonZeroU32;

/// The id of a thread, a process, a process group or a session. A process has the id of its first thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(NonZeroU32);

impl Pid {
    /// The first process, which adopts orphans.
    pub const INIT: Pid = Pid(NonZeroU32::MIN);
    /// Ids are below this.
    pub const LIMIT: u32 = 32768;

    /// The id with this number; 0 is none.
    pub fn new(number: u32) -> Option<Pid> {
        NonZeroU32::new(number).map(Pid)
    }

    /// Its number.
    pub fn number(self) -> u32 {
        self.0.get()
    }
}

impl core::fmt::Debug for Pid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl core::fmt::Display for Pid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Hands out ids in rising order and starts again low when it reaches the end, so that an id is not soon reused.
#[derive(Debug)]
pub(super) struct Allocator {
    next: u32,
    limit: u32,
}

impl Allocator {
    /// After wrapping, ids below this are left alone, as system services tend to have them.
    const LOW: u32 = 300;

    pub(super) fn new(limit: u32) -> Allocator {
        Allocator { next: 1, limit }
    }

    /// The next id that is not `used`, or `None` when all are.
    pub(super) fn allocate(&mut self, used: impl Fn(Pid) -> bool) -> Option<Pid> {
        let low = Allocator::LOW.min(self.limit / 2).max(1);
        for _ in 0..2 * self.limit {
            let number = self.next;
            self.next = if number + 1 >= self.limit { low } else { number + 1 };
            let pid = Pid::new(number).filter(|pid| !used(*pid));
            if pid.is_some() {
                return pid;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_rise_then_wrap() {
        let mut ids = Allocator::new(1000);
        assert_eq!(ids.allocate(|_| false), Some(Pid::INIT));
        assert_eq!(ids.allocate(|pid| pid.number() == 2).unwrap().number(), 3);
        for _ in 4..1000 {
            ids.allocate(|_| false);
        }
        assert_eq!(ids.allocate(|_| false).unwrap().number(), 300);
        assert_eq!(ids.allocate(|_| true), None);
    }

    proptest! {
        /// Never an id in use, and every id is found before `None` is said.
        #[test]
        fn unique(frees in prop::collection::vec(any::<prop::sample::Index>(), 0..300)) {
            let mut ids = Allocator::new(64);
            let mut used = BTreeSet::new();
            for free in frees {
                match ids.allocate(|pid| used.contains(&pid)) {
                    Some(pid) => prop_assert!(used.insert(pid) && pid.number() < 64),
                    None => {
                        prop_assert!((32..64).all(|n| used.contains(&Pid::new(n).unwrap())));
                        let victim = *free.get(&used.iter().copied().collect::<Vec<_>>());
                        used.remove(&victim);
                    }
                }
            }
        }
    }
}
