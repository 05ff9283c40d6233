//! Which indices of a table are free, and the lowest of them.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

const BITS: usize = 64;
/// Levels for as many indices as memory can hold entries.
const LEVELS: usize = 5;

/// A set of numbers as a tree of bits: a bit of a higher level says whether a word of the level
/// below has any.
#[derive(Default)]
pub(super) struct FreeNames {
    levels: [Vec<u64>; LEVELS],
}

impl FreeNames {
    /// Makes room for numbers below `count`; none is added to the set.
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

    /// Adds a number.
    pub(super) fn insert(&mut self, number: usize) {
        let mut at = number;
        for level in &mut self.levels {
            let before = level[at / BITS];
            level[at / BITS] |= 1 << (at % BITS);
            if before != 0 {
                // The levels above know of the word already.
                return;
            }
            at /= BITS;
        }
    }

    /// Takes a number out, if it is in the set.
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

    /// The lowest number.
    pub(super) fn lowest(&self) -> Option<usize> {
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
