//! Closing streams that wait until the peer has what was sent (SO_LINGER of socket(7)).

use super::InetSocket;
use crate::file::{FileObject, OpenFile};
use crate::poll::{Readiness, until_ready_or_deadline};
use crate::vfs::Caller;
use crate::{AttemptError, Environment};
use alloc::sync::Arc;
use core::time::Duration;

/// Gives back a file that a descriptor referred to. If that was the last reference to a stream with
/// SO_LINGER, waits until the peer has acknowledged what was sent and its end, or until the time of
/// the option has passed. After that, or if the future is dropped, the connection goes on without
/// the program.
pub async fn close_and_linger(caller: &Caller<'_>, file: Arc<OpenFile>) {
    let Some(socket) = file.object_as::<InetSocket>() else { return };
    let Some(seconds) = socket.options().linger.filter(|_| socket.waits_at_close()) else {
        return;
    };
    // What waits for the file in another thread, and other descriptors, keep it open.
    let Some(file) = Arc::into_inner(file) else { return };
    drop(file);
    let environment = &*caller.vfs.environment;
    socket.linger(environment, environment.monotonic() + Duration::from_secs(seconds.into())).await;
}

impl InetSocket {
    /// Closes the connection, and waits until the peer has acknowledged all, or until `deadline`.
    async fn linger(&self, environment: &dyn Environment, deadline: Duration) {
        if !self.network.with(|stack| stack.begin_close(self.id)) {
            return;
        }
        let acknowledged = until_ready_or_deadline(&self.queue, Readiness::ALL, environment, |_| match self
            .network
            .with(|stack| stack.is_closing(self.id))
        {
            true => Err((AttemptError::WouldBlock, Some(deadline))),
            false => Ok(()),
        });
        // What has not been acknowledged in time is still sent.
        let _ = acknowledged.await;
    }
}
