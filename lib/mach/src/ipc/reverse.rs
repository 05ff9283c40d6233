//! A map from ports to the names of a task's send rights to them.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

use super::Name;

/// A hash table from the numbers of ports, which are never 0, to names, with open addressing.
#[derive(Default)]
pub(super) struct Reverse {
    /// A place with port 0 is free. The length is 0 or a power of two; at least a quarter is free.
    places: Vec<(u64, Name)>,
    count: usize,
}

impl Reverse {
    /// Bytes that one more port may take in the table, on average.
    pub(super) const BYTES: usize = 3 * size_of::<(u64, Name)>();

    fn home(&self, port: u64) -> usize {
        let hash = port.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize & (self.places.len() - 1)
    }

    fn next(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }

    /// Makes room for one more port, so that the next [`insert`](Self::insert) cannot fail.
    pub(super) fn reserve(&mut self) -> Result<(), TryReserveError> {
        if (self.count + 1) * 4 <= self.places.len() * 3 {
            return Ok(());
        }
        let size = (self.places.len() * 2).max(8);
        let mut larger = Vec::new();
        larger.try_reserve_exact(size)?;
        larger.resize(size, (0, Name::NULL));
        let old = core::mem::replace(&mut self.places, larger);
        self.count = 0;
        for (port, name) in old.into_iter().filter(|(port, _)| *port != 0) {
            self.insert(port, name);
        }
        Ok(())
    }

    /// Adds a port or changes its name. The caller has made room with [`reserve`](Self::reserve).
    pub(super) fn insert(&mut self, port: u64, name: Name) {
        let mut place = self.home(port);
        while self.places[place].0 != 0 && self.places[place].0 != port {
            place = self.next(place);
        }
        self.count += usize::from(self.places[place].0 == 0);
        self.places[place] = (port, name);
    }

    /// The name of a port's send right, if the port is in the table.
    pub(super) fn get(&self, port: u64) -> Option<Name> {
        if self.places.is_empty() {
            return None;
        }
        let mut place = self.home(port);
        loop {
            match self.places[place] {
                (0, _) => return None,
                (found, name) if found == port => return Some(name),
                _ => place = self.next(place),
            }
        }
    }

    /// Removes a port, if it is in the table.
    pub(super) fn remove(&mut self, port: u64) {
        if self.places.is_empty() {
            return;
        }
        let mut hole = self.home(port);
        while self.places[hole].0 != port {
            if self.places[hole].0 == 0 {
                return;
            }
            hole = self.next(hole);
        }
        self.count -= 1;
        // Ports that collided are found by a search that a free place ends. So a port after the
        // hole moves into it if its search would otherwise end at the hole.
        let mut place = self.next(hole);
        while self.places[place].0 != 0 {
            let home = self.home(self.places[place].0);
            let mask = self.places.len() - 1;
            if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(hole) & mask) {
                self.places[hole] = self.places[place];
                hole = place;
            }
            place = self.next(place);
        }
        self.places[hole] = (0, Name::NULL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_holds_what_a_map_holds() {
        let (mut reverse, mut model) = (Reverse::default(), BTreeMap::new());
        let mut random = 1u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let port = 1 + (random >> 40) % 300;
            if random >> 63 == 0 {
                reverse.reserve().unwrap();
                reverse.insert(port, Name(random as u32));
                model.insert(port, Name(random as u32));
            } else {
                reverse.remove(port);
                model.remove(&port);
            }
            for probe in [port, port + 1, port ^ 64] {
                assert_eq!(reverse.get(probe), model.get(&probe).copied());
            }
            assert_eq!(reverse.count, model.len());
        }
    }
}
