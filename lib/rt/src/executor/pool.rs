//! Room for requests, reused: a server's request that completes at its first poll costs no
//! allocation.

use super::OutOfMemory;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use spin::Mutex;

type Room<F> = Pin<Box<Option<F>>>;

/// Free rooms for futures of one type (a server's request handler). A room is made on demand and
/// kept for reuse.
pub struct RequestPool<F>(Arc<Mutex<Vec<Room<F>>>>);

impl<F> Clone for RequestPool<F> {
    fn clone(&self) -> Self {
        RequestPool(self.0.clone())
    }
}

impl<F: Future> RequestPool<F> {
    /// A pool with `rooms` rooms made beforehand.
    pub fn new(rooms: usize) -> Self {
        RequestPool(Arc::new(Mutex::new((0..rooms).map(|_| Box::pin(None)).collect())))
    }

    /// Puts `future` into a room. Poll the slot immediately, with a no-op waker if need be: if it
    /// is ready, the request is answered and the room is free again; if not, hand the slot to
    /// [`super::Executor::spawn`].
    ///
    /// # Errors
    /// [`OutOfMemory`] if the list of free rooms cannot take this one back later.
    pub fn enter(&self, future: F) -> Result<RequestSlot<F>, OutOfMemory> {
        let mut free = self.0.lock();
        let mut room = match free.pop() {
            Some(room) => room,
            None => {
                let rooms = Arc::strong_count(&self.0);
                free.try_reserve(rooms).map_err(|_| OutOfMemory)?;
                Box::pin(None)
            }
        };
        drop(free);
        room.set(Some(future));
        Ok(RequestSlot { room: Some(room), pool: self.clone() })
    }

    /// The number of free rooms.
    pub fn free(&self) -> usize {
        self.0.lock().len()
    }
}

/// A request in its room; a future with the request's result. The room returns to the pool when
/// this is dropped.
pub struct RequestSlot<F> {
    /// `None` only while being dropped.
    room: Option<Room<F>>,
    pool: RequestPool<F>,
}

impl<F: Future> Future for RequestSlot<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = self.room.as_mut().and_then(|room| room.as_mut().as_pin_mut()) else {
            return Poll::Pending;
        };
        future.poll(context)
    }
}

impl<F> Drop for RequestSlot<F> {
    fn drop(&mut self) {
        if let Some(mut room) = self.room.take() {
            room.set(None);
            self.pool.0.lock().push(room);
        }
    }
}
