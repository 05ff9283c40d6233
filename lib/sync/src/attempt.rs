//! Polling a future once, without a task: an attempt.
//!
//! The future is dropped if it is not ready. So what cannot be taken back must not begin in an
//! attempt: a future that would begin such a thing asks [`is_attempt`] first, and is then pending.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

/// The data of the waker of attempts: no other waker has this address.
static MARK: u8 = 0;
static TABLE: RawWakerVTable = RawWakerVTable::new(clone, nothing, nothing, nothing);

fn clone(data: *const ()) -> RawWaker {
    RawWaker::new(data, &TABLE)
}

fn nothing(_: *const ()) {}

#[allow(unsafe_code, reason = "a waker that can be recognised")]
// SAFETY: the functions of the table do nothing, so they keep the contract of RawWaker with any
// data.
static WAKER: Waker = unsafe { Waker::new((&raw const MARK).cast(), &TABLE) };

/// The result of a future that is ready when it is polled for the first time; `None` if it would
/// block. The future is then dropped, and is not woken before.
pub fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(&WAKER)) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Whether this poll is an attempt: if the future is not ready, it will be dropped.
#[inline]
pub fn is_attempt(context: &Context<'_>) -> bool {
    core::ptr::eq(context.waker().data(), (&raw const MARK).cast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::poll_fn;

    #[test]
    fn an_attempt_is_told_from_other_polls() {
        let asks = || poll_fn(|context| Poll::Ready(is_attempt(context)));
        assert_eq!(poll_once(asks()), Some(true));
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(pin!(asks()).poll(&mut context), Poll::Ready(false));
        let clone = poll_fn(|context| Poll::Ready(context.waker().clone()));
        let waker = poll_once(clone).expect("ready");
        assert!(is_attempt(&Context::from_waker(&waker)));
        waker.wake();
        assert_eq!(poll_once(core::future::pending::<()>()), None);
    }
}
