//! The ready queue of one worker, with the flag that says whether it must be notified.

use super::OutOfMemory;
use alloc::collections::VecDeque;
use spin::Mutex;

struct State<T> {
    ready: VecDeque<T>,
    /// The worker found nothing to do and will sleep. The next push must notify it.
    sleeping: bool,
    /// How many members may be in the queue at the same time, each at most once. `ready` has room
    /// for all of them.
    members: usize,
}

/// A queue that is pushed to by any processor and popped by one worker. Its lock is held for a few
/// instructions and never across IPC; [`RunQueue::reserve`] is the only operation that may
/// allocate.
pub(super) struct RunQueue<T>(Mutex<State<T>>);

impl<T> RunQueue<T> {
    pub(super) fn new() -> Self {
        RunQueue(Mutex::new(State { ready: VecDeque::new(), sleeping: false, members: 0 }))
    }

    /// Makes room for one more member. Grows geometrically: spawning is amortised constant time.
    pub(super) fn reserve(&self) -> Result<(), OutOfMemory> {
        let mut state = self.0.lock();
        let missing = (state.members + 1).saturating_sub(state.ready.len());
        state.ready.try_reserve(missing).map_err(|_| OutOfMemory)?;
        state.members += 1;
        Ok(())
    }

    /// Removes a member from the count.
    pub(super) fn release(&self) {
        self.0.lock().members -= 1;
    }

    /// Appends a member. Returns true if the worker sleeps, so that the caller must notify it.
    #[must_use]
    pub(super) fn push(&self, member: T) -> bool {
        let mut state = self.0.lock();
        state.ready.push_back(member);
        core::mem::take(&mut state.sleeping)
    }

    pub(super) fn pop(&self) -> Option<T> {
        self.0.lock().ready.pop_front()
    }

    /// The number of members in the queue.
    pub(super) fn len(&self) -> usize {
        self.0.lock().ready.len()
    }

    /// Marks the worker as sleeping if the queue is empty. Returns whether it did.
    pub(super) fn prepare_sleep(&self) -> bool {
        let mut state = self.0.lock();
        state.sleeping = state.ready.is_empty();
        state.sleeping
    }

    pub(super) fn awake(&self) {
        self.0.lock().sleeping = false;
    }

    pub(super) fn is_sleeping(&self) -> bool {
        self.0.lock().sleeping
    }

    /// Ends the sleep of a worker. Returns true if it was sleeping, so that the caller must notify
    /// it.
    #[must_use]
    pub(super) fn rouse(&self) -> bool {
        core::mem::take(&mut self.0.lock().sleeping)
    }
}
