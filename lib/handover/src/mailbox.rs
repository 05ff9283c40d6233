//! A processor's mailbox: anybody posts, one takes; lock-free, and without memory of its own.

use core::ptr::{self, null_mut};

#[cfg(not(loom))]
use core::sync::atomic::{AtomicPtr, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicPtr, Ordering};

/// The part of an object with which it lies in a mailbox. An object is in one mailbox at a time.
#[derive(Debug)]
pub struct Node {
    /// In a mailbox: what was posted before. In [`Letters`]: what was posted next.
    next: AtomicPtr<Node>,
}

impl Node {
    /// A node that is in no mailbox.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { next: AtomicPtr::new(null_mut()) }
    }

    /// A node that is in no mailbox.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { next: AtomicPtr::new(null_mut()) }
    }
}

impl Default for Node {
    fn default() -> Self {
        Self::new()
    }
}

/// Objects on their way to one processor, in a stack that is turned round when it is taken.
#[derive(Debug)]
pub struct Mailbox {
    latest: AtomicPtr<Node>,
}

impl Mailbox {
    /// An empty mailbox.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { latest: AtomicPtr::new(null_mut()) }
    }

    /// An empty mailbox.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { latest: AtomicPtr::new(null_mut()) }
    }

    /// Posts objects that the caller owns, together: they arrive in this order with nothing between them. Returns whether
    /// the mailbox was empty: then its processor may not know that there is mail.
    pub fn post(&self, nodes: &[&'static Node]) -> bool {
        let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { return false };
        for pair in nodes.windows(2) {
            pair[1].next.store(ptr::from_ref(pair[0]).cast_mut(), Ordering::Relaxed);
        }
        let mut before = self.latest.load(Ordering::Relaxed);
        loop {
            first.next.store(before, Ordering::Relaxed);
            let new = ptr::from_ref(*last).cast_mut();
            // Release: publishes the objects' states.
            match self.latest.compare_exchange_weak(before, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return before.is_null(),
                Err(now) => before = now,
            }
        }
    }

    /// Whether there is mail now.
    #[inline]
    pub fn has_mail(&self) -> bool {
        // Relaxed: `Mailbox::take` orders.
        !self.latest.load(Ordering::Relaxed).is_null()
    }

    /// Takes what is there, in the order in which it was posted. Only by the mailbox's processor.
    pub fn take(&self) -> Letters {
        // Acquire: with it come the objects' states.
        let mut node = self.latest.swap(null_mut(), Ordering::Acquire);
        let mut next = null_mut();
        while !node.is_null() {
            // SAFETY: nodes are 'static, and those taken are ours.
            let before = unsafe { &(*node).next };
            let earlier = before.load(Ordering::Relaxed);
            before.store(next, Ordering::Relaxed);
            (next, node) = (node, earlier);
        }
        Letters { next }
    }
}

impl Default for Mailbox {
    fn default() -> Self {
        Self::new()
    }
}

/// What was taken out of a mailbox. A node that has been handed out is in no list any more.
#[derive(Debug)]
pub struct Letters {
    next: *mut Node,
}

impl Letters {
    /// Takes the letter if it is the only one.
    #[inline]
    pub fn take_only(&mut self) -> Option<&'static Node> {
        // SAFETY: nodes are 'static.
        let node: &'static Node = unsafe { self.next.as_ref() }?;
        let only = node.next.load(Ordering::Relaxed).is_null();
        only.then(|| {
            self.next = null_mut();
            node
        })
    }
}

impl Iterator for Letters {
    type Item = &'static Node;

    fn next(&mut self) -> Option<&'static Node> {
        // SAFETY: nodes are 'static.
        let node: &'static Node = unsafe { self.next.as_ref() }?;
        self.next = node.next.load(Ordering::Relaxed);
        Some(node)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn nodes<const N: usize>() -> [&'static Node; N] {
        core::array::from_fn(|_| &*Box::leak(Box::new(Node::new())))
    }

    #[test]
    fn letters_come_in_the_order_of_posting() {
        let mailbox = Mailbox::new();
        let nodes = nodes::<6>();
        assert!(mailbox.post(&nodes[..1]));
        assert!(!mailbox.post(&nodes[1..4]));
        assert!(!mailbox.post(&nodes[4..]));
        assert!(mailbox.has_mail());
        let taken: Vec<_> = mailbox.take().map(ptr::from_ref).collect();
        assert_eq!(taken, nodes.map(ptr::from_ref));
        assert!(!mailbox.has_mail() && mailbox.take().next().is_none());
        assert!(mailbox.post(&nodes[2..3]), "a node that was taken can be posted again");
        assert!(!mailbox.post(&[]), "nothing is no mail");
        assert_eq!(mailbox.take().count(), 1);
    }

    #[test]
    fn a_letter_is_taken_by_itself_if_it_is_the_only_one() {
        let mailbox = Mailbox::new();
        let nodes = nodes::<2>();
        assert!(mailbox.take().take_only().is_none());
        mailbox.post(&nodes[..1]);
        let mut letters = mailbox.take();
        assert!(letters.take_only().is_some_and(|node| ptr::eq(node, nodes[0])) && letters.next().is_none());
        mailbox.post(&nodes);
        let mut letters = mailbox.take();
        assert!(letters.take_only().is_none());
        assert_eq!(letters.count(), 2);
    }
}
