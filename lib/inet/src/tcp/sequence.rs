//! Sequence numbers, which wrap, and sets of ranges of them.

use alloc::vec::Vec;
use core::ops::{Add, Sub};

/// A sequence number. `a.before(b)` holds for numbers that are less than 2^31 apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seq(pub(crate) u32);

impl Seq {
    pub(crate) fn before(self, other: Seq) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    pub(crate) fn after(self, other: Seq) -> bool {
        other.before(self)
    }

    pub(crate) fn max(self, other: Seq) -> Seq {
        if self.before(other) { other } else { self }
    }

    pub(crate) fn min(self, other: Seq) -> Seq {
        if other.before(self) { other } else { self }
    }

    /// How far this is after `other`; zero if it is not.
    pub(crate) fn since(self, other: Seq) -> usize {
        if self.before(other) { 0 } else { self.0.wrapping_sub(other.0) as usize }
    }
}

impl Add<usize> for Seq {
    type Output = Seq;

    fn add(self, count: usize) -> Seq {
        Seq(self.0.wrapping_add(count as u32))
    }
}

impl Sub<usize> for Seq {
    type Output = Seq;

    fn sub(self, count: usize) -> Seq {
        Seq(self.0.wrapping_sub(count as u32))
    }
}

/// Ranges that neither overlap nor touch, in order: at most [`Ranges::MOST`].
#[derive(Default)]
pub(crate) struct Ranges {
    ranges: Vec<(Seq, Seq)>,
}

impl Ranges {
    /// More ranges are not kept: the peer has to send again what is between.
    pub(crate) const MOST: usize = 64;

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn as_slice(&self) -> &[(Seq, Seq)] {
        &self.ranges
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    pub(crate) fn first(&self) -> Option<(Seq, Seq)> {
        self.ranges.first().copied()
    }

    /// The end of the last range.
    pub(crate) fn end(&self) -> Option<Seq> {
        self.ranges.last().map(|range| range.1)
    }

    /// Whether there is room for a range wherever it is.
    pub(crate) fn has_room(&self) -> bool {
        self.ranges.len() < Ranges::MOST
    }

    /// Adds a range. Answers the range that it has become part of.
    pub(crate) fn insert(&mut self, mut start: Seq, mut end: Seq) -> Option<(Seq, Seq)> {
        if !start.before(end) {
            return None;
        }
        let first = self.ranges.partition_point(|range| range.1.before(start));
        let mut last = first;
        while let Some(range) = self.ranges.get(last)
            && !range.0.after(end)
        {
            start = start.min(range.0);
            end = end.max(range.1);
            last += 1;
        }
        if first == last {
            if !self.has_room() {
                return None;
            }
            self.ranges.insert(first, (start, end));
        } else {
            self.ranges[first] = (start, end);
            self.ranges.drain(first + 1..last);
        }
        Some((start, end))
    }

    /// Drops what is before `edge`.
    pub(crate) fn trim(&mut self, edge: Seq) {
        let gone = self.ranges.partition_point(|range| !range.1.after(edge));
        self.ranges.drain(..gone);
        if let Some(range) = self.ranges.first_mut() {
            range.0 = range.0.max(edge);
        }
    }

    /// How many numbers of `start..end` are in the set.
    pub(crate) fn count(&self, start: Seq, end: Seq) -> usize {
        self.ranges.iter().map(|range| range.1.min(end).since(range.0.max(start))).sum()
    }

    /// The first range of numbers from `start` on, before `end`, that are not in the set.
    pub(crate) fn gap(&self, mut start: Seq, end: Seq) -> Option<(Seq, Seq)> {
        for range in &self.ranges {
            if start.before(range.0) {
                let end = end.min(range.0);
                return start.before(end).then_some((start, end));
            }
            start = start.max(range.1);
        }
        start.before(end).then_some((start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_wrap() {
        let edge = Seq(u32::MAX);
        assert!(edge.before(edge + 1) && (edge + 1).after(edge));
        assert_eq!((edge + 10).since(edge), 10);
        assert_eq!(edge.since(edge + 10), 0);
    }

    proptest! {
        #[test]
        fn ranges_are_a_set(
            base in any::<u32>(),
            steps in proptest::collection::vec((0usize..200, 1usize..30), 0..30),
            edge in 0usize..200,
        ) {
            let base = Seq(base);
            let mut ranges = Ranges::default();
            let mut model = [false; 256];
            for (start, length) in steps {
                let within = ranges.insert(base + start, base + start + length).unwrap();
                prop_assert!(!within.0.after(base + start) && !within.1.before(base + start + length));
                model[start..start + length].fill(true);
            }
            ranges.trim(base + edge);
            model[..edge].fill(false);
            prop_assert_eq!(ranges.count(base, base + 256), model.iter().filter(|set| **set).count());
            prop_assert_eq!(ranges.end(), model.iter().rposition(|set| *set).map(|at| base + at + 1));
            let gap = model.iter().position(|set| !*set).map(|at| base + at);
            prop_assert_eq!(ranges.gap(base, base + 256).map(|gap| gap.0), gap);
            prop_assert!(ranges.as_slice().windows(2).all(|pair| pair[0].1.before(pair[1].0)));
        }
    }
}
