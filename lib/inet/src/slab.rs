//! Entries with small numbers, of which a freed one is used again.

use alloc::vec::Vec;

/// Entries by number.
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { entries: Vec::new(), free: Vec::new() }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Adds what `make` makes of the entry's number, which is answered.
    pub(crate) fn insert(&mut self, make: impl FnOnce(u32) -> T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.entries[index as usize] = Some(make(index));
            return index;
        }
        let index = self.entries.len() as u32;
        self.entries.push(Some(make(index)));
        index
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.entries.get(index as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.entries.get_mut(index as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let entry = self.entries.get_mut(index as usize)?.take()?;
        self.free.push(index);
        Some(entry)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten()
    }
}
