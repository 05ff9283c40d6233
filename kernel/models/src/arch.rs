//! What the modelled files ask of the machine.

use loom::hint::spin_loop;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering, fence};
use std::cell::RefCell;

loom::thread_local! {
    static REQUEST: RefCell<Option<Arc<Request>>> = RefCell::new(None);
}

/// What one processor asks of another, once, and waits for: a shoot-down.
#[derive(Debug)]
pub struct Request(AtomicU32);

impl Request {
    const NONE: u32 = 0;
    const MADE: u32 = 1;
    const SERVED: u32 = 2;

    /// None has been made.
    pub fn new() -> Self {
        Self(AtomicU32::new(Self::NONE))
    }

    /// `request`, when it is made, is the executing processor's to serve.
    pub fn expect(request: &Arc<Self>) {
        REQUEST.with(|expected| expected.replace(Some(Arc::clone(request))));
    }

    /// Makes the request, and waits until it is served.
    pub fn make_and_wait(&self) {
        self.0.store(Self::MADE, Ordering::Release);
        while self.0.load(Ordering::Acquire) != Self::SERVED {
            spin_loop();
        }
    }

    /// Serves the request if it has been made. Returns whether it is served.
    pub fn serve(&self) -> bool {
        if self.0.load(Ordering::Acquire) == Self::MADE {
            self.0.store(Self::SERVED, Ordering::Release);
        }
        self.0.load(Ordering::Relaxed) == Self::SERVED
    }
}

impl Default for Request {
    fn default() -> Self {
        Self::new()
    }
}

/// Serves what others ask of the executing processor.
pub fn serve_requests() {
    REQUEST.with(|request| request.borrow().as_ref().map(|request| request.serve()));
}

/// As the kernel's: what the processor's exchanges do by themselves.
pub fn fence_after_exchange() {
    fence(Ordering::SeqCst);
}

/// Calls `function`.
pub fn call_seldom(function: extern "C" fn(u64, u64), first: u64, second: u64) {
    function(first, second);
}
