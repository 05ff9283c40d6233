//! Waiting for words of memory: `gsync_wait`, `gsync_wake`, `gsync_requeue`.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;

use macadamia_sync::{Event, SpinLock};

/// The place of a word: an address space or a memory object, and the address or offset.
pub(super) type Place = (u64, u64);

/// The callers that wait at one place, in the order of their arrival.
type Queue = VecDeque<(u64, Arc<Event>)>;

struct State {
    queues: BTreeMap<Place, Queue>,
    /// Where each waiting caller is.
    places: BTreeMap<u64, Place>,
    next: u64,
}

/// All callers that wait for words of memory.
pub(super) struct Waiters(SpinLock<State>);

impl Waiters {
    pub(super) fn new() -> Self {
        Self(SpinLock::new(State { queues: BTreeMap::new(), places: BTreeMap::new(), next: 0 }))
    }

    /// Adds a caller, which waits until its event is set. It must look at the word only after that,
    /// so that no change of the word between the look and the wait is missed.
    pub(super) fn add(&self, place: Place) -> Waiter<'_> {
        let event = Arc::new(Event::new());
        let mut state = self.0.lock();
        let number = state.next;
        state.next += 1;
        state.places.insert(number, place);
        state.queues.entry(place).or_default().push_back((number, event.clone()));
        Waiter { waiters: self, number, event }
    }

    /// Wakes the first caller at a place, or all.
    pub(super) fn wake(&self, place: Place, all: bool) {
        loop {
            let woken = {
                let mut state = self.0.lock();
                let first = state.queues.get_mut(&place).and_then(VecDeque::pop_front);
                state.forget(place, first.as_ref().map(|(number, _)| *number));
                first
            };
            // The lock is released before a caller is woken.
            let Some((_, event)) = woken else { return };
            event.set();
            if !all {
                return;
            }
        }
    }

    /// Moves the first caller at a place, or all, to the end of the queue at another place.
    pub(super) fn requeue(&self, from: Place, to: Place, all: bool) {
        if from == to {
            return;
        }
        let mut state = self.0.lock();
        let Some(queue) = state.queues.get_mut(&from) else { return };
        let count = if all { queue.len() } else { 1.min(queue.len()) };
        let moved: Queue = queue.drain(..count).collect();
        for (number, _) in &moved {
            state.places.insert(*number, to);
        }
        state.queues.entry(to).or_default().extend(moved);
        state.forget(from, None);
    }
}

impl State {
    /// Removes a caller from the list of places, and the queue at a place if it is empty.
    fn forget(&mut self, place: Place, number: Option<u64>) {
        if let Some(number) = number {
            self.places.remove(&number);
        }
        if self.queues.get(&place).is_some_and(VecDeque::is_empty) {
            self.queues.remove(&place);
        }
    }
}

/// A caller that waits, until this value is dropped.
pub(super) struct Waiter<'a> {
    waiters: &'a Waiters,
    number: u64,
    event: Arc<Event>,
}

impl Waiter<'_> {
    /// Waits until the caller is woken.
    pub(super) async fn woken(&self) {
        self.event.wait().await;
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut state = self.waiters.0.lock();
        let Some(place) = state.places.remove(&self.number) else { return };
        if let Some(queue) = state.queues.get_mut(&place) {
            queue.retain(|(number, _)| *number != self.number);
        }
        state.forget(place, None);
    }
}
