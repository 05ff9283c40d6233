//! Process and thread ids, which are taken from one range of numbers.

use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU32;

/// The id of a thread, a process, a process group or a session. A process has the id of its first
/// thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(NonZeroU32);

impl Pid {
    /// The first process, which adopts orphans.
    pub const INIT: Pid = Pid(NonZeroU32::MIN);
    /// Process and thread ids are below this number.
    pub const LIMIT: u32 = 32768;

    /// The id with this number; `None` for 0.
    pub fn new(number: u32) -> Option<Pid> {
        NonZeroU32::new(number).map(Pid)
    }

    /// The id as a number.
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

/// One process, distinguished from all others that have had or will have its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactPid {
    pid: Pid,
    /// The number of the process among all threads and processes that were ever made.
    birth: u64,
}

impl ExactPid {
    pub(super) fn new(pid: Pid, birth: u64) -> ExactPid {
        ExactPid { pid, birth }
    }

    /// The id of the process. If the process has ended, another may have the id by now.
    pub fn pid(self) -> Pid {
        self.pid
    }
}

/// Allocates ids in rising order and starts again at low ones when it reaches the end, so that an
/// id is not soon reused.
#[derive(Debug)]
pub(super) struct Allocator {
    next: u32,
    limit: u32,
    /// A bit for each id, set while the id is allocated.
    used: Vec<u64>,
}

impl Allocator {
    /// Once the numbers have wrapped, ids below this one are not allocated: system services tend to
    /// have them.
    const LOW: u32 = 300;

    pub(super) fn new(limit: u32) -> Allocator {
        Allocator { next: 1, limit, used: vec![0; limit.div_ceil(u64::BITS) as usize] }
    }

    /// Allocates the next id that is free; `None` if all are in use.
    pub(super) fn allocate(&mut self) -> Option<Pid> {
        let low = Allocator::LOW.min(self.limit / 2).max(1);
        let number = self.first_free(self.next).or_else(|| self.first_free(low))?;
        let (word, bit) = Allocator::place(number);
        self.used[word] |= bit;
        self.next = if number + 1 >= self.limit { low } else { number + 1 };
        Pid::new(number)
    }

    /// Makes an id available again.
    pub(super) fn release(&mut self, id: Pid) {
        let (word, bit) = Allocator::place(id.number());
        self.used[word] &= !bit;
    }

    /// The first free number from `from` on. The search looks at 64 ids in one step.
    fn first_free(&self, from: u32) -> Option<u32> {
        let (first, bit) = Allocator::place(from);
        let mut below = bit - 1;
        for (word, used) in self.used.iter().enumerate().skip(first) {
            let free = !(used | core::mem::take(&mut below));
            if free != 0 {
                let number = word as u32 * u64::BITS + free.trailing_zeros();
                return (number < self.limit).then_some(number);
            }
        }
        None
    }

    fn place(number: u32) -> (usize, u64) {
        ((number / u64::BITS) as usize, 1 << (number % u64::BITS))
    }

    #[cfg(test)]
    pub(super) fn is_used(&self, id: Pid) -> bool {
        let (word, bit) = Allocator::place(id.number());
        self.used[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_rise_and_start_again_at_the_end() {
        let mut ids = Allocator::new(1000);
        assert_eq!(ids.allocate(), Some(Pid::INIT));
        for number in 2..1000 {
            assert_eq!(ids.allocate(), Pid::new(number));
        }
        assert_eq!(ids.allocate(), None);
        // Ids below `LOW` are not allocated again after the first round; a free id is found past
        // ids that are in use.
        for number in [7, 301, 640] {
            ids.release(Pid::new(number).unwrap());
        }
        assert_eq!([ids.allocate(), ids.allocate(), ids.allocate()], [Pid::new(301), Pid::new(640), None]);
    }

    proptest! {
        /// An id that is in use is never allocated, and every free id is allocated before the
        /// result is `None`.
        #[test]
        fn allocated_ids_are_unique_until_none_is_free(frees in prop::collection::vec(any::<prop::sample::Index>(), 0..300)) {
            let mut ids = Allocator::new(70);
            let mut used = BTreeSet::new();
            for free in frees {
                match ids.allocate() {
                    Some(pid) => prop_assert!(used.insert(pid) && pid.number() < 70),
                    None => {
                        prop_assert!((35..70).all(|n| used.contains(&Pid::new(n).unwrap())));
                        let victim = *free.get(&used.iter().copied().collect::<Vec<_>>());
                        used.remove(&victim);
                        ids.release(victim);
                    }
                }
            }
        }
    }
}
