//! Random numbers: SplitMix64, with a state for each thread.

use core::sync::atomic::{AtomicU64, Ordering};

/// A random generator whose state stays in memory when its thread is started again.
#[derive(Clone, Copy)]
pub(crate) struct Random<'a>(&'a AtomicU64);

impl<'a> Random<'a> {
    pub(crate) const fn new(state: &'a AtomicU64) -> Self {
        Self(state)
    }

    pub(crate) fn word(self) -> u64 {
        // Relaxed: only one thread uses the state.
        let state = self.0.load(Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.store(state, Ordering::Relaxed);
        let state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^ state >> 31
    }

    /// A number below `bound`.
    pub(crate) fn below(self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns true once in `times` calls on average.
    pub(crate) fn one_in(self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn one_of(self, choices: &[u64]) -> u64 {
        choices[self.below(choices.len() as u64) as usize]
    }
}
