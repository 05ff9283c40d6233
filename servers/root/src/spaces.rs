//! The address spaces that servers own, and which threads live in each.
//!
//! A space's name is never used twice, so a request about a space that has ended cannot reach
//! another one.

use crate::thread_numbers::{ServerIndex, ThreadName};
use alloc::vec::Vec;

/// The name of a space: its place in the table, and a number that counts the uses of the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpaceName {
    place: u32,
    generation: u32,
}

impl SpaceName {
    /// The name of a space as a word of a message.
    pub fn word(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.place)
    }

    /// The name of a space from a word that [`word`](Self::word) made. Any word is a name, which
    /// may be that of no space.
    pub fn from_word(word: u64) -> SpaceName {
        SpaceName { place: word as u32, generation: (word >> 32) as u32 }
    }
}

/// The error that there is no memory for another space or thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

/// Why a thread was not removed from its space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalError {
    /// The space does not exist or has no such thread.
    Unknown,
    /// The thread is the last one of its space; it ends only with the space.
    Last,
}

/// An address space that a server owns.
#[derive(Debug)]
pub struct Space {
    owner: ServerIndex,
    utcb_area: u64,
    /// The threads of the space; never empty, for the kernel is told a space by one of its threads.
    threads: Vec<ThreadName>,
}

impl Space {
    /// Where the UTCBs of the space's threads lie.
    pub fn utcb_area(&self) -> u64 {
        self.utcb_area
    }

    /// A thread that lives in the space; kernel calls name the space by it.
    pub fn representative(&self) -> ThreadName {
        self.threads[0]
    }

    /// The threads of a space that has ended.
    pub fn into_threads(self) -> Vec<ThreadName> {
        self.threads
    }

    /// All threads of the space.
    pub fn threads(&self) -> &[ThreadName] {
        &self.threads
    }
}

#[derive(Default)]
struct Place {
    generation: u32,
    space: Option<Space>,
}

/// The table of the spaces that servers own.
#[derive(Default)]
pub struct Spaces {
    places: Vec<Place>,
    free: Vec<u32>,
}

impl Spaces {
    /// An empty table of spaces.
    pub const fn new() -> Spaces {
        Spaces { places: Vec::new(), free: Vec::new() }
    }

    /// Adds a space of `owner` with its first thread.
    ///
    /// # Errors
    /// [`Exhausted`] if there is no memory for the table.
    pub fn add(
        &mut self,
        owner: ServerIndex,
        utcb_area: u64,
        first: ThreadName,
    ) -> Result<SpaceName, Exhausted> {
        let mut threads = Vec::new();
        threads.try_reserve(1).map_err(|_| Exhausted)?;
        threads.push(first);
        if self.free.is_empty() {
            self.places.try_reserve(1).map_err(|_| Exhausted)?;
            // `free` is given room for every place in advance, so that `remove` needs no memory.
            self.free.try_reserve(self.places.len() + 1).map_err(|_| Exhausted)?;
            self.places.push(Place::default());
            self.free.push(self.places.len() as u32 - 1);
        }
        let place = self.free.pop().ok_or(Exhausted)?;
        let entry = &mut self.places[place as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.space = Some(Space { owner, utcb_area, threads });
        Ok(SpaceName { place, generation: entry.generation })
    }

    /// Finds the space of this name among those that `owner` has.
    pub fn find(&self, owner: ServerIndex, name: SpaceName) -> Option<&Space> {
        let place = self.places.get(name.place as usize)?;
        place.space.as_ref().filter(|space| place.generation == name.generation && space.owner == owner)
    }

    fn find_mut(&mut self, owner: ServerIndex, name: SpaceName) -> Option<&mut Space> {
        let place = self.places.get_mut(name.place as usize)?;
        let is_it = place.generation == name.generation;
        place.space.as_mut().filter(|space| is_it && space.owner == owner)
    }

    /// Makes room for one more thread in a space of `owner`, so that [`Spaces::add_thread`] works.
    ///
    /// # Errors
    /// [`Exhausted`] if there is no memory.
    pub fn reserve_thread(&mut self, owner: ServerIndex, name: SpaceName) -> Result<(), Exhausted> {
        let space = self.find_mut(owner, name).ok_or(Exhausted)?;
        space.threads.try_reserve(1).map_err(|_| Exhausted)
    }

    /// Adds a thread to a space of `owner`.
    ///
    /// # Errors
    /// [`Exhausted`] if there is no such space or no memory.
    pub fn add_thread(
        &mut self,
        owner: ServerIndex,
        name: SpaceName,
        thread: ThreadName,
    ) -> Result<(), Exhausted> {
        self.reserve_thread(owner, name)?;
        self.find_mut(owner, name).ok_or(Exhausted)?.threads.push(thread);
        Ok(())
    }

    /// Takes a thread out of a space of `owner`.
    ///
    /// # Errors
    /// [`RemovalError`]; then nothing has changed.
    pub fn remove_thread(
        &mut self,
        owner: ServerIndex,
        name: SpaceName,
        thread: ThreadName,
    ) -> Result<(), RemovalError> {
        let space = self.find_mut(owner, name).ok_or(RemovalError::Unknown)?;
        let at = space.threads.iter().position(|&other| other == thread).ok_or(RemovalError::Unknown)?;
        if space.threads.len() == 1 {
            return Err(RemovalError::Last);
        }
        space.threads.swap_remove(at);
        Ok(())
    }

    /// Takes a space of `owner` out of the table. The caller has to end the threads of the space.
    pub fn remove(&mut self, owner: ServerIndex, name: SpaceName) -> Option<Space> {
        self.find(owner, name)?;
        self.free.push(name.place);
        self.places[name.place as usize].space.take()
    }

    /// How many spaces `owner` has.
    #[cfg(test)]
    pub(crate) fn count_of(&self, owner: ServerIndex) -> usize {
        self.places
            .iter()
            .filter_map(|place| place.space.as_ref())
            .filter(|space| space.owner == owner)
            .count()
    }

    /// Takes all spaces of `owner` out of the table.
    pub fn remove_all(&mut self, owner: ServerIndex) {
        for (place, entry) in self.places.iter_mut().enumerate() {
            if entry.space.take_if(|space| space.owner == owner).is_some() {
                self.free.push(place as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn thread(number: u32) -> ThreadName {
        ThreadName { number, version: 1 }
    }

    #[test]
    fn a_space_is_its_owners_only_and_its_name_dies_with_it() {
        let mut spaces = Spaces::new();
        let name = spaces.add(1, 0x1000, thread(10)).unwrap();
        assert_eq!(SpaceName::from_word(name.word()), name);
        assert!(spaces.find(2, name).is_none());
        assert!(spaces.remove(2, name).is_none());
        assert_eq!(spaces.add_thread(2, name, thread(11)), Err(Exhausted));
        assert_eq!(spaces.remove(1, name).map(|space| space.representative()), Some(thread(10)));
        let next = spaces.add(1, 0x1000, thread(12)).unwrap();
        assert_ne!(name, next);
        assert!(spaces.find(1, name).is_none() && spaces.find(1, next).is_some());
        // The old name changes nothing of the space that has its place now.
        assert_eq!(spaces.add_thread(1, name, thread(13)), Err(Exhausted));
        assert_eq!(spaces.add_thread(1, next, thread(13)), Ok(()));
        assert_eq!(spaces.remove_thread(1, name, thread(13)), Err(RemovalError::Unknown));
        assert_eq!(spaces.reserve_thread(1, name), Err(Exhausted));
        assert!(spaces.remove(1, name).is_none());
        assert_eq!(spaces.find(1, next).unwrap().threads(), [thread(12), thread(13)]);
        assert!(spaces.find(1, SpaceName::from_word(u64::MAX)).is_none());
        spaces.remove_all(1);
        assert!(spaces.find(1, next).is_none());
    }

    #[test]
    fn the_last_thread_of_a_space_cannot_be_removed() {
        let mut spaces = Spaces::new();
        let name = spaces.add(1, 0, thread(10)).unwrap();
        spaces.add_thread(1, name, thread(11)).unwrap();
        assert_eq!(spaces.remove_thread(1, name, thread(12)), Err(RemovalError::Unknown));
        assert_eq!(spaces.remove_thread(1, name, thread(10)), Ok(()));
        assert_eq!(spaces.find(1, name).unwrap().representative(), thread(11));
        assert_eq!(spaces.remove_thread(1, name, thread(11)), Err(RemovalError::Last));
    }

    proptest! {
        /// Against a list of spaces.
        #[test]
        fn behaves_as_a_list(steps in proptest::collection::vec((0u8..5, any::<u8>(), 0u16..3), 1..300)) {
            let mut spaces = Spaces::new();
            let mut model: Vec<(SpaceName, ServerIndex, Vec<ThreadName>)> = Vec::new();
            for (number, (kind, which, owner)) in steps.into_iter().enumerate() {
                let new = thread(number as u32);
                let at = usize::from(which) % model.len().max(1);
                match kind {
                    0 | 1 => {
                        let name = spaces.add(owner, 0, new).unwrap();
                        prop_assert!(model.iter().all(|(other, ..)| *other != name));
                        model.push((name, owner, vec![new]));
                    }
                    2 if !model.is_empty() => {
                        let (name, its, threads) = &mut model[at];
                        prop_assert_eq!(spaces.add_thread(owner, *name, new).is_ok(), *its == owner);
                        if *its == owner { threads.push(new); }
                    }
                    3 if !model.is_empty() => {
                        let (name, its, threads) = &mut model[at];
                        let thread = threads[number % threads.len()];
                        let fits = *its == owner && threads.len() > 1;
                        prop_assert_eq!(spaces.remove_thread(owner, *name, thread).is_ok(), fits);
                        if fits { threads.retain(|&other| other != thread); }
                    }
                    4 if !model.is_empty() => {
                        let (name, its, _) = model[at];
                        prop_assert_eq!(spaces.remove(owner, name).is_some(), its == owner);
                        if its == owner { model.remove(at); }
                    }
                    _ => {
                        spaces.remove_all(owner);
                        model.retain(|(_, its, _)| *its != owner);
                    }
                }
                for (name, owner, threads) in &model {
                    let mut found = spaces.find(*owner, *name).unwrap().threads().to_vec();
                    found.sort_by_key(|thread| thread.number);
                    prop_assert_eq!(&found, threads);
                }
            }
        }
    }
}
