//! A processor's request queue: any processor posts, one takes; lock-free, and without memory of
//! its own.

use core::ptr::{self, null_mut};

#[cfg(not(loom))]
use core::sync::atomic::{AtomicPtr, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicPtr, Ordering};

/// The part of an object that links it into a request queue. An object is in one queue at a time.
#[derive(Debug)]
pub struct Node {
    /// The next node. In a [`RequestQueue`] it was posted before this one; in [`Requests`], which
    /// are in order, after it.
    next: AtomicPtr<Node>,
}

impl Node {
    /// A node that is in no queue.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { next: AtomicPtr::new(null_mut()) }
    }

    /// A node that is in no queue.
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

/// Objects on their way to one processor, in a stack that is turned round after it was taken.
#[derive(Debug)]
pub struct RequestQueue {
    latest: AtomicPtr<Node>,
}

impl RequestQueue {
    /// An empty request queue.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { latest: AtomicPtr::new(null_mut()) }
    }

    /// An empty request queue.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { latest: AtomicPtr::new(null_mut()) }
    }

    /// Posts objects that the caller owns, together: they arrive in this order with nothing between
    /// them. Returns whether the queue was empty: then its processor may not know that something
    /// was posted.
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

    /// Whether something is in the queue now.
    #[inline]
    pub fn has_requests(&self) -> bool {
        // Relaxed: `RequestQueue::take` orders.
        !self.latest.load(Ordering::Relaxed).is_null()
    }

    /// Takes everything out of the queue. Only the queue's processor may do so.
    #[inline]
    pub fn take(&self) -> Requests {
        // Acquire: with it come the objects' states.
        Requests { stacked: self.latest.swap(null_mut(), Ordering::Acquire), next: null_mut() }
    }
}

impl Default for RequestQueue {
    fn default() -> Self {
        Self::new()
    }
}

/// What was taken out of a [`RequestQueue`]. It comes out of this in the order in which it was
/// posted. A node that has been handed out is in no list any more.
#[derive(Debug)]
pub struct Requests {
    /// Nodes that are not in order yet, the latest first, as in the [`RequestQueue`]. They were
    /// posted before those that are in order.
    stacked: *mut Node,
    /// In order.
    next: *mut Node,
}

impl Requests {
    /// No nodes.
    pub const fn new() -> Self {
        Self { stacked: null_mut(), next: null_mut() }
    }

    /// Whether the list has no requests.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.stacked.is_null() && self.next.is_null()
    }

    /// Takes the node if it is the only one that was in the queue.
    #[inline]
    pub fn take_only(&mut self) -> Option<&'static Node> {
        // SAFETY: nodes are 'static.
        let node: &'static Node = unsafe { self.stacked.as_ref() }?;
        let only = self.next.is_null() && node.next.load(Ordering::Relaxed).is_null();
        only.then(|| {
            self.stacked = null_mut();
            node
        })
    }

    /// Puts up to `count` nodes in order. A caller with many nodes does not put all in order in one
    /// go. Returns whether all are in order.
    pub fn put_in_order(&mut self, count: usize) -> bool {
        for _ in 0..count {
            // SAFETY: nodes are 'static, and those taken belong to this list.
            let Some(node) = (unsafe { self.stacked.as_ref() }) else { break };
            let earlier = node.next.load(Ordering::Relaxed);
            node.next.store(self.next, Ordering::Relaxed);
            (self.next, self.stacked) = (self.stacked, earlier);
        }
        self.stacked.is_null()
    }
}

impl Default for Requests {
    fn default() -> Self {
        Self::new()
    }
}

impl Iterator for Requests {
    type Item = &'static Node;

    /// The first of the nodes, all of which are put in order if they are not yet.
    fn next(&mut self) -> Option<&'static Node> {
        self.put_in_order(usize::MAX);
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
    fn requests_come_in_the_order_of_posting() {
        let queue = RequestQueue::new();
        let nodes = nodes::<6>();
        assert!(queue.post(&nodes[..1]));
        assert!(!queue.post(&nodes[1..4]));
        assert!(!queue.post(&nodes[4..]));
        assert!(queue.has_requests());
        let taken: Vec<_> = queue.take().map(ptr::from_ref).collect();
        assert_eq!(taken, nodes.map(ptr::from_ref));
        assert!(!queue.has_requests() && queue.take().next().is_none());
        assert!(queue.post(&nodes[2..3]), "a node that was taken can be posted again");
        assert!(!queue.post(&[]), "nothing is no request");
        assert_eq!(queue.take().count(), 1);
    }

    #[test]
    fn a_request_is_taken_by_itself_if_it_is_the_only_one() {
        let queue = RequestQueue::new();
        let nodes = nodes::<2>();
        assert!(queue.take().take_only().is_none());
        queue.post(&nodes[..1]);
        let mut requests = queue.take();
        assert!(
            requests.take_only().is_some_and(|node| ptr::eq(node, nodes[0])) && requests.next().is_none()
        );
        queue.post(&nodes);
        let mut requests = queue.take();
        assert!(requests.take_only().is_none());
        assert_eq!(requests.count(), 2);
    }
    #[test]
    fn requests_are_put_in_order_a_few_at_a_time() {
        let queue = RequestQueue::new();
        let nodes = nodes::<5>();
        queue.post(&nodes);
        let mut requests = queue.take();
        assert!(!requests.is_empty() && !requests.put_in_order(2) && !requests.is_empty());
        assert!(requests.take_only().is_none(), "others are in order already");
        assert!(!requests.put_in_order(2) && requests.put_in_order(2) && requests.put_in_order(2));
        let mut taken = Vec::new();
        while !requests.is_empty() {
            taken.extend(requests.next().map(ptr::from_ref));
        }
        assert_eq!(taken, nodes.map(ptr::from_ref));
        assert!(requests.next().is_none() && requests.put_in_order(1));
    }

    #[test]
    fn the_last_request_is_no_only_one_while_others_are_in_order() {
        let queue = RequestQueue::new();
        queue.post(&nodes::<2>());
        let mut requests = queue.take();
        requests.put_in_order(1);
        assert!(requests.take_only().is_none());
        assert_eq!(requests.count(), 2);
    }
}
