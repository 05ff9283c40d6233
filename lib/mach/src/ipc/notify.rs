//! Messages from the library itself, which say what has become of a right.

use alloc::sync::Arc;
use alloc::vec::Vec;

use macadamia_sync::SpinLock;

use super::message::{Destination, Message};
use super::port::{Holder, Port};
use super::right::{ReceiveRight, Right, SendOnceRight};
use super::set::PortSet;
use super::{Name, queue};
use crate::machine::Machine;

/// What a notification says.
pub(super) enum Notification<M: Machine> {
    /// A name with a request for dead-name notification is gone.
    PortDeleted(Name),
    /// A message that was sent beyond the queue's limit has left the queue.
    MessageAccepted(Name),
    /// The receive right would have ended: here it is. (Never another right.)
    PortDestroyed(Right<M>),
    /// The last send right is gone; the make-send count.
    NoSenders(u32),
    /// The send-once right by which this comes was not used.
    SendOnce,
    /// The port has died; the task has one more reference to the name.
    DeadName(Name),
}

impl<M: Machine> Notification<M> {
    /// Mach's number of the message.
    pub(super) fn id(&self) -> i32 {
        match self {
            Self::PortDeleted(_) => 65,
            Self::MessageAccepted(_) => 66,
            Self::PortDestroyed(_) => 69,
            Self::NoSenders(_) => 70,
            Self::SendOnce => 71,
            Self::DeadName(_) => 72,
        }
    }
}

/// Bytes that each send-once right holds for a notification.
#[expect(non_snake_case, reason = "a constant that depends on the machine")]
pub(super) const fn BYTES<M: Machine>() -> usize {
    Message::<M>::BYTES
}

/// Sends a notification. Never blocks and cannot fail: the right has the memory.
pub(super) fn send<M: Machine>(right: SendOnceRight<M>, notification: Notification<M>) {
    let port = right.port().clone();
    let mut message = port.ipc.reserved_message();
    message.id = notification.id();
    message.complex = matches!(notification, Notification::PortDestroyed(_));
    message.moves_receive_right = message.complex;
    message.notification = Some(notification);
    message.destination = Destination::SendOnce(right);
    queue::deliver(&port, message);
}

/// A request of a sender to be told when a message has left the queue. The sender's name for the
/// port and the message both refer to it; the first that ends it takes the right.
pub(super) struct AcceptRequest<M: Machine>(SpinLock<Option<(Name, SendOnceRight<M>)>>);

impl<M: Machine> AcceptRequest<M> {
    pub(super) fn new(name: Name, right: SendOnceRight<M>) -> Arc<Self> {
        Arc::new(Self(SpinLock::new(Some((name, right)))))
    }

    /// Whether the message is still in the queue, and the name is still there.
    pub(super) fn is_open(&self) -> bool {
        self.0.lock().is_some()
    }

    /// The name is another now.
    pub(super) fn rename(&self, name: Name) {
        if let Some((known, _)) = &mut *self.0.lock() {
            *known = name;
        }
    }

    /// Takes the name and the right to tell with.
    pub(super) fn take(&self) -> Option<(Name, SendOnceRight<M>)> {
        self.0.lock().take()
    }
}

/// The message's end of an [`AcceptRequest`]: dropped when the message has left the queue.
pub(super) struct Acceptance<M: Machine>(pub(super) Arc<AcceptRequest<M>>);

impl<M: Machine> Drop for Acceptance<M> {
    fn drop(&mut self) {
        if let Some((name, right)) = self.0.take() {
            send(right, Notification::MessageAccepted(name));
        }
    }
}

/// What an operation does when it holds no lock any more. Declared before the guard, it is dropped
/// after it.
pub(super) struct Later<M: Machine> {
    rights: Vec<Right<M>>,
    notifications: Vec<(SendOnceRight<M>, Notification<M>)>,
    changed: Vec<Arc<Port<M>>>,
    sets: Vec<Arc<PortSet<M>>>,
}

impl<M: Machine> Later<M> {
    pub(super) const fn new() -> Self {
        Self { rights: Vec::new(), notifications: Vec::new(), changed: Vec::new(), sets: Vec::new() }
    }

    /// Drops a right.
    pub(super) fn drop_right(&mut self, right: Right<M>) {
        self.rights.push(right);
    }

    /// Sends a notification.
    pub(super) fn notify(&mut self, right: SendOnceRight<M>, notification: Notification<M>) {
        self.notifications.push((right, notification));
    }

    /// Wakes the receivers of a port that has left its holder or joined a set.
    pub(super) fn wake_receivers(&mut self, port: &Arc<Port<M>>) {
        self.changed.push(port.clone());
    }

    /// Takes a receive right from its space, to be dropped.
    pub(super) fn end_receive_right(&mut self, right: ReceiveRight<M>) {
        self.take_receive_right(&right);
        self.drop_right(Right::Receive(right));
    }

    /// Takes a receive right from its space, whose lock is held.
    pub(super) fn take_receive_right(&mut self, right: &ReceiveRight<M>) {
        right.port().change_holder(Holder::Transit);
        self.wake_receivers(right.port());
    }

    /// Ends a port set.
    pub(super) fn end_set(&mut self, set: Arc<PortSet<M>>) {
        self.sets.push(set);
    }
}

impl<M: Machine> Drop for Later<M> {
    fn drop(&mut self) {
        self.changed.drain(..).for_each(|port| port.receivers.wake_all());
        self.sets.drain(..).for_each(|set| set.kill());
        for (right, notification) in self.notifications.drain(..) {
            send(right, notification);
        }
        self.rights.clear();
    }
}
