//! An event: a flag that tasks wait for.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::WaitQueue;

/// A flag. Setting it wakes every waiting task; it stays set until it is cleared.
#[derive(Default)]
pub struct Event {
    set: AtomicBool,
    queue: WaitQueue,
}

impl Event {
    /// An event whose flag is not set.
    pub fn new() -> Self {
        Self { set: AtomicBool::new(false), queue: WaitQueue::new() }
    }

    /// Sets the flag and wakes all tasks that wait for it.
    pub fn set(&self) {
        // Release: a task that sees the flag also sees what was written before the flag was set.
        self.set.store(true, Ordering::Release);
        self.queue.wake_all();
    }

    /// Clears the flag. Returns whether it was set.
    pub fn clear(&self) -> bool {
        self.set.swap(false, Ordering::AcqRel)
    }

    /// Whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Waits until the flag is set. The flag stays set.
    pub async fn wait(&self) {
        self.queue.wait_until(|| self.is_set().then_some(())).await;
    }

    /// Waits until the flag is set, and clears it. If several tasks wait, each setting lets one of
    /// them continue.
    pub async fn consume(&self) {
        self.queue.wait_until(|| self.clear().then_some(())).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Task;

    #[test]
    fn set_wakes_all_and_stays() {
        let event = Event::new();
        let (mut first, mut second) = (Task::new(event.wait()), Task::new(event.wait()));
        assert!(first.poll().is_pending() && second.poll().is_pending());
        event.set();
        assert!(first.poll().is_ready() && second.poll().is_ready());
        assert!(Task::new(event.wait()).poll().is_ready());
        assert!(event.clear() && !event.is_set());
    }

    #[test]
    fn one_setting_is_consumed_once() {
        let event = Event::new();
        let (mut first, mut second) = (Task::new(event.consume()), Task::new(event.consume()));
        assert!(first.poll().is_pending() && second.poll().is_pending());
        event.set();
        assert!(first.poll().is_ready() && second.poll().is_pending());
        event.set();
        assert!(second.poll().is_ready());
    }
}
