//! The entries of one directory.

use super::node::Node;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;

/// Names and what they mean, also in a stable order for readers: each entry keeps the position it got when it was
/// made, and positions are never used again.
#[derive(Default)]
pub(super) struct Entries {
    by_name: BTreeMap<Arc<[u8]>, (u64, Arc<Node>)>,
    by_position: BTreeMap<u64, Arc<[u8]>>,
    next_position: u64,
    /// The directory was removed: nothing can be added any more.
    pub(super) removed: bool,
}

impl Entries {
    pub(super) fn get(&self, name: &[u8]) -> Option<&Arc<Node>> {
        self.by_name.get(name).map(|(_, node)| node)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Adds a name that is not there.
    pub(super) fn insert(&mut self, name: Arc<[u8]>, node: Arc<Node>) {
        let position = self.next_position;
        self.next_position += 1;
        self.by_position.insert(position, name.clone());
        let old = self.by_name.insert(name, (position, node));
        debug_assert!(old.is_none(), "the name was there");
    }

    /// Makes a name that is there mean another file.
    pub(super) fn replace(&mut self, name: &[u8], node: Arc<Node>) -> Option<Arc<Node>> {
        self.by_name.get_mut(name).map(|(_, old)| core::mem::replace(old, node))
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> Option<Arc<Node>> {
        let (position, node) = self.by_name.remove(name)?;
        self.by_position.remove(&position);
        Some(node)
    }

    /// The first entry at or behind `position`.
    pub(super) fn next_from(&self, position: u64) -> Option<(u64, Arc<[u8]>, Arc<Node>)> {
        let (position, name) = self.by_position.range(position..).next()?;
        let (_, node) = &self.by_name[name];
        Some((*position, name.clone(), node.clone()))
    }

    pub(super) fn end(&self) -> u64 {
        self.next_position
    }

    /// Takes some child out, for taking a tree apart.
    pub(super) fn pop(&mut self) -> Option<Arc<Node>> {
        let (_, (_, node)) = self.by_name.pop_first()?;
        Some(node)
    }
}
