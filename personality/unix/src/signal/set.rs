//! Sets of signals.

use super::Signal;
use core::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, Not};

/// A set of signals: bit n - 1 is signal n.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SignalSet(u64);

impl SignalSet {
    /// The set without signals.
    pub const EMPTY: SignalSet = SignalSet(0);
    /// Signals that can be neither caught, blocked nor ignored.
    pub const UNMASKABLE: SignalSet = SignalSet::of(&[Signal::KILL, Signal::STOP]);
    /// Signals whose default action is to stop the process.
    pub const STOPPING: SignalSet = SignalSet::of(&[Signal::STOP, Signal::TSTP, Signal::TTIN, Signal::TTOU]);
    /// Signals that a thread's own instruction causes. They are delivered before others.
    pub const SYNCHRONOUS: SignalSet =
        SignalSet::of(&[Signal::SEGV, Signal::BUS, Signal::ILL, Signal::TRAP, Signal::FPE, Signal::SYS]);

    /// The set of exactly the listed signals.
    pub const fn of(signals: &[Signal]) -> SignalSet {
        let mut bits = 0;
        let mut index = 0;
        while index < signals.len() {
            bits |= 1 << (signals[index].0 - 1);
            index += 1;
        }
        SignalSet(bits)
    }

    /// The set with the signals of a bit mask: bit n - 1 for signal n.
    pub const fn from_bits(bits: u64) -> SignalSet {
        SignalSet(bits)
    }

    /// The set as a bit mask.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether `signal` is in the set.
    pub fn contains(self, signal: Signal) -> bool {
        self.0 & (1 << (signal.0 - 1)) != 0
    }

    /// Adds `signal` to the set.
    pub fn insert(&mut self, signal: Signal) {
        self.0 |= 1 << (signal.0 - 1);
    }

    /// Removes `signal` from the set.
    pub fn remove(&mut self, signal: Signal) {
        self.0 &= !(1 << (signal.0 - 1));
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// This set as a signal mask: without the signals that cannot be blocked.
    pub fn as_mask(self) -> SignalSet {
        self & !SignalSet::UNMASKABLE
    }

    /// The signal of the set with the lowest number.
    pub fn first(self) -> Option<Signal> {
        (self.0 != 0).then(|| Signal(self.0.trailing_zeros() as u8 + 1))
    }

    /// The signals of the set, from the lowest number to the highest.
    pub fn iter(self) -> impl Iterator<Item = Signal> {
        let mut rest = self;
        core::iter::from_fn(move || {
            let signal = rest.first()?;
            rest.remove(signal);
            Some(signal)
        })
    }
}

impl BitOr for SignalSet {
    type Output = SignalSet;
    fn bitor(self, other: SignalSet) -> SignalSet {
        SignalSet(self.0 | other.0)
    }
}

impl BitOrAssign for SignalSet {
    fn bitor_assign(&mut self, other: SignalSet) {
        self.0 |= other.0;
    }
}

impl BitAnd for SignalSet {
    type Output = SignalSet;
    fn bitand(self, other: SignalSet) -> SignalSet {
        SignalSet(self.0 & other.0)
    }
}

impl BitAndAssign for SignalSet {
    fn bitand_assign(&mut self, other: SignalSet) {
        self.0 &= other.0;
    }
}

impl Not for SignalSet {
    type Output = SignalSet;
    fn not(self) -> SignalSet {
        SignalSet(!self.0)
    }
}

impl core::fmt::Debug for SignalSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_contains_what_was_inserted() {
        let set = SignalSet::of(&[Signal::HUP, Signal::new(64).unwrap()]);
        assert_eq!(set.bits(), 1 | 1 << 63);
        assert!(set.iter().eq([Signal::HUP, Signal::new(64).unwrap()]));
        assert!(!(!SignalSet::EMPTY).as_mask().contains(Signal::KILL));
    }
}
