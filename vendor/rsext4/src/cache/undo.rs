//! A map whose changes can be taken back.

use alloc::{collections::BTreeMap, vec::Vec};
use core::ops::Deref;

/// A map that keeps what each entry was before it was changed, so that a transaction that fails
/// costs as much as it has changed, and one that does not costs little more. Reads are those of
/// [`BTreeMap`].
pub(crate) struct UndoMap<K, V> {
    map: BTreeMap<K, V>,
    /// For each transaction under way, the inner ones last: the few entries that it has changed, as
    /// they were before.
    before: Vec<Vec<(K, Option<V>)>>,
}

impl<K: Ord + Copy, V: Clone> UndoMap<K, V> {
    pub(crate) fn new() -> Self {
        Self { map: BTreeMap::new(), before: Vec::new() }
    }

    /// Begins a transaction. It ends with [`keep`](Self::keep) or [`restore`](Self::restore).
    pub(crate) fn begin(&mut self) {
        self.before.push(Vec::new());
    }

    /// Ends the innermost transaction, whose changes stay, unless one around it is taken back.
    pub(crate) fn keep(&mut self) {
        let Some(ended) = self.before.pop() else {
            return;
        };
        if let Some(outer) = self.before.last_mut() {
            for (key, value) in ended {
                if !outer.iter().any(|(noted, _)| *noted == key) {
                    outer.push((key, value));
                }
            }
        }
    }

    /// Ends the innermost transaction, and takes its changes back.
    pub(crate) fn restore(&mut self) {
        for (key, value) in self.before.pop().unwrap_or_default() {
            match value {
                Some(value) => self.map.insert(key, value),
                None => self.map.remove(&key),
            };
        }
    }

    fn note(&mut self, key: K) {
        if let Some(before) = self.before.last_mut()
            && !before.iter().any(|(noted, _)| *noted == key)
        {
            before.push((key, self.map.get(&key).cloned()));
        }
    }

    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.note(key);
        self.map.insert(key, value)
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.note(*key);
        self.map.remove(key)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.note(*key);
        self.map.get_mut(key)
    }

    /// An entry, for changes that need not be taken back.
    pub(crate) fn peek_mut(&mut self, key: &K) -> Option<&mut V> {
        self.map.get_mut(key)
    }

    pub(crate) fn clear(&mut self) {
        if !self.before.is_empty() {
            let keys: Vec<K> = self.map.keys().copied().collect();
            keys.into_iter().for_each(|key| self.note(key));
        }
        self.map.clear();
    }
}

impl<K, V> Deref for UndoMap<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &Self::Target {
        &self.map
    }
}
