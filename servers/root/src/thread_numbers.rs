//! Which thread numbers are in use, by which server, and with which version.
//!
//! A number is given out again only after all other free ones (first in, first out) and with
//! another version, so that an id that a client still holds does not soon name another thread (X.2
//! rule 5.3 leaves reuse to us). While fewer than [`SPARE`] are free, new ones are taken. The
//! numbers in use stay small, so that a table that a server indexes by thread number does not grow
//! for ever.

use crate::spaces::SpaceName;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Which server owns a thread: an index into root's table of servers.
pub type ServerIndex = u16;

/// A thread's name: its number with the version that distinguishes it from earlier threads of that
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadName {
    /// The thread number (upper 32 bits of a global id).
    pub number: u32,
    /// The version. Its low 6 bits are never all zero, or the id would look local (X.2 rule 5.1).
    pub version: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    version: u32,
    owner: Option<ServerIndex>,
    /// The space, owned by the owner of the thread, in which the thread lives. `None`: the owner's
    /// own space, or none yet.
    space: Option<SpaceName>,
}

/// A freed number is used again only while at least so many numbers are free.
const SPARE: usize = 256;

/// The error that no thread number is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

/// All thread numbers from `first` on that root may use.
pub struct ThreadNumbers {
    first: u32,
    entries: Vec<Entry>,
    /// The numbers that have been freed, the longest free first.
    free: VecDeque<u32>,
    /// How many numbers from `first` on the table has entries for: it grows as it is used.
    count: u32,
}

impl ThreadNumbers {
    /// A table of the numbers `first .. first + count`, which are all free.
    pub fn new(first: u32, count: u32) -> Self {
        ThreadNumbers { first, entries: Vec::new(), free: VecDeque::new(), count }
    }

    /// Gives a free number to `owner`.
    ///
    /// # Errors
    /// [`Exhausted`] if all are in use, or there is no memory for the table.
    pub fn allocate(&mut self, owner: ServerIndex) -> Result<ThreadName, Exhausted> {
        let index = if self.free.len() < SPARE
            && (self.entries.len() as u32) < self.count
            && self.entries.try_reserve(1).is_ok()
            && self.free.try_reserve(self.entries.len() + 1 - self.free.len()).is_ok()
        {
            self.entries.push(Entry { version: 0, owner: None, space: None });
            self.entries.len() as u32 - 1
        } else {
            self.free.pop_front().ok_or(Exhausted)?
        };
        let entry = &mut self.entries[index as usize];
        entry.version = next_version(entry.version);
        entry.owner = Some(owner);
        Ok(ThreadName { number: self.first + index, version: entry.version })
    }

    /// The owner of this thread; `None` if no thread with this number and version exists.
    pub fn owner(&self, name: ThreadName) -> Option<ServerIndex> {
        let entry = self.entries.get(name.number.checked_sub(self.first)? as usize)?;
        if entry.version == name.version { entry.owner } else { None }
    }

    /// Records that this thread, which must exist, lives in a space that its owner owns.
    pub fn set_space(&mut self, name: ThreadName, space: SpaceName) {
        if self.owner(name).is_some() {
            self.entries[(name.number - self.first) as usize].space = Some(space);
        }
    }

    /// The space that [`ThreadNumbers::set_space`] recorded; `None` also for a thread that does not
    /// exist.
    pub fn space(&self, name: ThreadName) -> Option<SpaceName> {
        self.owner(name)?;
        self.entries[(name.number - self.first) as usize].space
    }

    /// Whether this thread lives in `owner`'s own space.
    pub fn is_own(&self, owner: ServerIndex, name: ThreadName) -> bool {
        self.owner(name) == Some(owner) && self.space(name).is_none()
    }

    /// Frees the number of a thread. Returns false if no thread with this number and version
    /// exists.
    pub fn free(&mut self, name: ThreadName) -> bool {
        if self.owner(name).is_none() {
            return false;
        }
        let index = name.number - self.first;
        let entry = &mut self.entries[index as usize];
        (entry.owner, entry.space) = (None, None);
        // `allocate` has reserved room for every number, so that this needs no memory.
        self.free.push_back(index);
        true
    }

    /// All threads of `owner` whose number is at least `from`, in order.
    pub fn of_from(&self, owner: ServerIndex, from: u32) -> impl Iterator<Item = ThreadName> + '_ {
        let entries = self.entries.iter().enumerate().skip(from.saturating_sub(self.first) as usize);
        entries.filter(move |(_, entry)| entry.owner == Some(owner)).map(move |(index, entry)| ThreadName {
            number: self.first + index as u32,
            version: entry.version,
        })
    }
}

/// The version after `version` whose low 6 bits are not all zero.
fn next_version(version: u32) -> u32 {
    let next = version.wrapping_add(1);
    if next & 0x3f == 0 { next.wrapping_add(1) } else { next }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn a_freed_name_is_dead_and_its_number_comes_back_last_with_another_version() {
        let mut numbers = ThreadNumbers::new(100, 3);
        let names: Vec<_> = (0..3).map(|_| numbers.allocate(1).unwrap()).collect();
        assert_eq!(numbers.allocate(1), Err(Exhausted));
        assert!(numbers.free(names[1]) && numbers.free(names[0]));
        assert!(!numbers.free(names[1]));
        assert_eq!(numbers.owner(names[1]), None);
        let again = numbers.allocate(2).unwrap();
        assert_eq!((again.number, numbers.owner(again)), (101, Some(2)));
        assert_ne!(again.version, names[1].version);
        assert_eq!(numbers.of_from(1, 0).collect::<Vec<_>>(), [names[2]]);
        assert_eq!(numbers.of_from(1, 103).count() + numbers.of_from(3, 0).count(), 0);
        assert_eq!(numbers.of_from(2, 101).collect::<Vec<_>>(), [again]);
    }

    #[test]
    fn threads_that_come_and_go_use_few_numbers() {
        let mut numbers = ThreadNumbers::new(100, 1 << 17);
        let mut highest = 0;
        for _ in 0..20_000 {
            let name = numbers.allocate(1).unwrap();
            highest = highest.max(name.number);
            assert!(numbers.free(name));
        }
        assert_eq!(highest as usize, 100 + SPARE - 1);
    }

    #[test]
    fn versions_never_look_like_a_local_id() {
        let mut version = 0;
        for _ in 0..1000 {
            version = next_version(version);
            assert_ne!(version & 0x3f, 0);
        }
        assert_eq!(next_version(u32::MAX), 1);
    }

    #[test]
    fn a_thread_in_an_owned_space_is_not_of_the_owners_own() {
        let mut numbers = ThreadNumbers::new(100, 3);
        let (own, other) = (numbers.allocate(1).unwrap(), numbers.allocate(1).unwrap());
        numbers.set_space(other, SpaceName::from_word(7));
        assert!(numbers.is_own(1, own) && !numbers.is_own(2, own) && !numbers.is_own(1, other));
        assert_eq!(numbers.space(other), Some(SpaceName::from_word(7)));
        numbers.free(other);
        assert_eq!(numbers.space(other), None);
        numbers.set_space(other, SpaceName::from_word(8));
        let again = (0..2).map(|_| numbers.allocate(1).unwrap()).last().unwrap();
        assert_eq!((again.number, numbers.space(again)), (other.number, None));
    }

    #[test]
    fn foreign_numbers_have_no_owner() {
        let numbers = ThreadNumbers::new(100, 3);
        assert_eq!(numbers.owner(ThreadName { number: 5, version: 1 }), None);
        assert_eq!(numbers.owner(ThreadName { number: 100, version: 0 }), None);
    }

    proptest! {
        #[test]
        fn no_name_is_ever_given_out_twice(steps in proptest::collection::vec(any::<(bool, u8)>(), 1..400)) {
            let mut numbers = ThreadNumbers::new(56, 40);
            let mut live: Vec<ThreadName> = Vec::new();
            let mut seen = HashSet::new();
            for (allocate, which) in steps {
                if allocate {
                    match numbers.allocate(u16::from(which)) {
                        Ok(name) => {
                            prop_assert!(seen.insert(name) && live.len() < 40);
                            live.push(name);
                        }
                        Err(Exhausted) => prop_assert_eq!(live.len(), 40),
                    }
                } else if !live.is_empty() {
                    let name = live.swap_remove(usize::from(which) % live.len());
                    prop_assert!(numbers.free(name) && numbers.owner(name).is_none());
                }
                prop_assert!(live.iter().all(|&name| numbers.owner(name).is_some()));
            }
        }
    }
}
