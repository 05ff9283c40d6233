//! The threads that wait to send to one thread, served highest priority first and in order of
//! arrival among equals (X.2 rule 7.7).
//!
//! Equals form a ring; the first of each ring is linked to the first of the next lower priority
//! present. Insertion costs as many steps as there are different priorities in the queue, never as
//! many as there are senders; removal from anywhere, and finding the first, are O(1).

use core::cell::Cell;
use core::ptr::eq;

use super::ThreadRef;
use crate::processor;
use crate::sync::SEVERAL;

/// The part of a TCB that belongs to its partner's queue of senders.
pub struct SendNode {
    /// The thread that this node's thread waits to send to.
    receiver: Cell<Option<ThreadRef>>,
    next: Cell<Option<ThreadRef>>,
    previous: Cell<Option<ThreadRef>>,
    /// Firsts of rings only: the firsts of the neighbouring rings.
    higher: Cell<Option<ThreadRef>>,
    lower: Cell<Option<ThreadRef>>,
}

impl SendNode {
    /// A node that is in no queue.
    pub const fn new() -> Self {
        Self {
            receiver: Cell::new(None),
            next: Cell::new(None),
            previous: Cell::new(None),
            higher: Cell::new(None),
            lower: Cell::new(None),
        }
    }

    /// The thread that this one waits to send to.
    #[inline]
    pub fn receiver(&self) -> Option<ThreadRef> {
        self.receiver.get()
    }
}

impl Default for SendNode {
    fn default() -> Self {
        Self::new()
    }
}

/// Takes `sender` out of the queue of senders in which it waits, if it does. Called at the
/// processor where it waits.
pub fn remove_sender(sender: ThreadRef) {
    if let Some(receiver) = sender.senders_node.receiver() {
        queue_of(receiver).remove(sender);
    }
}

/// The queue in which threads of this processor wait to send to `receiver`.
fn queue_of(receiver: ThreadRef) -> &'static SendQueue {
    let followers = &processor::this().followers;
    if followers.wait_for(receiver) { &followers.queue } else { &receiver.senders }
}

/// The senders of a thread that has got another home. They are in its queue no more, and follow it
/// one after the other, before their processor does anything but serve interrupts: until then the
/// thread stays there, no other thread moves, and none begins to wait. So these are the senders of
/// one thread at most.
pub struct Followers {
    receiver: Cell<Option<ThreadRef>>,
    /// The new home processor of the senders.
    to: Cell<u16>,
    queue: SendQueue,
}

impl Followers {
    /// No senders are to be moved.
    pub const fn new() -> Self {
        Self { receiver: Cell::new(None), to: Cell::new(0), queue: SendQueue::new() }
    }

    /// The senders of `receiver`, which lives here and is about to live at processor `to`, are to
    /// follow it. Its queue is empty then.
    pub fn take_from(&self, receiver: ThreadRef, to: u16) {
        debug_assert!(!self.are_left() && receiver.is_home());
        receiver.search.set(None);
        self.queue.first.set(receiver.senders.first.take());
        self.receiver.set(Some(receiver));
        self.to.set(to);
    }

    /// Whether senders are left to be moved.
    #[inline]
    pub fn are_left(&self) -> bool {
        SEVERAL && self.queue.first.get().is_some()
    }

    /// The sender that goes next, and the processor that it goes to.
    pub fn first(&self) -> Option<(ThreadRef, u16)> {
        self.queue.first.get().map(|sender| (sender, self.to.get()))
    }

    fn wait_for(&self, receiver: ThreadRef) -> bool {
        self.are_left() && self.receiver.get().is_some_and(|of| eq(of, receiver))
    }
}

impl Default for Followers {
    fn default() -> Self {
        Self::new()
    }
}

/// The queue of senders of one thread. Home processor only.
pub struct SendQueue {
    first: Cell<Option<ThreadRef>>,
}

impl SendQueue {
    /// An empty queue.
    pub const fn new() -> Self {
        Self { first: Cell::new(None) }
    }

    /// The sender to serve next.
    #[inline]
    pub fn first(&self) -> Option<ThreadRef> {
        self.first.get()
    }

    /// Adds `thread`, which must be in no such queue, after the senders of its priority. The queue
    /// is `receiver`'s.
    pub fn insert(&self, receiver: ThreadRef, thread: ThreadRef) {
        debug_assert!(eq(self, &receiver.senders) && thread.senders_node.receiver.get().is_none());
        debug_assert!(receiver.is_home(), "a queue is touched at its receiver's home only");
        thread.senders_node.receiver.set(Some(receiver));
        let priority = thread.priority.get();
        let mut higher = None;
        let mut ring = self.first.get();
        while let Some(first) = ring.filter(|first| first.priority.get() > priority) {
            higher = ring;
            ring = first.senders_node.lower.get();
        }
        let node = &thread.senders_node;
        if let Some(first) = ring.filter(|first| first.priority.get() == priority) {
            let last = first.senders_node.previous.replace(Some(thread));
            node.previous.set(last);
            node.next.set(Some(first));
            node.higher.set(None);
            node.lower.set(None);
            if let Some(last) = last {
                last.senders_node.next.set(Some(thread));
            }
            return;
        }
        node.next.set(Some(thread));
        node.previous.set(Some(thread));
        self.link_ring(thread, higher, ring);
    }

    /// Makes `first` the first of the ring between `higher` and `lower`.
    fn link_ring(&self, first: ThreadRef, higher: Option<ThreadRef>, lower: Option<ThreadRef>) {
        first.senders_node.higher.set(higher);
        first.senders_node.lower.set(lower);
        self.set_below(higher, Some(first));
        if let Some(lower) = lower {
            lower.senders_node.higher.set(Some(first));
        }
    }

    fn set_below(&self, higher: Option<ThreadRef>, below: Option<ThreadRef>) {
        match higher {
            Some(higher) => higher.senders_node.lower.set(below),
            None => self.first.set(below),
        }
    }

    /// Takes `thread`, which must be in this queue, out of it. A search that has come to it moves
    /// on.
    pub fn remove(&self, thread: ThreadRef) {
        let node = &thread.senders_node;
        if let Some(receiver) = node.receiver.take() {
            let is_follower = !eq(self, &receiver.senders);
            debug_assert!(
                if is_follower { eq(self, queue_of(receiver)) } else { receiver.is_home() },
                "a queue is touched at its receiver's home only"
            );
            if !is_follower && receiver.search.get().is_some_and(|next| eq(next, thread)) {
                receiver.search.set(self.after(thread));
            }
        }
        let is_first = self.is_first_of_ring(thread);
        let (higher, lower) = (node.higher.take(), node.lower.take());
        let (Some(next), Some(previous)) = (node.next.take(), node.previous.take()) else {
            debug_assert!(false, "the thread is not in the queue");
            return;
        };
        if eq(next, thread) {
            self.set_below(higher, lower);
            if let Some(lower) = lower {
                lower.senders_node.higher.set(higher);
            }
            return;
        }
        previous.senders_node.next.set(Some(next));
        next.senders_node.previous.set(Some(previous));
        if is_first {
            self.link_ring(next, higher, lower);
        }
    }

    fn is_first_of_ring(&self, thread: ThreadRef) -> bool {
        thread.senders_node.higher.get().is_some() || self.first.get().is_some_and(|first| eq(first, thread))
    }

    /// The sender that is served after `thread`, which must be in this queue.
    pub fn after(&self, thread: ThreadRef) -> Option<ThreadRef> {
        let next = thread.senders_node.next.get()?;
        if self.is_first_of_ring(next) { next.senders_node.lower.get() } else { Some(next) }
    }

    /// All senders, in the order in which they are served.
    pub fn iter(&self) -> impl Iterator<Item = ThreadRef> + use<> {
        let firsts = core::iter::successors(self.first.get(), |first| first.senders_node.lower.get());
        firsts.flat_map(|first| {
            core::iter::successors(Some(first), move |thread| {
                thread.senders_node.next.get().filter(|next| !eq(*next, first))
            })
        })
    }
}

impl Default for SendQueue {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::test_thread;
    use std::vec::Vec;

    fn thread(priority: u8) -> ThreadRef {
        let thread = test_thread();
        thread.priority.set(priority);
        thread
    }

    fn address(thread: ThreadRef) -> usize {
        core::ptr::from_ref(thread).addr()
    }

    /// Rules: 7.7a.
    #[test]
    fn agrees_with_a_sorted_list() {
        let receiver = test_thread();
        let queue = &receiver.senders;
        let mut model: Vec<ThreadRef> = Vec::new();
        let mut state = 3u64;
        for _ in 0..5000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = (state >> 33) as usize;
            if random.is_multiple_of(2) || model.is_empty() {
                let thread = thread((random >> 8) as u8 % 5);
                queue.insert(receiver, thread);
                let place = model.iter().position(|other| other.priority.get() < thread.priority.get());
                model.insert(place.unwrap_or(model.len()), thread);
            } else {
                queue.remove(model.remove((random >> 1) % model.len()));
            }
            let order: Vec<_> = queue.iter().map(address).collect();
            assert_eq!(order, model.iter().map(|thread| address(thread)).collect::<Vec<_>>());
            assert_eq!(queue.first().map(address), order.first().copied());
        }
    }
}
