//! Notifications: messages from the library that tell a task what has become of a right.

use alloc::sync::Arc;
use alloc::vec::Vec;

use macadamia_sync::SpinLock;

use super::message::{Destination, Message};
use super::port::{Holder, Port};
use super::right::{ReceiveRight, Right, SendOnceRight};
use super::set::PortSet;
use super::{MsgErrorKind, Name, queue};
use crate::machine::Machine;

/// The content of a notification.
pub(super) enum Notification<M: Machine> {
    /// A name on which there was a request for a notification is gone.
    PortDeleted(Name),
    /// A message that was sent with this name beyond the queue's limit has left the queue.
    MessageAccepted(Name),
    /// The receive right would have ended, and comes with the notification instead. The right is
    /// always a receive right.
    PortDestroyed(Right<M>),
    /// There is no send right to the port any more. The number is the port's make-send count.
    NoSenders(u32),
    /// The send-once right by which the notification comes was dropped unused.
    SendOnce,
    /// The port of this name has died, and the task has one more reference to the name.
    DeadName(Name),
}

impl<M: Machine> Notification<M> {
    /// The number that the notification's message has as its id.
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

/// How many bytes each send-once right holds, so that a notification can be sent with it.
#[expect(non_snake_case, reason = "a constant that depends on the machine")]
pub(super) const fn BYTES<M: Machine>() -> usize {
    Message::<M>::BYTES
}

/// Sends a notification by a send-once right. Never blocks, and cannot fail because the right holds
/// the memory for the message. No lock may be held.
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

/// A sender's request to be told when a message has left the queue. The entry of the sender's name
/// and the message share it. The message ends the request when it leaves the queue, and the entry
/// ends it when the name goes away; the first of them takes the send-once right and sends the
/// notification.
pub(super) struct AcceptRequest<M: Machine>(SpinLock<Option<(Name, SendOnceRight<M>)>>);

impl<M: Machine> AcceptRequest<M> {
    pub(super) fn new(name: Name, right: SendOnceRight<M>) -> Arc<Self> {
        Arc::new(Self(SpinLock::new(Some((name, right)))))
    }

    /// Whether the request has not ended: the message is in the queue, and the sender's name
    /// exists.
    pub(super) fn is_open(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Records that the sender has renamed its right to the port.
    pub(super) fn rename(&self, name: Name) {
        if let Some((known, _)) = &mut *self.0.lock() {
            *known = name;
        }
    }

    /// Ends the request, and returns its name and its send-once right; `None`: it has ended before.
    pub(super) fn take(&self) -> Option<(Name, SendOnceRight<M>)> {
        self.0.lock().take()
    }
}

/// The message's share of an [`AcceptRequest`], which sends the notification when it is dropped.
pub(super) struct Acceptance<M: Machine>(pub(super) Arc<AcceptRequest<M>>);

impl<M: Machine> Drop for Acceptance<M> {
    fn drop(&mut self) {
        if let Some((name, right)) = self.0.take() {
            send(right, Notification::MessageAccepted(name));
        }
    }
}

/// Something that an operation does after it has released its locks. The kinds are done in this
/// order.
enum Deed<M: Machine> {
    /// The receivers of a port that has left its holder or joined a set are woken.
    Wake(Arc<Port<M>>),
    EndSet(Arc<PortSet<M>>),
    Notify(SendOnceRight<M>, Notification<M>),
    Drop(Right<M>),
}

/// What an operation has to drop, wake and send, but only after it has released its locks. An
/// operation declares this value before its lock guard, so that Rust drops the guard first. Most
/// operations leave it empty.
pub(super) struct Later<M: Machine>(Vec<Deed<M>>);

impl<M: Machine> Later<M> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Drops a right later.
    pub(super) fn drop_right(&mut self, right: Right<M>) {
        self.0.push(Deed::Drop(right));
    }

    /// Sends a notification later.
    pub(super) fn notify(&mut self, right: SendOnceRight<M>, notification: Notification<M>) {
        self.0.push(Deed::Notify(right, notification));
    }

    /// Wakes later the receivers of a port that has left its holder or joined a set.
    pub(super) fn wake_receivers(&mut self, port: &Arc<Port<M>>) {
        self.0.push(Deed::Wake(port.clone()));
    }

    /// Takes a receive right from its space, whose lock the caller holds, and drops it later.
    pub(super) fn end_receive_right(&mut self, right: ReceiveRight<M>) {
        self.take_receive_right(&right);
        self.drop_right(Right::Receive(right));
    }

    /// Takes a receive right from its space, whose lock the caller holds, and wakes the port's
    /// receivers later.
    pub(super) fn take_receive_right(&mut self, right: &ReceiveRight<M>) {
        right.port().change_holder(Holder::Transit);
        self.wake_receivers(right.port());
    }

    /// Ends a port set later.
    pub(super) fn end_set(&mut self, set: Arc<PortSet<M>>) {
        self.0.push(Deed::EndSet(set));
    }

    #[inline(never)]
    fn carry_out(&mut self) {
        let mut left = core::mem::take(&mut self.0);
        left.sort_by_key(Deed::order);
        left.into_iter().for_each(Deed::carry_out);
    }
}

impl<M: Machine> Drop for Later<M> {
    #[inline]
    fn drop(&mut self) {
        if !self.0.is_empty() {
            self.carry_out();
        }
    }
}

impl<M: Machine> Deed<M> {
    fn order(&self) -> u8 {
        match self {
            Self::Wake(_) => 0,
            Self::EndSet(_) => 1,
            Self::Notify(..) => 2,
            Self::Drop(_) => 3,
        }
    }

    fn carry_out(self) {
        match self {
            Self::Wake(port) => port.wake_all_receivers(MsgErrorKind::ReceivePortDied),
            Self::EndSet(set) => set.kill(),
            Self::Notify(right, notification) => send(right, notification),
            Self::Drop(right) => drop(right),
        }
    }
}
