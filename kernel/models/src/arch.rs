//! The operations of the machine that the modelled files use.

use loom::sync::atomic::{Ordering, fence};
use std::cell::RefCell;
use std::rc::Rc;

type Serve = Rc<dyn Fn()>;

loom::thread_local! {
    static SERVE: RefCell<Option<Serve>> = RefCell::new(None);
}

/// Sets how the executing processor serves requests of other processors.
pub fn serve_by(serve: impl Fn() + 'static) {
    SERVE.with(|known| known.replace(Some(Rc::new(serve))));
}

/// Serves requests that other processors have made of the executing one.
pub fn serve_requests() {
    let serve = SERVE.with(|known| known.borrow().clone());
    if let Some(serve) = serve {
        serve();
    }
}

/// A full fence. The kernel needs none here: an exchange of the processor is also a full fence.
pub fn fence_after_exchange() {
    fence(Ordering::SeqCst);
}

/// Calls `function`.
pub fn call_seldom(function: extern "C" fn(u64, u64), first: u64, second: u64) {
    function(first, second);
}
