//! [`MaybeReady`]: the result of an operation that usually completes without blocking.

use alloc::boxed::Box;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use macadamia_sync::is_attempt;

/// A boxed future that can move between processors.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The result of a trait object's operation: a value, or a future if the operation blocks. The
/// caller awaits it in both cases.
///
/// A future is polled by a task only: an attempt to do a call without a task
/// ([`poll_once`](crate::sync::poll_once)) does not begin it, since it would have to be begun a
/// second time. A [`local`](MaybeReady::local) future can be begun again.
#[must_use = "it may be a future that has to be awaited"]
pub enum MaybeReady<'a, T> {
    /// The result, which is known already. It is `None` after it was taken.
    Ready(Option<T>),
    /// The future has to be awaited.
    Pending(BoxFuture<'a, T>),
    /// The future has to be awaited. Attempts poll it, too.
    Local(BoxFuture<'a, T>),
}

impl<'a, T> MaybeReady<'a, T> {
    /// Makes a result that is known already.
    pub fn ready(value: T) -> Self {
        MaybeReady::Ready(Some(value))
    }

    /// Makes a result that has to be awaited.
    pub fn pending(future: impl Future<Output = T> + Send + 'a) -> Self {
        MaybeReady::Pending(Box::pin(future))
    }

    /// Makes a result that has to be awaited. The future is mostly ready when it is polled, and may
    /// be dropped at any point and begun again: what it has done by then is done again, or is as if
    /// it had not been.
    pub fn local(future: impl Future<Output = T> + Send + 'a) -> Self {
        MaybeReady::Local(Box::pin(future))
    }
}

impl<T> Unpin for MaybeReady<'_, T> {}

impl<T> Future for MaybeReady<'_, T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match self.get_mut() {
            MaybeReady::Ready(value) => Poll::Ready(value.take().expect("a result is taken once")),
            MaybeReady::Pending(_) if is_attempt(cx) => Poll::Pending,
            MaybeReady::Pending(future) | MaybeReady::Local(future) => future.as_mut().poll(cx),
        }
    }
}
