//! The set of free indices of a name table, of which the lowest is found fast.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

const BITS: usize = 64;
/// Levels of the tree: 64^5 numbers are more than memory can hold entries.
const LEVELS: usize = 5;

/// A set of numbers as a tree of bits. In the lowest level each bit stands for a number; in a
/// higher level each bit says whether one word of the level below has any bit.
#[derive(Default)]
pub(super) struct FreeNames {
    levels: [Vec<u64>; LEVELS],
}

impl FreeNames {
    /// Makes room for numbers below `count`, without adding any to the set.
    pub(super) fn grow(&mut self, count: usize) -> Result<(), TryReserveError> {
        let mut words = count;
        for level in &mut self.levels {
            words = words.div_ceil(BITS);
            level.try_reserve(words.saturating_sub(level.len()))?;
        }
        let mut words = count;
        for level in &mut self.levels {
            words = words.div_ceil(BITS);
            level.resize(words.max(level.len()), 0);
        }
        Ok(())
    }

    /// Adds a number, for which [`grow`](Self::grow) has made room.
    pub(super) fn insert(&mut self, number: usize) {
        let mut at = number;
        for level in &mut self.levels {
            let before = level[at / BITS];
            level[at / BITS] |= 1 << (at % BITS);
            if before != 0 {
                // The word was not empty, so the levels above have its bit already.
                return;
            }
            at /= BITS;
        }
    }

    /// Removes a number, if it is in the set.
    pub(super) fn remove(&mut self, number: usize) {
        let mut at = number;
        for level in &mut self.levels {
            let Some(word) = level.get_mut(at / BITS) else { return };
            *word &= !(1 << (at % BITS));
            if *word != 0 {
                return;
            }
            at /= BITS;
        }
    }

    /// The lowest number in the set.
    #[inline]
    pub(super) fn lowest(&self) -> Option<usize> {
        if let [word] = self.levels[0][..] {
            return (word != 0).then(|| word.trailing_zeros() as usize);
        }
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let word = *level.get(at)?;
            if word == 0 {
                return None;
            }
            at = at * BITS + word.trailing_zeros() as usize;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_number_is_found_whatever_the_order() {
        let mut free = FreeNames::default();
        assert_eq!(free.lowest(), None);
        free.grow(10_000).unwrap();
        assert_eq!(free.lowest(), None);
        for number in [9999, 4096, 64, 63] {
            free.insert(number);
            assert_eq!(free.lowest(), Some(number));
        }
        for (removed, next) in [(63, Some(64)), (4096, Some(64)), (64, Some(9999)), (9999, None)] {
            free.remove(removed);
            assert_eq!(free.lowest(), next);
        }
        free.grow(1 << 20).unwrap();
        free.insert((1 << 20) - 1);
        assert_eq!(free.lowest(), Some((1 << 20) - 1));
    }
}
