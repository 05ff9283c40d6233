//! Support for this crate's tests: futures that are polled step by step, and a blocking executor.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

struct Flag(AtomicBool, std::thread::Thread);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
        self.1.unpark();
    }
}

/// A future that a test polls step by step.
pub(crate) struct Task<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    flag: Arc<Flag>,
}

impl<'a, T> Task<'a, T> {
    pub(crate) fn new(future: impl Future<Output = T> + 'a) -> Self {
        Self {
            future: Box::pin(future),
            flag: Arc::new(Flag(AtomicBool::new(false), std::thread::current())),
        }
    }

    pub(crate) fn poll(&mut self) -> Poll<T> {
        let waker = Waker::from(self.flag.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// Whether the task has been woken since the last call of this function.
    pub(crate) fn woken(&self) -> bool {
        self.flag.0.swap(false, Ordering::SeqCst)
    }
}

/// Runs a future to its end on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut task = Task::new(future);
    loop {
        if let Poll::Ready(value) = task.poll() {
            return value;
        }
        while !task.woken() {
            std::thread::park();
        }
    }
}
