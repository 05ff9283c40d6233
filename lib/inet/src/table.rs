//! A hash table with open addressing, for keys that come from packets.

use alloc::vec::Vec;

use crate::hash::Key;

/// A key of a [`Table`].
pub(crate) trait Hashed: Copy + PartialEq {
    /// The hash of this key under `key`.
    fn hash(&self, key: Key) -> u64;
}

/// Keys with values. At most three quarters of the places are taken; it grows by doubling, and
/// shrinks when an eighth is left.
pub(crate) struct Table<K, V> {
    key: Key,
    places: Vec<Option<(K, V)>>,
    taken: usize,
}

const SMALLEST: usize = 16;

impl<K: Hashed, V> Table<K, V> {
    pub(crate) fn new(key: Key) -> Table<K, V> {
        Table { key, places: Vec::new(), taken: 0 }
    }

    fn home(&self, key: &K) -> usize {
        key.hash(self.key) as usize & (self.places.len() - 1)
    }

    fn find(&self, key: &K) -> Option<usize> {
        if self.taken == 0 {
            return None;
        }
        let mask = self.places.len() - 1;
        let mut place = self.home(key);
        while let Some((other, _)) = &self.places[place] {
            if other == key {
                return Some(place);
            }
            place = (place + 1) & mask;
        }
        None
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let place = self.find(key)?;
        self.places[place].as_ref().map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.find(key)?;
        self.places[place].as_mut().map(|(_, value)| value)
    }

    /// Puts a value at a key, and answers the value that was there.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(place) = self.find(&key) {
            return self.places[place].replace((key, value)).map(|(_, old)| old);
        }
        if (self.taken + 1) * 4 > self.places.len() * 3 {
            self.resize((self.places.len() * 2).max(SMALLEST));
        }
        self.put(key, value);
        None
    }

    fn put(&mut self, key: K, value: V) {
        let mask = self.places.len() - 1;
        let mut place = self.home(&key);
        while self.places[place].is_some() {
            place = (place + 1) & mask;
        }
        self.places[place] = Some((key, value));
        self.taken += 1;
    }

    fn resize(&mut self, size: usize) {
        let mut places = Vec::new();
        places.resize_with(size, || None);
        let old = core::mem::replace(&mut self.places, places);
        self.taken = 0;
        for (key, value) in old.into_iter().flatten() {
            self.put(key, value);
        }
    }

    /// Takes a key out. Keys that had to go on from its place move back.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let mut hole = self.find(key)?;
        let value = self.places[hole].take().map(|(_, value)| value);
        self.taken -= 1;
        let mask = self.places.len() - 1;
        let mut place = (hole + 1) & mask;
        while let Some((other, _)) = &self.places[place] {
            let home = self.home(other);
            // The entry may move to the hole if its home is not between the hole and its place.
            if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(hole) & mask) {
                self.places.swap(hole, place);
                hole = place;
            }
            place = (place + 1) & mask;
        }
        if self.places.len() > SMALLEST && self.taken * 8 < self.places.len() {
            self.resize(self.places.len() / 2);
        }
        value
    }

    pub(crate) fn len(&self) -> usize {
        self.taken
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.places.iter().flatten().map(|(key, value)| (key, value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.places.iter_mut().flatten().map(|(key, value)| (&*key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    impl Hashed for u16 {
        fn hash(&self, key: Key) -> u64 {
            // Few hashes, so that keys meet.
            key.hash(&[u64::from(*self % 7)])
        }
    }

    proptest! {
        #[test]
        fn a_table_is_a_map(steps in proptest::collection::vec((0u16..60, any::<bool>()), 0..400)) {
            let mut table = Table::new(Key::new([3; 16]));
            let mut model = BTreeMap::new();
            for (at, (key, insert)) in steps.into_iter().enumerate() {
                if insert {
                    prop_assert_eq!(table.insert(key, at), model.insert(key, at));
                } else {
                    prop_assert_eq!(table.remove(&key), model.remove(&key));
                }
                for key in 0..60 {
                    prop_assert_eq!(table.get(&key), model.get(&key));
                }
                prop_assert_eq!(table.len(), model.len());
                prop_assert_eq!(table.iter().count(), model.len());
            }
        }
    }
}
