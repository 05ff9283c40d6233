//! A set-associative cache with least-recently-used replacement. A TLB is one whose lines are
//! pages.

/// Size and shape of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Number of sets; a power of two.
    pub sets: usize,
    /// Lines in a set.
    pub ways: usize,
    /// log2 of the bytes in a line.
    pub line_log2: u32,
}

impl Geometry {
    /// The geometry of a cache of `bytes` bytes in lines of 2^`line_log2`; `None` unless the number
    /// of sets is a power of two.
    pub fn of_size(bytes: usize, ways: usize, line_log2: u32) -> Option<Geometry> {
        let lines = bytes >> line_log2;
        let sets = lines.checked_div(ways)?;
        (sets.is_power_of_two() && (sets * ways) << line_log2 == bytes).then_some(Geometry {
            sets,
            ways,
            line_log2,
        })
    }
}

/// The state of one cache.
#[derive(Clone, Debug)]
pub struct Cache {
    geometry: Geometry,
    /// `ways` tags for each set, the most recently used first. Tags are stored plus one, so that 0
    /// is an empty line.
    tags: Vec<u64>,
}

impl Cache {
    /// An empty cache.
    pub fn new(geometry: Geometry) -> Cache {
        Cache { geometry, tags: vec![0; geometry.sets * geometry.ways] }
    }

    /// Accesses the line that contains `address`. Returns whether it was in the cache.
    pub fn access(&mut self, address: u64) -> bool {
        let line = address >> self.geometry.line_log2;
        let first = (line as usize & (self.geometry.sets - 1)) * self.geometry.ways;
        let set = &mut self.tags[first..first + self.geometry.ways];
        let tag = line + 1;
        let found = set.iter().position(|&held| held == tag);
        let place = found.unwrap_or(set.len() - 1);
        set[place] = tag;
        set[..=place].rotate_right(1);
        found.is_some()
    }

    /// Empties the cache, as a TLB flush does.
    pub fn flush(&mut self) {
        self.tags.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn geometry_must_divide() {
        let l1 = Geometry::of_size(32768, 8, 6).unwrap();
        assert_eq!((l1.sets, l1.ways), (64, 8));
        assert_eq!(Geometry::of_size(32768, 0, 6), None);
        assert_eq!(Geometry::of_size(32768, 7, 6), None);
        assert_eq!(Geometry::of_size(0, 8, 6), None);
    }

    #[test]
    fn the_least_recently_used_line_is_replaced() {
        let mut cache = Cache::new(Geometry { sets: 1, ways: 2, line_log2: 6 });
        assert!(!cache.access(0) && !cache.access(64));
        assert!(cache.access(63));
        assert!(!cache.access(128)); // replaces 64
        assert!(cache.access(0) && !cache.access(64));
        cache.flush();
        assert!(!cache.access(0));
    }

    proptest! {
        /// Compares the cache with a list, for each set, of its lines in the order of use.
        #[test]
        fn behaves_as_lists_in_order_of_use(addresses in proptest::collection::vec(0u64..4096, 1..500)) {
            let mut cache = Cache::new(Geometry { sets: 4, ways: 3, line_log2: 5 });
            let mut model: [Vec<u64>; 4] = Default::default();
            for address in addresses {
                let line = address / 32;
                let set = &mut model[line as usize % 4];
                let held = set.iter().position(|&other| other == line);
                if let Some(at) = held { set.remove(at); }
                set.push(line);
                if set.len() > 3 { set.remove(0); }
                prop_assert_eq!(cache.access(address), held.is_some());
            }
        }
    }
}
