//! Signals that were generated and not yet delivered.

use super::{Cause, Signal, SignalInformation, SignalSet};
use crate::{Error, Result};
use alloc::vec::Vec;

/// The pending signals of a thread or a process.
///
/// A standard signal is pending once, however often it was sent, with the information of the first
/// instance. Real-time signals queue. If memory for the record of a standard signal is short, it is
/// pending without information.
#[derive(Debug, Default)]
pub struct PendingSignals {
    set: SignalSet,
    /// Sorted by signal, equal signals in the order of arrival; every entry's signal is in `set`.
    queue: Vec<SignalInformation>,
}

impl PendingSignals {
    /// The set of signals that are pending.
    pub fn set(&self) -> SignalSet {
        self.set
    }

    /// How many instances are queued; RLIMIT_SIGPENDING limits this number.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether no signal is pending.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Whether sending `signal` would add an instance (a standard signal that is pending already
    /// merges).
    pub fn would_add(&self, signal: Signal) -> bool {
        signal.is_real_time() || !self.set.contains(signal)
    }

    /// Adds an instance of a signal. `room` says whether the sender's quota has room for one more
    /// record: if not, a standard signal is pending without information, and a real-time signal
    /// fails with `EAGAIN`, unless it was sent by kill(2). Returns whether a record was added,
    /// which is then to be charged to the quota.
    pub fn push(&mut self, information: SignalInformation, room: bool) -> Result<bool> {
        let signal = information.signal;
        if !self.would_add(signal) {
            return Ok(false);
        }
        if !room || self.queue.try_reserve(1).is_err() {
            let must_queue = signal.is_real_time() && !matches!(information.cause, Cause::Kill { .. });
            if must_queue {
                return Err(Error::EAGAIN);
            }
            self.set.insert(signal);
            return Ok(false);
        }
        self.set.insert(signal);
        let position = self.queue.partition_point(|entry| entry.signal <= signal);
        self.queue.insert(position, information);
        Ok(true)
    }

    /// Takes the first instance of the lowest signal that is in `allowed`. The second value says
    /// whether a record was freed.
    pub fn take(&mut self, allowed: SignalSet) -> Option<(SignalInformation, bool)> {
        let signal = (self.set & allowed).first()?;
        let position = self.queue.partition_point(|entry| entry.signal < signal);
        let queued = self.queue.get(position).is_some_and(|entry| entry.signal == signal);
        if !queued {
            self.set.remove(signal);
            return Some((SignalInformation::forgotten(signal), false));
        }
        let information = self.queue.remove(position);
        if self.queue.get(position).is_none_or(|next| next.signal != signal) {
            self.set.remove(signal);
        }
        Some((information, true))
    }

    /// Removes every instance of the signals in `signals`; returns how many records were freed.
    pub fn discard(&mut self, signals: SignalSet) -> usize {
        let before = self.queue.len();
        self.queue.retain(|entry| !signals.contains(entry.signal));
        self.set &= !signals;
        before - self.queue.len()
    }

    /// Counts further `expirations` of timer `timer` if its signal is pending; returns whether it
    /// was.
    pub fn add_overrun(&mut self, timer: u32, expirations: u32) -> bool {
        for entry in &mut self.queue {
            if let Cause::Timer { timer: t, overrun, .. } = &mut entry.cause
                && *t == timer
            {
                *overrun = overrun.saturating_add(expirations).min(i32::MAX as u32);
                return true;
            }
        }
        false
    }

    /// Removes the instances of timer `timer`, which was deleted; returns how many records were
    /// freed.
    pub fn discard_timer(&mut self, timer: u32) -> usize {
        let before = self.queue.len();
        let is_timer =
            |entry: &SignalInformation| matches!(entry.cause, Cause::Timer { timer: t, .. } if t == timer);
        let affected: SignalSet = self
            .queue
            .iter()
            .filter(|e| is_timer(e))
            .fold(SignalSet::EMPTY, |set, e| set | SignalSet::of(&[e.signal]));
        self.queue.retain(|entry| !is_timer(entry));
        for signal in affected.iter() {
            if !self.queue.iter().any(|entry| entry.signal == signal) {
                self.set.remove(signal);
            }
        }
        before - self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn from(process: u32, number: u32) -> SignalInformation {
        let cause = Cause::Queue { code: -1, process, user: 0, value: 0 };
        SignalInformation { signal: Signal::new(number).unwrap(), error: 0, cause }
    }

    #[test]
    fn standard_signals_merge_and_real_time_signals_queue() {
        let mut pending = PendingSignals::default();
        assert_eq!(pending.push(from(1, 2), true), Ok(true));
        assert_eq!(pending.push(from(2, 2), true), Ok(false));
        assert_eq!(pending.push(from(3, 40), true), Ok(true));
        assert_eq!(pending.push(from(4, 40), true), Ok(true));
        assert_eq!(pending.len(), 3);
        assert_eq!(pending.take(!SignalSet::EMPTY), Some((from(1, 2), true)));
        assert_eq!(pending.take(!SignalSet::EMPTY), Some((from(3, 40), true)));
        assert!(pending.set().contains(Signal::new(40).unwrap()));
        assert_eq!(pending.take(!SignalSet::EMPTY), Some((from(4, 40), true)));
        assert!(pending.is_empty());
    }

    #[test]
    fn without_room_a_standard_signal_has_no_information_and_a_real_time_signal_fails() {
        let mut pending = PendingSignals::default();
        assert_eq!(pending.push(from(1, 2), false), Ok(false));
        assert_eq!(pending.push(from(1, 40), false), Err(Error::EAGAIN));
        let killed = SignalInformation::forgotten(Signal::new(41).unwrap());
        assert_eq!(pending.push(killed, false), Ok(false));
        assert_eq!(pending.take(!SignalSet::EMPTY), Some((SignalInformation::forgotten(Signal::INT), false)));
        assert_eq!(pending.take(!SignalSet::EMPTY), Some((killed, false)));
    }

    #[test]
    fn the_signals_of_a_deleted_timer_are_removed() {
        let mut pending = PendingSignals::default();
        let timer = |timer| SignalInformation {
            signal: Signal::new(40).unwrap(),
            error: 0,
            cause: Cause::Timer { timer, overrun: 0, value: 0 },
        };
        pending.push(timer(1), true).unwrap();
        pending.push(timer(2), true).unwrap();
        assert_eq!(pending.discard_timer(1), 1);
        assert!(!pending.is_empty());
        assert_eq!(pending.discard_timer(2), 1);
        assert!(pending.is_empty());
    }

    proptest! {
        /// The queue behaves as a plain list does: lowest signal first, arrival order within a
        /// signal, standard signals once.
        #[test]
        fn matches_a_model(steps in prop::collection::vec((0u32..4, 1u32..=64, any::<u64>()), 0..200)) {
            let mut pending = PendingSignals::default();
            let mut model: Vec<SignalInformation> = Vec::new();
            for (index, (step, number, mask)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        let information = from(index as u32, number);
                        let merges = number < 32 && model.iter().any(|e| e.signal == information.signal);
                        prop_assert_eq!(pending.push(information, true), Ok(!merges));
                        if !merges {
                            model.push(information);
                        }
                    }
                    2 => {
                        let allowed = SignalSet::from_bits(mask);
                        let best = model.iter().enumerate().filter(|(_, e)| allowed.contains(e.signal));
                        let best = best.min_by_key(|(index, e)| (e.signal, *index)).map(|(index, _)| index);
                        let expected = best.map(|index| (model.remove(index), true));
                        prop_assert_eq!(pending.take(allowed), expected);
                    }
                    _ => {
                        let gone = SignalSet::of(&[Signal::new(number).unwrap()]);
                        let before = model.len();
                        model.retain(|e| !gone.contains(e.signal));
                        prop_assert_eq!(pending.discard(gone), before - model.len());
                    }
                }
                let set = model.iter().fold(SignalSet::EMPTY, |set, e| set | SignalSet::of(&[e.signal]));
                prop_assert_eq!(pending.set(), set);
                prop_assert_eq!(pending.len(), model.len());
            }
        }
    }
}
