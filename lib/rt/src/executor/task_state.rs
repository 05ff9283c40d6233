//! The state of a task: which waker may queue the task, and how no wake-up during a poll is lost.
//! It is model-checked with loom.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU8, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU8, Ordering};

/// The task waits for a wake-up and is in no queue.
const IDLE: u8 = 0;
/// The task is in exactly one queue.
const QUEUED: u8 = 1;
/// The task is being polled.
const RUNNING: u8 = 2;
/// The task is being polled, and was woken since the poll began.
const WOKEN: u8 = 3;
/// The task has ended; wake-ups have no effect.
const DONE: u8 = 4;

/// The state of a task. Every transition is one atomic operation; acquire and release order what
/// the waker wrote before it woke the task before the poll that the wake-up causes.
#[derive(Debug)]
pub(super) struct TaskState(AtomicU8);

impl TaskState {
    /// The state of a task that its creator is about to queue.
    pub(super) fn queued() -> Self {
        TaskState(AtomicU8::new(QUEUED))
    }

    /// Records a wake-up. Returns true if the caller must put the task into its worker's queue.
    #[must_use]
    pub(super) fn wake(&self) -> bool {
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            let next = match state {
                IDLE => QUEUED,
                RUNNING => WOKEN,
                // The store is made in these states, too, for the following poll must see what this
                // waker wrote before.
                QUEUED | WOKEN => state,
                _ => return false,
            };
            match self.0.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return state == IDLE,
                Err(now) => state = now,
            }
        }
    }

    /// Records that the worker has taken the task from its queue and will poll it.
    pub(super) fn start(&self) {
        let before = self.0.swap(RUNNING, Ordering::AcqRel);
        debug_assert_eq!(before, QUEUED);
    }

    /// Records that the poll has ended without a result. Returns true if the task was woken
    /// meanwhile, so that the caller must queue it again.
    #[must_use]
    pub(super) fn pause(&self) -> bool {
        if self.0.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return false;
        }
        // Only the worker that polls leaves the state WOKEN. Other threads can only repeat the
        // wake-up.
        self.0.swap(QUEUED, Ordering::AcqRel);
        true
    }

    /// Records that the poll has ended with a result.
    pub(super) fn finish(&self) {
        self.0.swap(DONE, Ordering::AcqRel);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::TaskState;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering};

    /// Two wakers each publish one item and wake; one worker polls when queued. Whatever the
    /// interleaving, the last poll has seen both items, and the task was never in two queues at the
    /// same time.
    #[test]
    fn no_wake_up_is_lost() {
        let mut model = loom::model::Builder::new();
        // Three threads: more preemptions than this multiply the run time without adding a new kind
        // of interleaving.
        model.preemption_bound = Some(3);
        model.check(|| {
            let state = Arc::new(TaskState::queued());
            let items = Arc::new(AtomicUsize::new(0));
            let queued = Arc::new(AtomicUsize::new(1));
            let wakers: Vec<_> = (0..2)
                .map(|_| {
                    let (state, items, queued) = (state.clone(), items.clone(), queued.clone());
                    loom::thread::spawn(move || {
                        items.fetch_add(1, Ordering::Relaxed);
                        if state.wake() {
                            assert_eq!(queued.fetch_add(1, Ordering::AcqRel), 0);
                        }
                    })
                })
                .collect();
            let mut seen = 0;
            let mut poll_all = || {
                while queued.load(Ordering::Acquire) == 1 {
                    queued.store(0, Ordering::Release);
                    state.start();
                    seen = items.load(Ordering::Relaxed);
                    if state.pause() {
                        assert_eq!(queued.fetch_add(1, Ordering::AcqRel), 0);
                    }
                }
            };
            poll_all();
            for waker in wakers {
                waker.join().unwrap();
            }
            poll_all();
            assert_eq!(seen, 2);
        });
    }
}
