//! The parts of memory that a server has had, in chunks of 2 MiB: they are cleared before another
//! server gets them.

use alloc::vec::Vec;
use core::ops::Range;

const CHUNK_LOG2: u32 = 21;
const WORD_BITS: u64 = 64;

/// A set of chunks of memory.
#[derive(Debug, Default)]
pub struct Chunks {
    bits: Vec<u64>,
}

impl Chunks {
    /// An empty set of chunks below `end`.
    pub fn below(end: u64) -> Chunks {
        let words = end.div_ceil(WORD_BITS << CHUNK_LOG2);
        Chunks { bits: alloc::vec![0; words as usize] }
    }

    /// Adds every chunk that `range` touches.
    ///
    /// # Panics
    /// If the range reaches beyond the end given to [`Chunks::below`].
    pub fn add(&mut self, range: &Range<u64>) {
        for chunk in chunks(range) {
            self.bits[(chunk / WORD_BITS) as usize] |= 1 << (chunk % WORD_BITS);
        }
    }

    /// Whether `range` touches a chunk of the set.
    ///
    /// # Panics
    /// If the range reaches beyond the end given to [`Chunks::below`].
    pub fn touches(&self, range: &Range<u64>) -> bool {
        chunks(range).any(|chunk| self.bits[(chunk / WORD_BITS) as usize] & 1 << (chunk % WORD_BITS) != 0)
    }
}

fn chunks(range: &Range<u64>) -> Range<u64> {
    range.start >> CHUNK_LOG2..range.end.div_ceil(1 << CHUNK_LOG2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_marks_the_chunks_that_it_touches_and_no_other() {
        let mut chunks = Chunks::below(1 << 30);
        assert!(!chunks.touches(&(0..1 << 30)));
        chunks.add(&(0x3f_f000..0x40_1000));
        assert!(chunks.touches(&(0x20_0000..0x20_1000)) && chunks.touches(&(0x5f_f000..0x60_0000)));
        assert!(!chunks.touches(&(0..0x20_0000)) && !chunks.touches(&(0x60_0000..1 << 30)));
        chunks.add(&((1 << 30) - 4096..1 << 30));
        assert!(chunks.touches(&(0x60_0000..1 << 30)));
    }

    #[test]
    fn the_set_has_room_up_to_its_end() {
        let mut chunks = Chunks::below(0x1000);
        chunks.add(&(0..0x1000));
        assert!(chunks.touches(&(0..0x1000)));
    }
}
