//! The executor's platform on L4: the clock, and waking a worker by a notification.

use core::sync::atomic::{AtomicU64, Ordering};

use alloc::boxed::Box;
use l4::x2::ThreadId;
use l4::{extension, thread};
use rt::executor::{Instant, Platform};

/// The notification bit that wakes a worker.
pub(crate) const WAKE: u64 = 1;

/// The workers' threads.
pub struct L4Platform {
    /// The thread that drives each worker; nil until the worker has started.
    workers: Box<[AtomicU64]>,
}

impl L4Platform {
    pub(crate) fn new(workers: usize) -> L4Platform {
        L4Platform { workers: (0..workers).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Records which thread drives a worker.
    pub(crate) fn set_worker(&self, worker: usize, thread: ThreadId) {
        self.workers[worker].store(thread.raw(), Ordering::Release);
    }

    /// The thread that drives a worker; nil if the worker has not started.
    pub(crate) fn worker(&self, worker: usize) -> ThreadId {
        ThreadId::from_raw(self.workers[worker].load(Ordering::Acquire))
    }

    /// The worker that the calling thread drives; 0 if it drives none.
    pub(crate) fn current(&self) -> usize {
        if self.workers.len() == 1 {
            return 0;
        }
        let me = l4::utcb::my_global_id().raw();
        self.workers.iter().position(|worker| worker.load(Ordering::Relaxed) == me).unwrap_or(0)
    }
}

impl Platform for L4Platform {
    fn now(&self) -> Instant {
        thread::system_clock()
    }

    fn notify(&self, worker: usize) {
        let thread = self.worker(worker);
        // The calling worker needs no notification: it checks whether it is still asleep before it
        // waits (`worker.rs`).
        if !thread.is_nil() && thread != l4::utcb::my_global_id() {
            // The worker's thread exists as long as the server.
            let _ = extension::notify(thread, WAKE);
        }
    }
}
