//! What a name denotes.

use alloc::sync::Arc;

use super::Name;
use super::notify::{AcceptRequest, Later, Notification};
use super::port::Port;
use super::right::{ReceiveRight, Right, SendOnceRight, SendRight};
use super::set::PortSet;
use super::space::PortType;
use crate::machine::Machine;

/// The most user references that a right can have.
pub(super) const MOST_REFERENCES: u32 = u16::MAX as u32;

/// The rights of a name. A task's send right and receive right to one port have one name; each
/// send-once right has its own.
pub(super) enum Object<M: Machine> {
    Send(SendRight<M>),
    Receive(ReceiveRight<M>),
    SendReceive(SendRight<M>, ReceiveRight<M>),
    SendOnce(SendOnceRight<M>),
    Set(Arc<PortSet<M>>),
    Dead,
}

impl<M: Machine> Object<M> {
    /// The number of the port to which there is a send right.
    pub(super) fn send_port(&self) -> Option<u64> {
        match self {
            Self::Send(right) | Self::SendReceive(right, _) => Some(right.port().id),
            _ => None,
        }
    }
}

/// A name's entry in a task's table.
pub(super) struct Entry<M: Machine> {
    pub(super) object: Object<M>,
    /// User references to the send right or the dead name; of a send-once right 1, else 0.
    pub(super) references: u32,
    /// The place of a request for dead-name notification in the port's table.
    pub(super) request: Option<u32>,
    /// A message that was sent beyond the queue's limit.
    pub(super) accept: Option<Arc<AcceptRequest<M>>>,
    /// References that a message that is being copied in takes with it.
    pub(super) claimed: u32,
    /// That message takes the receive right or the send-once right.
    pub(super) claimed_right: bool,
}

impl<M: Machine> Entry<M> {
    pub(super) fn new(object: Object<M>, references: u32) -> Self {
        Self { object, references, request: None, accept: None, claimed: 0, claimed_right: false }
    }

    /// The port of the rights.
    pub(super) fn port(&self) -> Option<&Arc<Port<M>>> {
        match &self.object {
            Object::Send(right) => Some(right.port()),
            Object::Receive(right) | Object::SendReceive(_, right) => Some(right.port()),
            Object::SendOnce(right) => Some(right.port()),
            Object::Set(_) | Object::Dead => None,
        }
    }

    /// The receive right's port.
    pub(super) fn receive_port(&self) -> Option<&Arc<Port<M>>> {
        match &self.object {
            Object::Receive(right) | Object::SendReceive(_, right) => Some(right.port()),
            _ => None,
        }
    }

    /// The kinds of the rights, and the requests on the name.
    pub(super) fn kind(&self) -> PortType {
        let mut kind = match &self.object {
            Object::Send(_) => PortType::SEND,
            Object::Receive(_) => PortType::RECEIVE,
            Object::SendReceive(..) => PortType::SEND | PortType::RECEIVE,
            Object::SendOnce(_) => PortType::SEND_ONCE,
            Object::Set(_) => PortType::PORT_SET,
            Object::Dead => PortType::DEAD_NAME,
        };
        kind.set(PortType::DEAD_NAME_REQUEST, self.request.is_some());
        kind.set(PortType::ACCEPT_REQUEST, self.accept.as_ref().is_some_and(|accept| accept.is_open()));
        kind
    }

    /// Whether the entry's port has died since the entry was last looked at.
    pub(super) fn has_died(&self) -> bool {
        match &self.object {
            Object::Send(right) => right.port().is_dead(),
            Object::SendOnce(right) => right.port().is_dead(),
            _ => false,
        }
    }

    /// Makes the entry of a dead port's right a dead name. The notification that was asked for
    /// comes with a reference.
    pub(super) fn die(&mut self) {
        self.object = Object::Dead;
        if self.request.take().is_some() {
            self.references = (self.references + 1).min(MOST_REFERENCES);
        }
        self.accept = None;
        if core::mem::take(&mut self.claimed_right) {
            self.claimed += 1;
        }
    }

    /// Ends the requests on a name that goes away. A request to be told by `silent` ends without a
    /// notification.
    pub(super) fn cancel_requests(
        &mut self,
        name: Name,
        silent: Option<&Arc<Port<M>>>,
        later: &mut Later<M>,
    ) {
        if let Some((request, port)) = self.request.take().zip(self.port()) {
            // A port that has died meanwhile has sent its notifications.
            let cancelled = port.take_request(request);
            if let Some(cancelled) = cancelled {
                if silent.is_some_and(|silent| Arc::ptr_eq(silent, cancelled.notify.port())) {
                    cancelled.notify.use_up();
                } else {
                    later.notify(cancelled.notify, Notification::PortDeleted(name));
                }
            }
        }
        if let Some((name, right)) = self.accept.take().and_then(|accept| accept.take()) {
            later.notify(right, Notification::PortDeleted(name));
        }
    }

    /// Ends the entry's rights when no lock is held.
    pub(super) fn end(self, later: &mut Later<M>) {
        match self.object {
            Object::Send(right) => later.drop_right(Right::Send(right)),
            Object::Receive(right) => later.end_receive_right(right),
            Object::SendReceive(send, right) => {
                later.drop_right(Right::Send(send));
                later.end_receive_right(right);
            }
            Object::SendOnce(right) => later.drop_right(Right::SendOnce(right)),
            Object::Set(set) => later.end_set(set),
            Object::Dead => {}
        }
    }
}
