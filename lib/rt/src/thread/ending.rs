//! Decides whether a thread or the owner of its handle frees the thread: the one that is done last.

use l4::x2::ThreadId;

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

/// The thread runs, and its handle exists.
const RUNNING: u64 = 0;
/// The thread has ended.
const ENDED: u64 = 1;
/// The thread's handle was dropped.
const ALONE: u64 = 2;

/// The state: one of the three values above, or the id of the thread that waits for the end. Ids
/// are larger.
pub(super) struct Ending(AtomicU64);

/// Which thread has to learn that the thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// No thread waits yet: the handle still exists.
    None,
    /// A thread that waits for a message.
    Joiner(ThreadId),
    /// No thread will wait: the handle was dropped.
    Alone,
}

impl Ending {
    pub(super) fn new() -> Ending {
        Ending(AtomicU64::new(RUNNING))
    }

    /// Records that the thread has ended. From now on the owner of the handle, if it exists, owns
    /// what the thread has written.
    pub(super) fn end_thread(&self) -> Told {
        // Release: a thread that sees the end sees what this thread has written. Acquire: this
        // thread sees what the handle's owner did.
        match self.0.swap(ENDED, Ordering::AcqRel) {
            RUNNING => Told::None,
            ALONE => Told::Alone,
            joiner => Told::Joiner(ThreadId::from_raw(joiner)),
        }
    }

    /// Waits for the end of the thread; `me` is the caller. `wait` blocks, but may return early.
    pub(super) fn join(&self, me: ThreadId, mut wait: impl FnMut()) {
        if self.0.compare_exchange(RUNNING, me.raw(), Ordering::AcqRel, Ordering::Acquire).is_ok() {
            wait();
            while self.0.load(Ordering::Acquire) != ENDED {
                wait();
            }
        }
    }

    /// Records that the handle was dropped. Returns whether the thread has ended, so that the
    /// caller has to free it.
    pub(super) fn drop_handle(&self) -> bool {
        self.0.compare_exchange(RUNNING, ALONE, Ordering::AcqRel, Ordering::Acquire).is_err()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ME: ThreadId = ThreadId::from_raw(0x1234_0001);

    #[test]
    fn one_of_thread_and_handle_sees_that_the_other_is_done() {
        let ending = Ending::new();
        assert_eq!(ending.end_thread(), Told::None);
        ending.join(ME, || panic!("it has ended already"));
        assert!(ending.drop_handle());

        let ending = Ending::new();
        assert!(!ending.drop_handle());
        assert_eq!(ending.end_thread(), Told::Alone);

        let ending = Ending::new();
        let mut told = Vec::new();
        ending.join(ME, || {
            if told.len() < 2 {
                told.push(Told::None);
            } else {
                told.push(ending.end_thread());
            }
        });
        assert_eq!(told, [Told::None, Told::None, Told::Joiner(ME)], "early messages do not end the wait");
    }
}

#[cfg(all(test, loom))]
#[allow(unsafe_code, reason = "loom's cells say who touches them")]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::{Arc, Notify};
    use loom::thread;

    struct Shared {
        ending: Ending,
        result: UnsafeCell<u32>,
        /// The message by which the thread tells that it has ended.
        message: Notify,
    }

    fn shared() -> (Arc<Shared>, thread::JoinHandle<bool>) {
        let shared =
            Arc::new(Shared { ending: Ending::new(), result: UnsafeCell::new(0), message: Notify::new() });
        let of_thread = shared.clone();
        let ends = thread::spawn(move || {
            of_thread.result.with_mut(|result| unsafe { *result = 7 });
            match of_thread.ending.end_thread() {
                Told::Joiner(_) => of_thread.message.notify(),
                Told::Alone => of_thread.result.with_mut(|result| unsafe { *result = 0 }),
                Told::None => {}
            }
            false
        });
        (shared, ends)
    }

    /// A thread that joins sees the result, and never waits for ever.
    #[test]
    fn loom_a_joiner_sees_the_result() {
        loom::model(|| {
            let (shared, ends) = shared();
            shared.ending.join(ThreadId::from_raw(0x1234_0001), || shared.message.wait());
            assert_eq!(shared.result.with(|result| unsafe { *result }), 7);
            ends.join().unwrap();
        });
    }

    /// If the handle is dropped, the thread's result is dropped once, by either side.
    #[test]
    fn loom_a_result_that_is_not_wanted_is_dropped_once() {
        loom::model(|| {
            let (shared, ends) = shared();
            if shared.ending.drop_handle() {
                shared.result.with_mut(|result| {
                    assert_eq!(unsafe { *result }, 7);
                    unsafe { *result = 0 };
                });
            }
            ends.join().unwrap();
            assert_eq!(shared.result.with(|result| unsafe { *result }), 0);
        });
    }
}
