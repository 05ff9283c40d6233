//! The members of a port set, and which of them has the message that came first.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

const NOT_READY: u32 = u32::MAX;

struct Slot<T> {
    value: Option<T>,
    /// The stamp of the member's first message: its place in the order of the set's messages.
    stamp: u64,
    /// The member's position in the heap, or [`NOT_READY`].
    place: u32,
}

/// Members by index. Those that have messages (are ready) are in a heap, the least stamp on top.
pub(super) struct Ready<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    heap: Vec<u32>,
}

impl<T> Default for Ready<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), heap: Vec::new() }
    }
}

impl<T> Ready<T> {
    /// How many bytes one more member may take, on average.
    pub(super) const SLOT_BYTES: usize = 2 * (size_of::<Slot<T>>() + 2 * size_of::<u32>());

    /// Whether the next member takes more memory.
    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Adds a member that is not ready, and returns its index. All memory is reserved here, so no
    /// later operation on the member allocates.
    pub(super) fn add(&mut self, value: T) -> Result<u32, (TryReserveError, T)> {
        let slot = Slot { value: None, stamp: 0, place: NOT_READY };
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let (index, capacity) = (self.slots.len(), self.slots.len() + 1);
                let room = self.slots.try_reserve(1);
                let room = room.and_then(|()| self.heap.try_reserve(capacity - self.heap.len()));
                if let Err(error) = room.and_then(|()| self.free.try_reserve(capacity - self.free.len())) {
                    return Err((error, value));
                }
                self.slots.push(slot);
                index as u32
            }
        };
        self.slots[index as usize].value = Some(value);
        Ok(index)
    }

    /// Removes a member, if the index has one.
    pub(super) fn remove(&mut self, index: u32) -> Option<T> {
        self.set(index, None);
        let value = self.slots.get_mut(index as usize)?.value.take()?;
        self.free.push(index);
        Some(value)
    }

    /// All members, ready or not.
    pub(super) fn members(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref())
    }

    /// The ready member with the least stamp.
    pub(super) fn first(&self) -> Option<&T> {
        self.slots[*self.heap.first()? as usize].value.as_ref()
    }

    /// Makes a member ready with the stamp, or with `None` not ready.
    pub(super) fn set(&mut self, index: u32, stamp: Option<u64>) {
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        match (stamp, slot.place) {
            (None, NOT_READY) => {}
            (None, place) => {
                slot.place = NOT_READY;
                let last = self.heap.pop();
                if let Some(last) = last.filter(|&last| last != index) {
                    self.put(place as usize, last);
                    self.settle(place as usize);
                }
            }
            (Some(stamp), NOT_READY) => {
                slot.stamp = stamp;
                self.heap.push(index);
                self.put(self.heap.len() - 1, index);
                self.settle(self.heap.len() - 1);
            }
            (Some(stamp), place) => {
                slot.stamp = stamp;
                self.settle(place as usize);
            }
        }
    }

    fn put(&mut self, place: usize, index: u32) {
        self.heap[place] = index;
        self.slots[index as usize].place = place as u32;
    }

    fn stamp(&self, place: usize) -> u64 {
        self.slots[self.heap[place] as usize].stamp
    }

    fn swap(&mut self, one: usize, other: usize) {
        let (first, second) = (self.heap[one], self.heap[other]);
        self.put(one, second);
        self.put(other, first);
    }

    /// Moves the index at `place` of the heap up or down until the order of the stamps holds again.
    fn settle(&mut self, mut place: usize) {
        while place > 0 && self.stamp(place) < self.stamp((place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let Some(child) = children.min_by_key(|&child| self.stamp(child)) else { return };
            if self.stamp(place) <= self.stamp(child) {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_first_is_the_least_of_those_that_are_ready() {
        let mut ready = Ready::default();
        let mut model: BTreeMap<u32, Option<u64>> = BTreeMap::new();
        let mut random = 7u64;
        for step in 0..20_000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let index = (random >> 33) as u32 % 50;
            match random >> 62 {
                0 if model.len() < 50 => {
                    let index = ready.add(()).unwrap();
                    assert!(model.insert(index, None).is_none());
                }
                1 if model.contains_key(&index) => {
                    assert!(ready.remove(index).is_some());
                    model.remove(&index);
                }
                _ if model.contains_key(&index) => {
                    let stamp = (random >> 40 & 1 == 1).then_some((random >> 45) % 1000 * 100_000 + step);
                    ready.set(index, stamp);
                    model.insert(index, stamp);
                }
                _ => {}
            }
            let least = model.values().flatten().min();
            assert_eq!(ready.heap.first().map(|_| ready.stamp(0)), least.copied());
            assert_eq!(ready.members().count(), model.len());
        }
    }
}
