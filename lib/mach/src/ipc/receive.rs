//! Receiving a message, before it is copied out.

use alloc::boxed::Box;

use super::entry::Object;
use super::message::Message;
use super::port::Port;
use super::queue::{Source, Taken};
use super::wait::{Ended, Interruption};
use super::{MsgErrorKind, Name, Space};
use crate::machine::Machine;

/// Why no message was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotReceived {
    Error(MsgErrorKind),
    /// The first message has this size, which is too large; it is still in the queue.
    TooLarge(usize),
}

impl<M: Machine> Space<M> {
    /// What a name stands for to a receiver.
    ///
    /// # Errors
    /// `ReceiveInvalidName`, `ReceiveInSet`.
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

    /// Takes the first message of a port or set that `fits`; waits while there is none. `until`:
    /// the time when the wait ends; 0 means that there is none. Dropped before its end, it has
    /// taken nothing.
    ///
    /// # Errors
    /// `ReceiveInvalidName`, `ReceiveInSet`, `ReceiveTimedOut`, `ReceiveInterrupted`,
    /// `ReceivePortDied`, `ReceivePortChanged`; or that the message does not fit.
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
                // Another receiver may have room for it.
                source.pass_on();
                Err(NotReceived::TooLarge(size))
            }
            Taken::Gone(error) => Err(NotReceived::Error(error)),
            // `wait_until` ends with something.
            Taken::Nothing => Err(NotReceived::Error(MsgErrorKind::ReceiveTimedOut)),
        }
    }

    /// The name of a message's port and what it says instead, if anything.
    pub(super) fn destination_name(&self, port: &Port<M>) -> (Name, Option<u64>) {
        let name = port.name_in(self.id).unwrap_or(Name::NULL);
        (name, port.state.lock().payload)
    }
}
