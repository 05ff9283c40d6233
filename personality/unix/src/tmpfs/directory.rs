//! The entries of one directory.

use super::node::Node;
use crate::vfs::{DirectoryEntry, FileType};
use alloc::collections::{BTreeMap, btree_map};
use alloc::sync::Arc;

/// An entry of a directory: a name and its file.
struct Entry {
    name: Arc<[u8]>,
    position: u64,
    node: Arc<Node>,
}

/// What a reader of the directory gets of an entry.
struct Listed {
    name: Arc<[u8]>,
    number: u64,
    file_type: FileType,
}

impl Listed {
    fn new(name: Arc<[u8]>, node: &Node) -> Listed {
        Listed { name, number: node.number, file_type: node.file_type }
    }
}

/// The entries of a directory, by name and by position. An entry keeps the position that it got
/// when it was made, and positions are never used again, so that a reader of the directory finds
/// its place.
#[derive(Default)]
pub(super) struct Entries {
    /// Entries by the [`summary`] of their names, because comparing two numbers takes one step and
    /// comparing two names goes byte by byte.
    by_summary: BTreeMap<u64, Entry>,
    /// Entries whose names had the summary of another entry's name when they were made. A program
    /// can make many such names on purpose. They are found by the name itself, in a time that still
    /// grows only with the logarithm of their number.
    by_name: BTreeMap<Arc<[u8]>, Entry>,
    by_position: BTreeMap<u64, Listed>,
    next_position: u64,
    /// Whether the directory was removed: nothing can be added any more.
    pub(super) removed: bool,
}

pub(super) const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash of a name, by which most names differ.
pub(super) fn summary(name: &[u8]) -> u64 {
    let (words, rest) = name.as_chunks();
    let rest = rest.iter().fold(name.len() as u64, |rest, byte| rest << 8 | u64::from(*byte));
    words.iter().fold(rest, |sum, word| {
        (sum.wrapping_mul(ODD).rotate_left(29) ^ u64::from_le_bytes(*word)).wrapping_mul(ODD)
    })
}

impl Entries {
    fn entry(&self, name: &[u8]) -> Option<&Entry> {
        match self.by_summary.get(&summary(name)) {
            Some(entry) if *entry.name == *name => Some(entry),
            _ => self.by_name.get(name),
        }
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&Arc<Node>> {
        self.entry(name).map(|entry| &entry.node)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_position.is_empty()
    }

    /// Adds a name that the directory does not have.
    pub(super) fn insert(&mut self, name: Arc<[u8]>, node: Arc<Node>) {
        debug_assert!(self.entry(&name).is_none(), "the name was there");
        let position = self.next_position;
        self.next_position += 1;
        self.by_position.insert(position, Listed::new(name.clone(), &node));
        let entry = Entry { name: name.clone(), position, node };
        match self.by_summary.entry(summary(&name)) {
            btree_map::Entry::Vacant(place) => _ = place.insert(entry),
            btree_map::Entry::Occupied(_) => _ = self.by_name.insert(name, entry),
        }
    }

    /// Makes a name that the directory has refer to another file; returns the file that it referred
    /// to.
    pub(super) fn replace(&mut self, name: &[u8], node: Arc<Node>) -> Option<Arc<Node>> {
        let entry = match self.by_summary.get_mut(&summary(name)) {
            Some(entry) if *entry.name == *name => entry,
            _ => self.by_name.get_mut(name)?,
        };
        self.by_position.insert(entry.position, Listed::new(entry.name.clone(), &node));
        Some(core::mem::replace(&mut entry.node, node))
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> Option<Arc<Node>> {
        let entry = match self.by_summary.entry(summary(name)) {
            btree_map::Entry::Occupied(place) if *place.get().name == *name => place.remove(),
            _ => self.by_name.remove(name)?,
        };
        self.by_position.remove(&entry.position);
        Some(entry.node)
    }

    /// Calls `accept` with entries at and after `position`, in order, until it returns false, up to
    /// a number that keeps the directory locked for a short time. Returns the position at which the
    /// next call goes on, if there may be more to list.
    pub(super) fn list(
        &self,
        position: u64,
        accept: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Option<u64> {
        const AT_A_TIME: usize = 32;
        let mut last = None;
        for (at, Listed { name, number, file_type }) in self.by_position.range(position..).take(AT_A_TIME) {
            let next = at + 1;
            if !accept(DirectoryEntry { name, number: *number, file_type: *file_type, next }) {
                return None;
            }
            last = Some(next);
        }
        last
    }

    pub(super) fn end(&self) -> u64 {
        self.next_position
    }

    /// Removes any one entry and returns its file. A tree is dropped with it, entry by entry.
    pub(super) fn pop(&mut self) -> Option<Arc<Node>> {
        let name = self.by_position.first_entry()?.get().name.clone();
        self.remove(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names as in a directory of programs, and names that contain a running number, have different
    /// summaries.
    #[test]
    fn usual_names_have_different_summaries() {
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..10_000 {
            for name in [
                format!("{number}"),
                format!("file{number:06}.txt"),
                format!("{number}-a-longer-name-of-a-file"),
            ] {
                assert!(seen.insert(summary(name.as_bytes())), "{name}");
            }
        }
    }
}
