//! Sending a message whose rights have been copied in.

use alloc::boxed::Box;

use super::message::{Destination, Message};
use super::notify::{AcceptRequest, Acceptance};
use super::queue::{Entry, Pushed, Sending, push};
use super::wait::{Ended, Interruption};
use super::{MsgErrorKind, Name, Space};
use crate::machine::Machine;

/// The reason why a message was not sent, and the message.
pub(super) type NotSent<M> = (MsgErrorKind, Box<Message<M>>);

impl<M: Machine> Space<M> {
    /// Sends a message, and waits while the queue is full: until the time `until` in microseconds
    /// of the machine, without blocking if that is 0, for ever if there is none. A message to a
    /// port that has died counts as sent.
    ///
    /// # Errors
    /// The message comes back. `SendTimedOut`: the queue was full until the time.
    /// `SendInterrupted`: `interruption` has ended the wait.
    pub(super) async fn send(
        &self,
        message: Box<Message<M>>,
        until: Option<u64>,
        interruption: &Interruption,
    ) -> Result<(), NotSent<M>> {
        let Some(port) = message.port().cloned() else {
            self.ipc.reuse(message);
            return Ok(());
        };
        if let Some(kernel) = &port.kernel {
            return self.serve(kernel, message, interruption).await;
        }
        let entry = match message.destination {
            Destination::SendOnce(_) => Entry::Always,
            _ => Entry::WithRoom,
        };
        let message = match push(&port, message, entry) {
            Pushed::Sent => return Ok(()),
            Pushed::Full(message) if until == Some(0) => return Err((MsgErrorKind::SendTimedOut, message)),
            Pushed::Full(message) => message,
        };
        let mut sending = Sending::new(port, message);
        let ended = match interruption.wait(self.ipc.machine(), until, &mut sending).await {
            Ok(()) => return Ok(()),
            Err(ended) => ended,
        };
        match sending.give_up() {
            None => Ok(()),
            Some(message) => Err((
                match ended {
                    Ended::TimedOut => MsgErrorKind::SendTimedOut,
                    Ended::Interrupted => MsgErrorKind::SendInterrupted,
                },
                message,
            )),
        }
    }

    /// Puts a message into a queue that is full, and asks for a notification when it has left the
    /// queue, to the port of the receive right `notify`. Each name can have one such message in a
    /// queue. Never blocks.
    ///
    /// # Errors
    /// The message comes back. `SendNotifyInProgress`: the name has such a message already.
    /// `SendInvalidNotify`: `notify` is no receive right. `SendNoBuffer`: no memory for the
    /// request.
    pub(super) fn send_beyond_limit(
        &self,
        mut message: Box<Message<M>>,
        notify: Name,
    ) -> Result<(), NotSent<M>> {
        let Some(port) = message.port().cloned() else { return Ok(()) };
        let right = match self.notify_right(notify) {
            Ok(right) => right,
            Err(crate::KernError::ResourceShortage) => return Err((MsgErrorKind::SendNoBuffer, message)),
            Err(_) => return Err((MsgErrorKind::SendInvalidNotify, message)),
        };
        {
            let mut table = self.table.lock();
            // The message may have taken the task's only right: then the notification has the null
            // name.
            let name = table.name_of(&port).unwrap_or(Name::NULL);
            let entry = table.get(name);
            if entry.as_ref().is_some_and(|entry| entry.accept.as_ref().is_some_and(|open| open.is_open())) {
                drop(table);
                right.use_up();
                return Err((MsgErrorKind::SendNotifyInProgress, message));
            }
            let request = AcceptRequest::new(name, right);
            if let Some(entry) = entry {
                entry.accept = Some(request.clone());
            }
            message.accepted = Some(Acceptance(request));
        }
        // With `Entry::Always` no message comes back.
        let _ = push(&port, message, Entry::Always);
        Ok(())
    }
}
