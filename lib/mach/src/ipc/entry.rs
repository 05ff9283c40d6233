//! Entries of name tables: the rights that a name denotes, and the requests on them.

use alloc::sync::Arc;

use super::Name;
use super::notify::{AcceptRequest, Later, Notification};
use super::port::Port;
use super::right::{ReceiveRight, Right, SendOnceRight, SendRight};
use super::set::PortSet;
use super::space::PortType;
use crate::machine::Machine;

/// The most user references that a name can have to a right.
pub(super) const MOST_REFERENCES: u32 = u16::MAX as u32;

/// The rights that a name denotes. A task's send right and receive right to one port have one name;
/// each send-once right has a separate name.
pub(super) enum Object<M: Machine> {
    Send(SendRight<M>),
    Receive(ReceiveRight<M>),
    SendReceive(SendRight<M>, ReceiveRight<M>),
    SendOnce(SendOnceRight<M>),
    Set(Arc<PortSet<M>>),
    Dead,
}

impl<M: Machine> Object<M> {
    /// Whether the name has a send right.
    pub(super) fn sends(&self) -> bool {
        matches!(self, Self::Send(_) | Self::SendReceive(..))
    }

    /// The number of the port, if the name has a send right.
    pub(super) fn send_port(&self) -> Option<u64> {
        match self {
            Self::Send(right) | Self::SendReceive(right, _) => Some(right.port().id),
            _ => None,
        }
    }
}

/// The entry of one name in a task's table: what the name denotes, and the requests on it.
pub(super) struct Entry<M: Machine> {
    pub(super) object: Object<M>,
    /// User references: to the send right or the dead name; 1 for a send-once right, otherwise 0.
    pub(super) references: u32,
    /// The index of a dead-name request in the port's list of requests.
    pub(super) request: Option<u32>,
    /// The request about a message that was sent beyond the queue's limit with this name.
    pub(super) accept: Option<Arc<AcceptRequest<M>>>,
    /// How many references the message takes with it that is copied in at the moment.
    pub(super) claimed: u32,
    /// Whether the message that is now being copied in takes the receive or send-once right.
    pub(super) claimed_right: bool,
}

impl<M: Machine> Entry<M> {
    pub(super) fn new(object: Object<M>, references: u32) -> Self {
        Self { object, references, request: None, accept: None, claimed: 0, claimed_right: false }
    }

    /// The port of the rights; none for a port set or a dead name.
    pub(super) fn port(&self) -> Option<&Arc<Port<M>>> {
        match &self.object {
            Object::Send(right) => Some(right.port()),
            Object::Receive(right) | Object::SendReceive(_, right) => Some(right.port()),
            Object::SendOnce(right) => Some(right.port()),
            Object::Set(_) | Object::Dead => None,
        }
    }

    /// The port of the receive right, if the name has one.
    pub(super) fn receive_port(&self) -> Option<&Arc<Port<M>>> {
        match &self.object {
            Object::Receive(right) | Object::SendReceive(_, right) => Some(right.port()),
            _ => None,
        }
    }

    /// What the name denotes, and which requests there are on it, as `mach_port_type` tells it.
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

    /// Whether the name still denotes a send or send-once right to a port that has died.
    pub(super) fn has_died(&self) -> bool {
        match &self.object {
            Object::Send(right) => right.port().is_dead(),
            Object::SendOnce(right) => right.port().is_dead(),
            _ => false,
        }
    }

    /// Turns the right of a dead port into a dead name. A dead-name notification, if one was asked
    /// for, gives the name one more reference.
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

    /// Ends the requests on `name`, which goes away: port-deleted notifications are sent for them.
    /// A dead-name request to the port `silent` ends without a notification.
    pub(super) fn cancel_requests(
        &mut self,
        name: Name,
        silent: Option<&Arc<Port<M>>>,
        later: &mut Later<M>,
    ) {
        if let Some((request, port)) = self.request.take().zip(self.port()) {
            // If the port has died since, its end has sent the notification, and there is no
            // request.
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

    /// Hands the entry's rights to `later`, which ends them when no lock is held.
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
