//! The threads of one processor that are ready and not running: a circular list for each of the 256
//! priorities, and a bitmap of the lists that are not empty. Every operation is O(1).
//!
//! The running thread is not in the queue, so that a switch from partner to partner touches no
//! list.

use core::cell::Cell;
use core::mem::offset_of;

use crate::sync::SEVERAL;
use crate::thread::ThreadRef;

/// The part of a TCB that belongs to the ready queue. Home processor only.
pub struct ReadyNode {
    next: Cell<Option<ThreadRef>>,
    previous: Cell<Option<ThreadRef>>,
}

impl ReadyNode {
    /// A node that is in no queue.
    pub const fn new() -> Self {
        Self { next: Cell::new(None), previous: Cell::new(None) }
    }

    /// Whether the thread is in its processor's ready queue.
    pub fn is_queued(&self) -> bool {
        self.next.get().is_some()
    }
}

impl Default for ReadyNode {
    fn default() -> Self {
        Self::new()
    }
}

/// The purpose of a ring of threads.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(u8)]
pub enum Ring {
    /// Threads that run here: one ring for each priority.
    #[default]
    Priority,
    /// Threads that have just come from other processors.
    Arrived,
    /// The threads go to their home processors when the present handler is done.
    Outbound,
}

const PRIORITIES: usize = 256;
/// A value below every priority, for an empty queue.
const NONE_READY: i32 = -1;
/// The difference between the highest and the lowest priority.
const FARTHEST: u32 = PRIORITIES as u32 - 1;
const WORD: usize = u64::BITS as usize;

/// Ready threads by priority, 255 first, first in first out among equals.
pub struct ReadyQueue {
    /// The highest priority that has a ready thread; -1 = none. Kept for the fast path, which only
    /// compares it.
    highest: Cell<i32>,
    /// How far from the highest of all a priority may be so that no ready thread is above it.
    farthest: Cell<u32>,
    occupied: [Cell<u64>; PRIORITIES / WORD],
    heads: [Cell<Option<ThreadRef>>; PRIORITIES],
    arrived: Cell<Option<ThreadRef>>,
    outbound: Cell<Option<ThreadRef>>,
}

impl ReadyQueue {
    /// Where entry code finds the highest priority that has a ready thread.
    pub(super) const HIGHEST: usize = offset_of!(Self, highest);
    /// Where entry code finds how far from the highest of all a priority may be so that no ready
    /// thread is above it.
    pub(super) const FARTHEST: usize = offset_of!(Self, farthest);

    /// An empty queue.
    pub const fn new() -> Self {
        Self {
            highest: Cell::new(NONE_READY),
            farthest: Cell::new(FARTHEST),
            occupied: [const { Cell::new(0) }; PRIORITIES / WORD],
            heads: [const { Cell::new(None) }; PRIORITIES],
            arrived: Cell::new(None),
            outbound: Cell::new(None),
        }
    }

    /// Adds `thread`, which must not be queued, after the threads of its priority.
    pub fn push_back(&self, thread: ThreadRef) {
        self.link(thread, Ring::Priority, false);
    }

    /// Adds `thread`, which must not be queued, before the threads of its priority.
    pub fn push_front(&self, thread: ThreadRef) {
        self.link(thread, Ring::Priority, true);
    }

    /// Adds `thread`, which must not be queued, at the end of the ring, which is not one of the
    /// priorities'.
    pub fn push_to(&self, ring: Ring, thread: ThreadRef) {
        self.link(thread, ring, false);
    }

    /// Adds `thread`, which must not be queued, before those of the ring, which is not one of the
    /// priorities'.
    pub fn push_front_to(&self, ring: Ring, thread: ThreadRef) {
        self.link(thread, ring, true);
    }

    /// Takes the first thread out of the ring.
    pub fn pop_from(&self, ring: Ring) -> Option<ThreadRef> {
        let first = self.head(ring, 0).get()?;
        self.remove(first);
        Some(first)
    }

    /// Whether a thread here has to move to its home processor.
    #[inline]
    pub fn has_outbound(&self) -> bool {
        SEVERAL && self.outbound.get().is_some()
    }

    /// Whether a thread has come that has not been served yet.
    pub fn has_arrived(&self) -> bool {
        SEVERAL && self.arrived.get().is_some()
    }

    #[inline]
    fn head(&self, ring: Ring, priority: usize) -> &Cell<Option<ThreadRef>> {
        match ring {
            Ring::Priority => &self.heads[priority],
            Ring::Arrived => &self.arrived,
            Ring::Outbound => &self.outbound,
        }
    }

    fn link(&self, thread: ThreadRef, ring: Ring, front: bool) {
        debug_assert!(!thread.ready.is_queued());
        let priority = usize::from(thread.priority.get());
        thread.ring.set(ring);
        let head = self.head(ring, priority);
        match head.get() {
            None => {
                thread.ready.next.set(Some(thread));
                thread.ready.previous.set(Some(thread));
                head.set(Some(thread));
                if ring != Ring::Priority {
                    return;
                }
                let word = &self.occupied[priority / WORD];
                word.set(word.get() | 1 << (priority % WORD));
                self.set_highest(self.highest.get().max(priority as i32));
            }
            Some(first) => {
                let last = first.ready.previous.replace(Some(thread));
                thread.ready.previous.set(last);
                thread.ready.next.set(Some(first));
                if let Some(last) = last {
                    last.ready.next.set(Some(thread));
                }
                if front {
                    head.set(Some(thread));
                }
            }
        }
    }

    /// Takes `thread` out, if it is queued. Its priority must not have changed since it was added.
    pub fn remove(&self, thread: ThreadRef) {
        let (Some(next), Some(previous)) = (thread.ready.next.take(), thread.ready.previous.take()) else {
            return;
        };
        let priority = usize::from(thread.priority.get());
        let ring = thread.ring.get();
        let head = self.head(ring, priority);
        if core::ptr::eq(next, thread) {
            head.set(None);
            if ring != Ring::Priority {
                return;
            }
            let word = &self.occupied[priority / WORD];
            word.set(word.get() & !(1 << (priority % WORD)));
            if self.highest.get() == priority as i32 {
                self.set_highest(self.find_highest());
            }
            return;
        }
        previous.ready.next.set(Some(next));
        next.ready.previous.set(Some(previous));
        if head.get().is_some_and(|first| core::ptr::eq(first, thread)) {
            head.set(Some(next));
        }
    }

    /// `thread` has this priority from now on, and waits after the threads that have it already. A
    /// thread that has just come, or goes home, stays in its ring: it is still to be served.
    pub fn change_priority(&self, thread: ThreadRef, priority: u8) {
        let moves = self.is_ready(thread);
        if moves {
            self.remove(thread);
        }
        thread.priority.set(priority);
        if moves {
            self.push_back(thread);
        }
    }

    /// `thread`, if it is ready, is the last of its priority.
    pub fn move_back(&self, thread: ThreadRef) {
        if self.is_ready(thread) {
            self.remove(thread);
            self.push_back(thread);
        }
    }

    /// Whether `thread` stands among the threads of its priority: it is queued, and neither
    /// arriving nor going home.
    fn is_ready(&self, thread: ThreadRef) -> bool {
        thread.ready.is_queued() && thread.ring.get() == Ring::Priority
    }

    /// `thread` is not to run now. One that has just come stays among those that have: it may have
    /// to go on elsewhere.
    pub fn withdraw(&self, thread: ThreadRef) {
        if thread.ring.get() != Ring::Arrived {
            self.remove(thread);
        }
    }

    /// The first thread of the highest priority that has one.
    pub fn first(&self) -> Option<ThreadRef> {
        self.highest_priority().and_then(|priority| self.heads[usize::from(priority)].get())
    }

    /// The highest priority that has a ready thread.
    #[inline]
    pub fn highest_priority(&self) -> Option<u8> {
        u8::try_from(self.highest.get()).ok()
    }

    /// Whether no ready thread has a priority above `priority`.
    #[inline]
    pub fn has_none_above(&self, priority: u8) -> bool {
        i32::from(priority) >= self.highest.get()
    }

    fn set_highest(&self, highest: i32) {
        self.highest.set(highest);
        self.farthest.set(FARTHEST - highest.max(0) as u32);
    }

    fn find_highest(&self) -> i32 {
        let Some(word) = (0..PRIORITIES / WORD).rev().find(|&word| self.occupied[word].get() != 0) else {
            return NONE_READY;
        };
        (word * WORD + WORD - 1) as i32 - self.occupied[word].get().leading_zeros() as i32
    }

    /// Takes out the first thread of the highest priority.
    pub fn pop(&self) -> Option<ThreadRef> {
        let first = self.first()?;
        self.remove(first);
        Some(first)
    }

    /// The ready threads of one priority, in order, for the debugger and tests.
    pub fn threads(&self, priority: u8) -> impl Iterator<Item = ThreadRef> + '_ {
        let head = self.heads[usize::from(priority)].get();
        core::iter::successors(head, move |thread| {
            thread.ready.next.get().filter(|&next| !head.is_some_and(|first| core::ptr::eq(first, next)))
        })
    }
}

impl Default for ReadyQueue {
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

    fn same(a: Option<ThreadRef>, b: ThreadRef) -> bool {
        a.is_some_and(|a| core::ptr::eq(a, b))
    }

    #[test]
    fn highest_priority_first_then_in_order() {
        let queue = ReadyQueue::new();
        let low = thread(3);
        let (first, second, third) = (thread(255), thread(255), thread(255));
        queue.push_back(low);
        queue.push_back(second);
        queue.push_back(third);
        queue.push_front(first);
        assert_eq!(queue.threads(255).count(), 3);
        for expected in [first, second, third, low] {
            assert!(same(queue.pop(), expected));
            assert!(!expected.ready.is_queued());
        }
        assert!(queue.pop().is_none());
        assert_eq!(queue.highest_priority(), None);
    }

    #[test]
    fn removes_from_the_middle_and_the_ends() {
        let queue = ReadyQueue::new();
        let threads: Vec<_> = (0..5).map(|_| thread(64)).collect();
        for &thread in &threads {
            queue.push_back(thread);
        }
        for index in [2, 0, 4] {
            queue.remove(threads[index]);
            queue.remove(threads[index]);
        }
        assert!(same(queue.pop(), threads[1]));
        assert!(same(queue.pop(), threads[3]));
        assert!(queue.pop().is_none());
    }

    #[test]
    fn every_priority_is_found() {
        let queue = ReadyQueue::new();
        for priority in 0..=255 {
            queue.push_back(thread(priority));
        }
        for priority in (0..=255).rev() {
            assert_eq!(queue.highest_priority(), Some(priority));
            queue.pop();
        }
    }
}
