//! [`Answer`]: the result of an operation that usually completes without blocking.

use alloc::boxed::Box;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// A boxed future that can move between processors.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a trait object's operation returns: the result itself, or a future where it has to wait.
/// Await it either way.
///
/// The operation has begun when the method returns; dropping a `Later` cancels it.
#[must_use = "an answer may be a future that has to be awaited"]
pub enum Answer<'a, T> {
    /// The result is known already. (`None` after the result was taken.)
    Now(Option<T>),
    /// The future has to be awaited.
    Later(BoxFuture<'a, T>),
}

impl<'a, T> Answer<'a, T> {
    /// An answer that is known already.
    pub fn now(value: T) -> Self {
        Answer::Now(Some(value))
    }

    /// An answer that has to be awaited.
    pub fn later(future: impl Future<Output = T> + Send + 'a) -> Self {
        Answer::Later(Box::pin(future))
    }
}

impl<T> Unpin for Answer<'_, T> {}

impl<T> Future for Answer<'_, T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match self.get_mut() {
            Answer::Now(value) => Poll::Ready(value.take().expect("an answer is polled once")),
            Answer::Later(future) => future.as_mut().poll(cx),
        }
    }
}
