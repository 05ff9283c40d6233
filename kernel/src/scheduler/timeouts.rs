//! Threads waiting for an instant, ordered by it: insertion, removal and expiry cost O(log n)
//! expected, and no memory.
//!
//! A treap whose nodes are the TCBs: a search tree by (deadline, TCB address) that is a heap by a
//! number hashed from the TCB's address, which keeps it balanced whatever the deadlines are.
//! Everything is iterative: the kernel stack does not grow with the number of sleepers.
//!
//! A thread whose wait was ended by a message may stay in the tree: most timeouts never end, and
//! the fast path neither takes the thread out nor, when it waits again until later, puts it
//! elsewhere. What the tree says is no later than what the thread does ([`Tcb::waits_until`]); when
//! it comes to that instant the thread is asked.

use core::cell::Cell;

use crate::thread::{Tcb, ThreadRef};

/// An instant, or a length of time, in microseconds of the system clock; [`NEVER`] is no deadline.
pub type Microseconds = u64;

/// The instant that is never reached.
pub const NEVER: Microseconds = Microseconds::MAX;

/// A link of the tree, kept in the TCB or at the root.
pub type Link = Cell<Option<ThreadRef>>;

/// The part of a TCB that belongs to this queue. Home processor only.
pub struct TimeoutNode {
    /// When to look at the thread; `NEVER` while it is not in the tree.
    deadline: Cell<Microseconds>,
    earlier: Link,
    later: Link,
}

impl TimeoutNode {
    /// A node that is in no tree.
    pub const fn new() -> Self {
        Self { deadline: Cell::new(NEVER), earlier: Cell::new(None), later: Cell::new(None) }
    }

    /// Makes zeroed memory, or a node that is in no tree, a node that is in no tree.
    pub fn reset(&self) {
        self.deadline.set(NEVER);
        self.earlier.set(None);
        self.later.set(None);
    }

    /// When the thread will be looked at, if it is in the tree.
    pub fn deadline(&self) -> Option<Microseconds> {
        Some(self.deadline.get()).filter(|&deadline| deadline != NEVER)
    }
}

impl Default for TimeoutNode {
    fn default() -> Self {
        Self::new()
    }
}

/// The running timeouts of one processor's threads.
pub struct Timeouts {
    root: Link,
}

fn address(thread: ThreadRef) -> usize {
    core::ptr::from_ref::<Tcb>(thread).addr()
}

fn key(thread: ThreadRef) -> (Microseconds, usize) {
    (thread.timeout.deadline.get(), address(thread))
}

/// The heap order: any well-mixing function of the address will do.
fn rank(thread: ThreadRef) -> u64 {
    (address(thread) as u64 >> 9).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Timeouts {
    /// No timeouts.
    pub const fn new() -> Self {
        Self { root: Cell::new(None) }
    }

    /// Sets `thread`'s timeout to `deadline`. A timeout that ends earlier stays set, as the thread
    /// is looked at then. Returns whether the timeout has become earlier.
    #[inline]
    pub fn arm(&self, thread: ThreadRef, deadline: Microseconds) -> bool {
        let earlier = deadline < thread.timeout.deadline.get();
        if earlier {
            self.insert(thread, deadline);
        }
        earlier
    }

    /// Sets `thread`'s timeout to `deadline`; with `NEVER` it has none.
    pub fn insert(&self, thread: ThreadRef, deadline: Microseconds) {
        self.remove(thread);
        if deadline == NEVER {
            return;
        }
        thread.timeout.deadline.set(deadline);
        let key_of_new = key(thread);
        let mut link = &self.root;
        while let Some(node) = link.get() {
            if rank(node) < rank(thread) {
                break;
            }
            link = if key_of_new < key(node) { &node.timeout.earlier } else { &node.timeout.later };
        }
        // The subtree below `link` is divided around the new node, which takes its place.
        let mut rest = link.get();
        link.set(Some(thread));
        let (mut earlier, mut later) = (&thread.timeout.earlier, &thread.timeout.later);
        while let Some(node) = rest {
            if key(node) < key_of_new {
                earlier.set(Some(node));
                earlier = &node.timeout.later;
                rest = earlier.get();
            } else {
                later.set(Some(node));
                later = &node.timeout.earlier;
                rest = later.get();
            }
        }
        earlier.set(None);
        later.set(None);
    }

    /// Stops `thread`'s timeout if it is running.
    pub fn remove(&self, thread: ThreadRef) {
        if thread.timeout.deadline.get() == NEVER {
            return;
        }
        let key_of_old = key(thread);
        let mut link = &self.root;
        while let Some(node) = link.get() {
            if core::ptr::eq(node, thread) {
                break;
            }
            link = if key_of_old < key(node) { &node.timeout.earlier } else { &node.timeout.later };
        }
        debug_assert!(link.get().is_some(), "a thread with a deadline is in the tree");
        let (mut earlier, mut later) = (thread.timeout.earlier.take(), thread.timeout.later.take());
        thread.timeout.deadline.set(NEVER);
        loop {
            match (earlier, later) {
                (Some(left), Some(right)) if rank(left) >= rank(right) => {
                    link.set(Some(left));
                    link = &left.timeout.later;
                    earlier = link.get();
                }
                (Some(_), Some(right)) => {
                    link.set(Some(right));
                    link = &right.timeout.earlier;
                    later = link.get();
                }
                (rest, None) | (None, rest) => {
                    link.set(rest);
                    return;
                }
            }
        }
    }

    /// The thread whose timeout ends first.
    pub fn first(&self) -> Option<ThreadRef> {
        let mut first = self.root.get()?;
        while let Some(earlier) = first.timeout.earlier.get() {
            first = earlier;
        }
        Some(first)
    }

    /// When the first timeout ends; `NEVER` if none runs.
    pub fn first_deadline(&self) -> Microseconds {
        self.first().map_or(NEVER, |thread| thread.timeout.deadline.get())
    }

    /// Looks at the thread that is first to be looked at, if it is time for that at `now`. Its
    /// timeout may have ended, and does not run any more: it is inside then.
    pub fn pop_expired(&self, now: Microseconds) -> Option<Option<ThreadRef>> {
        let first = self.first()?;
        let at = first.timeout.deadline.get();
        if at > now {
            return None;
        }
        let end = first.waits_until();
        if end > at {
            // The thread waits again, because a timeout of another thread ends earlier.
            self.insert(first, end);
            return Some(None);
        }
        self.remove(first);
        Some(Some(first))
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::test_thread;
    use std::vec::Vec;

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    fn depth(node: Option<ThreadRef>) -> usize {
        node.map_or(0, |node| 1 + depth(node.timeout.earlier.get()).max(depth(node.timeout.later.get())))
    }

    #[test]
    fn wakes_in_order_of_deadline() {
        let timeouts = Timeouts::new();
        let mut seed = 1;
        let threads: Vec<_> = (0..500).map(|_| test_thread()).collect();
        let mut expected = Vec::new();
        for &thread in &threads {
            let deadline = 1 + random(&mut seed) % 1000;
            timeouts.insert(thread, deadline);
            expected.push(deadline);
        }
        expected.sort_unstable();
        let mut woken = Vec::new();
        while timeouts.first().is_some() {
            woken.push(timeouts.first_deadline());
            assert!(timeouts.pop_expired(timeouts.first_deadline() - 1).is_none());
            assert!(timeouts.pop_expired(timeouts.first_deadline()).is_some());
        }
        assert_eq!(woken, expected);
    }

    #[test]
    fn removal_from_anywhere_keeps_the_rest() {
        let timeouts = Timeouts::new();
        let mut seed = 7;
        let threads: Vec<_> = (0..300).map(|_| test_thread()).collect();
        for round in 0..2000u64 {
            let thread = threads[random(&mut seed) as usize % threads.len()];
            if thread.timeout.deadline().is_some() {
                timeouts.remove(thread);
            } else {
                timeouts.insert(thread, round + random(&mut seed) % 100);
            }
            let first = threads.iter().filter_map(|thread| thread.timeout.deadline()).min();
            assert_eq!(timeouts.first_deadline(), first.unwrap_or(NEVER));
        }
    }

    #[test]
    fn stays_shallow_for_sorted_deadlines() {
        let timeouts = Timeouts::new();
        for deadline in 0..4096 {
            timeouts.insert(test_thread(), deadline);
        }
        assert!(depth(timeouts.root.get()) < 60, "depth {}", depth(timeouts.root.get()));
    }

    #[test]
    fn never_is_not_a_timeout() {
        let timeouts = Timeouts::new();
        let thread = test_thread();
        timeouts.insert(thread, NEVER);
        assert!(timeouts.first().is_none());
        timeouts.remove(thread);
    }
}
