//! A priority as a TCB keeps it.

use core::cell::Cell;

/// A priority, kept as its distance from the highest: the larger the word, the less urgent, so that
/// entry code compares it together with what stands above it in a word
/// ([`Tcb::WHERE`](super::Tcb::WHERE)).
#[repr(transparent)]
pub struct PriorityCell(Cell<u8>);

impl PriorityCell {
    /// The lowest priority.
    pub const fn new() -> Self {
        Self(Cell::new(u8::MAX))
    }

    /// The priority: 0 to 255, 255 is the most urgent.
    #[inline]
    pub fn get(&self) -> u8 {
        !self.0.get()
    }

    /// Sets the priority.
    #[inline]
    pub fn set(&self, priority: u8) {
        self.0.set(!priority);
    }
}

impl Default for PriorityCell {
    fn default() -> Self {
        Self::new()
    }
}
