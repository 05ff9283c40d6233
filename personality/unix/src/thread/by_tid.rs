//! The living threads by their ids.

use crate::process::Pid;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;

/// Threads by id. An id is free before the thread that had it is removed here: a thread that
/// executes a program takes its process's id, and a new thread may get any free one. A thread is
/// therefore removed by its identity, not by its id alone.
pub(super) struct ByTid<T>(BTreeMap<Pid, Arc<T>>);

impl<T> ByTid<T> {
    pub(super) const fn new() -> ByTid<T> {
        ByTid(BTreeMap::new())
    }

    pub(super) fn get(&self, tid: Pid) -> Option<&Arc<T>> {
        self.0.get(&tid)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Arc<T>> {
        self.0.values()
    }

    /// Adds `thread` with id `tid`. If another thread is still entered with this id, that one has
    /// given up the id already.
    pub(super) fn insert(&mut self, tid: Pid, thread: Arc<T>) {
        self.0.insert(tid, thread);
    }

    /// Adds `thread` with its new id `new`, and removes the thread with id `old`, whose place it
    /// takes.
    pub(super) fn replace(&mut self, old: Pid, new: Pid, thread: Arc<T>) -> Option<Arc<T>> {
        let replaced = self.0.remove(&old);
        self.0.insert(new, thread);
        replaced
    }

    /// Removes the thread that had id `tid`, unless another thread has the id now.
    pub(super) fn remove(&mut self, tid: Pid, is_it: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        if self.get(tid).is_some_and(|found| is_it(found)) { self.0.remove(&tid) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_first_thread_does_not_remove_the_thread_that_took_its_id() {
        let (first, second) = (Pid::new(7).unwrap(), Pid::new(8).unwrap());
        let (leader, caller) = (Arc::new("leader"), Arc::new("caller"));
        let mut threads = ByTid::new();
        threads.insert(first, leader.clone());
        threads.insert(second, caller.clone());
        let loaded = Arc::new("loaded");
        assert_eq!(threads.replace(second, first, loaded.clone()), Some(caller));
        assert!(threads.remove(first, |thread| thread == &*leader).is_none());
        assert_eq!(threads.get(first), Some(&loaded));
        assert_eq!(threads.get(second), None);
        assert_eq!(threads.values().count(), 1);
        assert_eq!(threads.remove(first, |thread| thread == &*loaded), Some(loaded));
        assert_eq!(threads.values().count(), 0);
    }
}
