//! Taking a message from a queue, before its rights are copied out.

use alloc::boxed::Box;

use super::entry::Object;
use super::message::Message;
use super::port::Port;
use super::queue::{Source, Taken};
use super::wait::{Ended, Interruption};
use super::{MsgErrorKind, Name, Space};
use crate::machine::Machine;

/// The reason why no message was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotReceived {
    Error(MsgErrorKind),
    /// The first message has this size, which does not fit. It is still in the queue.
    TooLarge(usize),
}

impl<M: Machine> Space<M> {
    /// The port or the port set that a name denotes.
    ///
    /// # Errors
    /// `ReceiveInvalidName`: the name denotes neither a receive right nor a port set.
    /// `ReceiveInSet`: the port is a member of a set.
    fn source(&self, name: Name) -> Result<Source<M>, MsgErrorKind> {
        let mut table = self.table.lock();
        let entry = table.get(name).ok_or(MsgErrorKind::ReceiveInvalidName)?;
        match &entry.object {
            Object::Receive(right) | Object::SendReceive(_, right) => {
                let state = right.port().state.lock();
                if state.membership.is_some() {
                    return Err(MsgErrorKind::ReceiveInSet);
                }
                Ok(Source::Port(right.port().clone(), state.version))
            }
            Object::Set(set) => Ok(Source::Set(set.clone())),
            _ => Err(MsgErrorKind::ReceiveInvalidName),
        }
    }

    /// Takes the first message of a port or a port set if `fits` accepts it. Waits while there is
    /// no message: until the time `until` in microseconds of the machine, without blocking if that
    /// is 0, for ever if there is none. If the future is dropped before its end, it has taken no
    /// message.
    ///
    /// # Errors
    /// `ReceiveInvalidName`, `ReceiveInSet`: what the name denotes. `ReceiveTimedOut`,
    /// `ReceiveInterrupted`: there was no message until the wait ended. `ReceivePortDied`,
    /// `ReceivePortChanged`: the receiver's task lost the right, or the port joined a set, during
    /// the wait. `TooLarge`: `fits` has refused the message, which stays in the queue.
    pub(super) async fn receive(
        &self,
        name: Name,
        fits: &(dyn Fn(&Message<M>) -> Result<(), usize> + Sync),
        until: Option<u64>,
        interruption: &Interruption,
    ) -> Result<Box<Message<M>>, NotReceived> {
        let source = self.source(name).map_err(NotReceived::Error)?;
        let taken = match source.take(fits) {
            Taken::Nothing if until == Some(0) => {
                return Err(NotReceived::Error(MsgErrorKind::ReceiveTimedOut));
            }
            Taken::Nothing => {
                let queue = match &source {
                    Source::Port(port, _) => &port.receivers,
                    Source::Set(set) => &set.receivers,
                };
                let looked = queue.wait_until(|| match source.take(fits) {
                    Taken::Nothing => None,
                    taken => Some(taken),
                });
                let waited = interruption.wait(self.ipc.machine(), until, looked).await;
                waited.map_err(|ended| {
                    NotReceived::Error(match ended {
                        Ended::TimedOut => MsgErrorKind::ReceiveTimedOut,
                        Ended::Interrupted => MsgErrorKind::ReceiveInterrupted,
                    })
                })?
            }
            taken => taken,
        };
        match taken {
            Taken::Message(message) => Ok(message),
            Taken::TooLarge(size) => {
                // The message may fit into the buffer of another receiver that waits.
                source.pass_on();
                Err(NotReceived::TooLarge(size))
            }
            Taken::Gone(error) => Err(NotReceived::Error(error)),
            // Not reached: `wait_until` does not end with `Nothing`.
            Taken::Nothing => Err(NotReceived::Error(MsgErrorKind::ReceiveTimedOut)),
        }
    }

    /// The name of the receive right of a message's port, and the protected payload that the
    /// message has instead of the name if the receiver has set one.
    pub(super) fn destination_name(&self, port: &Port<M>) -> (Name, Option<u64>) {
        let name = port.name_in(self.id).unwrap_or(Name::NULL);
        (name, port.state.lock().payload)
    }
}
