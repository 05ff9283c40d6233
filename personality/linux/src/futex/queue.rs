//! The queues of futex waiters, and the operations on them.

use super::inheriting::Inheriting;
use super::{Comparison, Key, WakeOperation, Words};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::task::{Poll, Waker};
use unix::sync::SpinLock;
use unix::{Error, Result};

/// All futexes of a system.
#[derive(Default)]
pub(crate) struct Futexes {
    state: SpinLock<State>,
    pub(super) inheriting: unix::sync::Mutex<Inheriting>,
}

#[derive(Default)]
struct State {
    /// The ids of waiters, by the word that they wait for and the order of arrival.
    queues: BTreeMap<(Key, u64), u64>,
    waiters: BTreeMap<u64, Waiter>,
    next: u64,
}

struct Waiter {
    /// The waiter's place in `queues`; `None` after it was woken.
    place: Option<(Key, u64)>,
    bits: u32,
    waker: Option<Waker>,
}

impl State {
    fn sequence(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn join(&mut self, key: Key, bits: u32) -> u64 {
        let id = self.sequence();
        self.queues.insert((key, id), id);
        self.waiters.insert(id, Waiter { place: Some((key, id)), bits, waker: None });
        id
    }

    /// Removes a waiter. Returns whether it had been woken.
    fn leave(&mut self, id: u64) -> bool {
        let place = self.waiters.remove(&id).and_then(|waiter| waiter.place);
        place.and_then(|place| self.queues.remove(&place)).is_none()
    }

    /// Up to `limit` waiters of `key` whose bit set has a bit of `bits`, in order of arrival.
    fn first(&self, key: Key, limit: u32, bits: u32) -> Vec<u64> {
        let queue = self.queues.range((key, 0)..=(key, u64::MAX)).map(|(_, id)| *id);
        let chosen = queue.filter(|id| self.waiters.get(id).is_some_and(|waiter| waiter.bits & bits != 0));
        chosen.take(limit as usize).collect()
    }

    fn wake(&mut self, ids: &[u64], wakers: &mut Vec<Waker>) {
        for id in ids {
            let Some(waiter) = self.waiters.get_mut(id) else { continue };
            if let Some(place) = waiter.place.take() {
                self.queues.remove(&place);
            }
            wakers.extend(waiter.waker.take());
        }
    }

    fn move_to(&mut self, ids: &[u64], key: Key) {
        for id in ids {
            let sequence = self.sequence();
            if let Some(waiter) = self.waiters.get_mut(id) {
                if let Some(place) = waiter.place.replace((key, sequence)) {
                    self.queues.remove(&place);
                }
                self.queues.insert((key, sequence), *id);
            }
        }
    }
}

/// The place of a waiter in a queue, which is removed when this is dropped.
pub(super) struct Place<'a> {
    futexes: &'a Futexes,
    id: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.futexes.state.lock().leave(self.id);
    }
}

impl Place<'_> {
    /// Leaves the queue; returns whether the waiter had been woken.
    pub(super) fn leave(self) -> bool {
        self.futexes.state.lock().leave(self.id)
    }

    /// Waits until the waiter is woken.
    pub(super) async fn woken(&self) {
        poll_fn(|cx| {
            let mut state = self.futexes.state.lock();
            match state.waiters.get_mut(&self.id) {
                Some(waiter) if waiter.place.is_some() => {
                    waiter.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
                _ => Poll::Ready(()),
            }
        })
        .await;
    }
}

impl Futexes {
    /// The bit set with every bit (FUTEX_BITSET_MATCH_ANY).
    pub(crate) const ANY: u32 = u32::MAX;

    /// Makes the futexes of a system, without waiters.
    pub(crate) fn new() -> Futexes {
        Futexes::default()
    }

    /// How many threads wait for futexes.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().queues.len()
    }

    pub(super) fn join(&self, key: Key, bits: u32) -> Place<'_> {
        let id = self.state.lock().join(key, bits);
        Place { futexes: self, id }
    }

    /// Waits until woken by a wake with one of `bits`, if the word at `address` is `expected`
    /// (FUTEX_WAIT, FUTEX_WAIT_BITSET). There is no time limit: the caller polls the future
    /// together with a timer and signals. `EAGAIN` if the word differs, `EINVAL` for an unaligned
    /// address or no bits, `EFAULT`.
    pub(crate) async fn wait(
        &self,
        words: &impl Words,
        address: u64,
        shared: bool,
        expected: u32,
        bits: u32,
    ) -> Result<()> {
        if !address.is_multiple_of(4) || bits == 0 {
            return Err(Error::EINVAL);
        }
        let key = words.key(address, shared).await?;
        let place = self.join(key, bits);
        if words.load(address).await? != expected {
            // If the waiter was woken already, the waking thread has counted it, so the call
            // succeeds.
            return if place.leave() { Ok(()) } else { Err(Error::EAGAIN) };
        }
        place.woken().await;
        Ok(())
    }

    /// Wakes up to `limit` waiters that wait with one of `bits` (FUTEX_WAKE, FUTEX_WAKE_BITSET);
    /// returns how many. `EINVAL`, `EFAULT`.
    pub(crate) async fn wake(
        &self,
        words: &impl Words,
        address: u64,
        shared: bool,
        limit: u32,
        bits: u32,
    ) -> Result<u32> {
        if !address.is_multiple_of(4) || bits == 0 {
            return Err(Error::EINVAL);
        }
        let key = words.key(address, shared).await?;
        Ok(self.wake_key(key, limit, bits))
    }

    /// Wakes up to `limit` waiters of `key` that wait with one of `bits`; returns how many.
    pub(crate) fn wake_key(&self, key: Key, limit: u32, bits: u32) -> u32 {
        let mut wakers = Vec::new();
        let count = {
            let mut state = self.state.lock();
            let ids = state.first(key, limit, bits);
            state.wake(&ids, &mut wakers);
            ids.len()
        };
        wakers.into_iter().for_each(Waker::wake);
        count as u32
    }

    /// Wakes up to `wake` waiters of the first word and moves up to `requeue` of the others to the
    /// second (FUTEX_REQUEUE and, with `expected`, FUTEX_CMP_REQUEUE); returns how many were woken,
    /// and how many moved. `EAGAIN` if the first word is not `expected`, `EINVAL`, `EFAULT`.
    #[expect(clippy::too_many_arguments, reason = "the call has them")]
    pub(crate) async fn requeue(
        &self,
        words: &impl Words,
        from: u64,
        to: u64,
        shared: bool,
        wake: u32,
        requeue: u32,
        expected: Option<u32>,
    ) -> Result<(u32, u32)> {
        if !from.is_multiple_of(4) || !to.is_multiple_of(4) {
            return Err(Error::EINVAL);
        }
        let (from_key, to_key) = (words.key(from, shared).await?, words.key(to, shared).await?);
        if let Some(expected) = expected
            && words.load(from).await? != expected
        {
            return Err(Error::EAGAIN);
        }
        let mut wakers = Vec::new();
        let counts = {
            let mut state = self.state.lock();
            let woken = state.first(from_key, wake, Futexes::ANY);
            state.wake(&woken, &mut wakers);
            let moved = state.first(from_key, requeue, Futexes::ANY);
            if from_key != to_key {
                state.move_to(&moved, to_key);
            }
            (woken.len() as u32, moved.len() as u32)
        };
        wakers.into_iter().for_each(Waker::wake);
        Ok(counts)
    }

    /// Changes the second word by `operation`, wakes up to `wake` waiters of the first word and, if
    /// `comparison` holds for the second word's old value, up to `wake_second` of the second
    /// (FUTEX_WAKE_OP); returns how many were woken. `EINVAL`, `EFAULT`.
    #[expect(clippy::too_many_arguments, reason = "the call has them")]
    pub(crate) async fn wake_operation(
        &self,
        words: &impl Words,
        first: u64,
        second: u64,
        shared: bool,
        wake: u32,
        wake_second: u32,
        operation: WakeOperation,
        comparison: Comparison,
    ) -> Result<u32> {
        if !first.is_multiple_of(4) || !second.is_multiple_of(4) {
            return Err(Error::EINVAL);
        }
        let (first_key, second_key) = (words.key(first, shared).await?, words.key(second, shared).await?);
        let mut old = words.load(second).await?;
        while let Err(seen) = words.exchange(second, old, operation.apply(old)).await? {
            old = seen;
        }
        let mut count = self.wake_key(first_key, wake, Futexes::ANY);
        if comparison.holds(old) {
            count += self.wake_key(second_key, wake_second, Futexes::ANY);
        }
        Ok(count)
    }
}
