//! Sets of disjoint ranges of numbers, each range with an owner or free: physical memory, I/O
//! ports, interrupt lines.
//!
//! A range that is freed is merged with its free neighbours in the same call. So the largest
//! aligned block that is free can always be found, and one pass frees all that a server had.

use crate::thread_numbers::ServerIndex;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Why a server did not get a range of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeError {
    /// No free block is big enough, or a part of the range asked for is in use or does not exist.
    Unavailable,
    /// The size is 0, not a power of two where one is needed, or the range wraps around.
    Invalid,
    /// Root has no memory to record the range.
    NoMemory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    end: u64,
    owner: Option<ServerIndex>,
}

/// Ranges by their first number. They are not empty and do not overlap, and no two free ones are
/// adjacent.
#[derive(Default)]
pub struct Ranges {
    ranges: BTreeMap<u64, Range>,
    free: u64,
}

impl Ranges {
    /// An empty table: it has no ranges.
    pub const fn new() -> Self {
        Ranges { ranges: BTreeMap::new(), free: 0 }
    }

    /// Adds `start .. end` as free.
    ///
    /// # Errors
    /// [`RangeError::Invalid`] if the range is empty or overlaps one in the table.
    pub fn add(&mut self, start: u64, end: u64) -> Result<(), RangeError> {
        let before = self.ranges.range(..end).next_back();
        if start >= end || before.is_some_and(|(_, range)| range.end > start) {
            return Err(RangeError::Invalid);
        }
        self.ranges.insert(start, Range { end, owner: None });
        self.free += end - start;
        self.merge_around(start);
        Ok(())
    }

    /// How many units of the resource are free, in all ranges.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Gives `owner` a block of `size` numbers (a power of two), aligned to `size`. It is taken
    /// from the smallest free range in which it fits, the lowest of these.
    ///
    /// # Errors
    /// [`RangeError`] if there is no such block; then nothing has changed.
    pub fn allocate(&mut self, owner: ServerIndex, size: u64) -> Result<u64, RangeError> {
        self.allocate_below(owner, size, u64::MAX)
    }

    /// Gives `owner` a block as [`allocate`](Self::allocate) does, but one that ends at or below
    /// `limit`.
    ///
    /// # Errors
    /// [`RangeError`] if there is no such block; then nothing has changed.
    pub fn allocate_below(&mut self, owner: ServerIndex, size: u64, limit: u64) -> Result<u64, RangeError> {
        if !size.is_power_of_two() {
            return Err(RangeError::Invalid);
        }
        let fits = |start: u64, end: u64| {
            let (aligned, end) = (start.checked_next_multiple_of(size)?, end.min(limit));
            (aligned < end && end - aligned >= size).then_some(aligned)
        };
        let best = self
            .ranges
            .iter()
            .filter(|(_, range)| range.owner.is_none())
            .filter_map(|(&start, range)| fits(start, range.end).map(|aligned| (range.end - start, aligned)))
            .min();
        let (_, start) = best.ok_or(RangeError::Unavailable)?;
        self.take(owner, start, start + size)?;
        Ok(start)
    }

    /// Gives exactly `start .. end` to `owner`.
    ///
    /// # Errors
    /// [`RangeError`] if a part of it is not free; then nothing has changed.
    pub fn take(&mut self, owner: ServerIndex, start: u64, end: u64) -> Result<(), RangeError> {
        if start >= end {
            return Err(RangeError::Invalid);
        }
        let (&first, &range) = self.ranges.range(..=start).next_back().ok_or(RangeError::Unavailable)?;
        if range.owner.is_some() || range.end < end {
            return Err(RangeError::Unavailable);
        }
        if first < start {
            self.ranges.insert(first, Range { end: start, owner: None });
        }
        if end < range.end {
            self.ranges.insert(end, range);
        }
        self.ranges.insert(start, Range { end, owner: Some(owner) });
        self.free -= end - start;
        Ok(())
    }

    /// Whether a part of `start .. end` is in the table.
    pub fn has_part_of(&self, start: u64, end: u64) -> bool {
        self.ranges.range(..end).next_back().is_some_and(|(_, range)| range.end > start)
    }

    /// Whether all of `start .. end` belongs to `owner`.
    pub fn owns(&self, owner: ServerIndex, start: u64, end: u64) -> bool {
        let mut next = start;
        while next < end {
            match self.ranges.range(..=next).next_back() {
                Some((_, range)) if range.owner == Some(owner) && range.end > next => next = range.end,
                _ => return false,
            }
        }
        start < end
    }

    /// Takes `start .. end` back from `owner`. Parts of its ranges before and after these numbers
    /// stay `owner`'s.
    ///
    /// # Errors
    /// [`RangeError::Unavailable`] if not all of it is `owner`'s; then nothing has changed.
    pub fn release(&mut self, owner: ServerIndex, start: u64, end: u64) -> Result<(), RangeError> {
        if !self.owns(owner, start, end) {
            return Err(RangeError::Unavailable);
        }
        let inside: Vec<(u64, Range)> = self
            .ranges
            .range(..end)
            .rev()
            .take_while(|(_, range)| range.end > start)
            .map(|(&at, &range)| (at, range))
            .collect();
        for (at, range) in inside {
            self.ranges.remove(&at);
            if at < start {
                self.ranges.insert(at, Range { end: start, owner: range.owner });
            }
            if range.end > end {
                self.ranges.insert(end, range);
            }
        }
        self.ranges.insert(start, Range { end, owner: None });
        self.free += end - start;
        self.merge_around(start);
        Ok(())
    }

    /// The ranges that `owner` has, as (start, end), in ascending order.
    pub fn of(&self, owner: ServerIndex) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges
            .iter()
            .filter(move |(_, range)| range.owner == Some(owner))
            .map(|(&start, range)| (start, range.end))
    }

    /// Joins the free range at `start` with its free neighbours.
    fn merge_around(&mut self, start: u64) {
        let Some(&range) = self.ranges.get(&start) else { return };
        let mut end = range.end;
        if let Some(next) = self.ranges.get(&end).filter(|next| next.owner.is_none()).copied() {
            self.ranges.remove(&end);
            end = next.end;
        }
        let before = self.ranges.range(..start).next_back().map(|(&at, &range)| (at, range));
        match before {
            Some((at, range)) if range.owner.is_none() && range.end == start => {
                self.ranges.remove(&start);
                self.ranges.insert(at, Range { end, owner: None });
            }
            _ => {
                self.ranges.insert(start, Range { end, owner: None });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_best_fitting_block_is_given_out_aligned() {
        let mut ranges = Ranges::new();
        ranges.add(0x1000, 0x9000).unwrap();
        ranges.add(0x20000, 0x22000).unwrap();
        assert_eq!(ranges.allocate(1, 0x2000), Ok(0x20000));
        assert_eq!(ranges.allocate(1, 0x4000), Ok(0x4000));
        assert_eq!(ranges.allocate(1, 0x4000), Err(RangeError::Unavailable));
        assert_eq!(ranges.allocate(1, 0x3000), Err(RangeError::Invalid));
        assert_eq!(ranges.allocate(1, 0), Err(RangeError::Invalid));
        assert_eq!(ranges.free(), 0x4000);
    }

    #[test]
    fn what_is_not_the_owners_is_not_released() {
        let mut ranges = Ranges::new();
        ranges.add(0, 100).unwrap();
        ranges.take(1, 10, 20).unwrap();
        ranges.take(1, 20, 30).unwrap();
        ranges.take(2, 30, 40).unwrap();
        assert_eq!(ranges.take(3, 25, 35), Err(RangeError::Unavailable));
        assert_eq!(ranges.release(1, 15, 35), Err(RangeError::Unavailable));
        assert_eq!(ranges.release(2, 10, 12), Err(RangeError::Unavailable));
        ranges.release(1, 15, 25).unwrap();
        assert_eq!(ranges.of(1).collect::<Vec<_>>(), [(10, 15), (25, 30)]);
        assert_eq!(ranges.add(50, 60), Err(RangeError::Invalid));
        assert_eq!(ranges.add(200, 200), Err(RangeError::Invalid));
    }

    #[test]
    fn ranges_up_to_the_largest_number_do_not_overflow() {
        let mut ranges = Ranges::new();
        ranges.add(0xffff_ffff_ffff_d800, u64::MAX).unwrap();
        assert_eq!(ranges.allocate(1, 0x1000), Ok(0xffff_ffff_ffff_e000));
        assert_eq!(ranges.allocate(1, 1 << 63), Err(RangeError::Unavailable));
    }

    proptest! {
        /// Compares the table with a model: an array with the owner of each number.
        #[test]
        fn behaves_as_an_array_of_owners(
            steps in proptest::collection::vec((0u8..4, 0u64..64, 1u64..20, 0u16..3), 1..200),
        ) {
            let mut ranges = Ranges::new();
            let mut model: [Option<Option<ServerIndex>>; 64] = [None; 64];
            for (kind, start, length, owner) in steps {
                let end = (start + length).min(64);
                let part = start as usize..end as usize;
                match kind {
                    0 => {
                        let fits = model[part.clone()].iter().all(Option::is_none);
                        prop_assert_eq!(ranges.add(start, end).is_ok(), fits);
                        if fits { model[part].fill(Some(None)); }
                    }
                    1 => {
                        let fits = model[part.clone()].iter().all(|&cell| cell == Some(None));
                        prop_assert_eq!(ranges.take(owner, start, end).is_ok(), fits);
                        if fits { model[part].fill(Some(Some(owner))); }
                    }
                    2 => {
                        let fits = model[part.clone()].iter().all(|&cell| cell == Some(Some(owner)));
                        prop_assert_eq!(ranges.owns(owner, start, end), fits);
                        prop_assert_eq!(ranges.release(owner, start, end).is_ok(), fits);
                        if fits { model[part].fill(Some(None)); }
                    }
                    _ => {
                        let size = length.next_power_of_two();
                        let possible = (0..64 / size).any(|block| {
                            model[(block * size) as usize..((block + 1) * size) as usize].iter().all(|&cell| cell == Some(None))
                        });
                        match ranges.allocate(owner, size) {
                            Ok(at) => {
                                prop_assert!(at % size == 0);
                                let got = &mut model[at as usize..(at + size) as usize];
                                prop_assert!(got.iter().all(|&cell| cell == Some(None)));
                                got.fill(Some(Some(owner)));
                            }
                            Err(_) => prop_assert!(!possible),
                        }
                    }
                }
                let free = model.iter().filter(|&&cell| cell == Some(None)).count() as u64;
                prop_assert_eq!(ranges.free(), free);
                let kept: Vec<_> = ranges.ranges.iter().collect();
                let disjoint_and_merged = kept.windows(2).all(|pair| {
                    let ((_, left), (&at, right)) = (pair[0], pair[1]);
                    left.end < at || (left.end == at && (left.owner.is_some() || right.owner.is_some()))
                });
                prop_assert!(disjoint_and_merged);
            }
        }
    }
}
