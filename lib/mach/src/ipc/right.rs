//! Rights as values: while one exists, its port counts it.

use alloc::sync::Arc;

use super::notify::{self, Notification};
use super::port::{Holder, Port, PortState};
use crate::machine::Machine;

/// A right to send any number of messages.
pub struct SendRight<M: Machine>(Arc<Port<M>>);

impl<M: Machine> SendRight<M> {
    /// Makes a send right for the holder of the receive right to give away (Mach's make-send).
    /// `None`: the port is dead.
    pub(super) fn make(port: &Arc<Port<M>>) -> Option<Self> {
        let mut state = port.state.lock();
        if state.is_dead() {
            return None;
        }
        state.make_send_count = state.make_send_count.wrapping_add(1);
        state.send_rights += 1;
        Some(Self(port.clone()))
    }

    /// Makes another send right to the port. `None`: the port is dead.
    pub fn copy(&self) -> Option<Self> {
        let mut state = self.0.state.lock();
        if state.is_dead() {
            return None;
        }
        state.send_rights += 1;
        Some(Self(self.0.clone()))
    }

    pub(super) fn port(&self) -> &Arc<Port<M>> {
        &self.0
    }

    /// Whether both rights are rights to one port.
    pub fn is_of_same_port(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<M: Machine> Drop for SendRight<M> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.send_rights -= 1;
        if state.send_rights > 0 {
            return;
        }
        // A dead port has no request, so its last send right sends nothing.
        let request = state.no_senders.take();
        let count = state.make_send_count;
        drop(state);
        if let Some(right) = request {
            notify::send(right, Notification::NoSenders(count));
        }
    }
}

/// A right to send one message. If it is dropped unused, the port gets a send-once notification.
pub struct SendOnceRight<M: Machine> {
    /// The port, or `None` after the right was used up.
    port: Option<Arc<Port<M>>>,
}

impl<M: Machine> SendOnceRight<M> {
    /// Makes a send-once right. It holds the memory for one notification, which the port's account
    /// pays for.
    ///
    /// # Errors
    /// The account or the machine has no memory for a notification.
    #[inline]
    pub(super) fn make(port: &Arc<Port<M>>) -> Result<Self, OutOfMemory> {
        if !port.account.take(notify::BYTES::<M>()) {
            return Err(OutOfMemory);
        }
        port.state.lock().send_once_rights += 1;
        Ok(Self { port: Some(port.clone()) })
    }

    pub(super) fn port(&self) -> &Arc<Port<M>> {
        // Only `drop` and `use_up` take the port out, and each of them ends the right.
        self.port.as_ref().expect("a right that is used has no owner")
    }

    /// Does what [`use_up`](Self::use_up) does. The caller holds the lock of the right's port,
    /// which protects `state`.
    #[inline]
    pub(super) fn use_up_locked(mut self, state: &mut PortState<M>) {
        if let Some(port) = self.port.take() {
            state.send_once_rights -= 1;
            port.account.give(notify::BYTES::<M>());
        }
    }

    fn release(port: &Arc<Port<M>>) {
        port.state.lock().send_once_rights -= 1;
        port.account.give(notify::BYTES::<M>());
    }

    /// Ends the right without a send-once notification: a message has used it, or a call has failed
    /// and gives it up.
    pub(super) fn use_up(mut self) {
        if let Some(port) = self.port.take() {
            Self::release(&port);
        }
    }
}

impl<M: Machine> Drop for SendOnceRight<M> {
    fn drop(&mut self) {
        let Some(port) = self.port.take() else { return };
        if port.is_dead() {
            Self::release(&port);
        } else {
            notify::send(Self { port: Some(port) }, Notification::SendOnce);
        }
    }
}

/// The error that there is no memory for a right or a port.
#[derive(Debug)]
pub(super) struct OutOfMemory;

/// The right to receive the messages of a port. If it is dropped, the port dies, unless a
/// port-destroyed notification was asked for: then that notification carries the right.
pub struct ReceiveRight<M: Machine>(Arc<Port<M>>);

impl<M: Machine> ReceiveRight<M> {
    /// The receive right of a port that was just made.
    pub(super) fn of_new(port: Arc<Port<M>>) -> Self {
        Self(port)
    }

    pub(super) fn port(&self) -> &Arc<Port<M>> {
        &self.0
    }
}

impl<M: Machine> Drop for ReceiveRight<M> {
    fn drop(&mut self) {
        let backup = {
            let mut state = self.0.state.lock();
            state.port_destroyed.take()
        };
        let Some(backup) = backup else { return self.0.kill() };
        // A port-destroyed request was made: instead of ending, the receive right goes to the port
        // of the request, in a notification.
        self.0.leave_holder(Holder::Transit);
        self.0.ipc.leave_carrier(&self.0);
        notify::send(backup, Notification::PortDestroyed(Right::Receive(Self(self.0.clone()))));
    }
}

/// A right of any kind, outside of a name space.
#[derive(Default)]
pub enum Right<M: Machine> {
    /// No right: the sender named none.
    #[default]
    Null,
    /// A right to a port that has died.
    Dead,
    /// A send right.
    Send(SendRight<M>),
    /// A send-once right.
    SendOnce(SendOnceRight<M>),
    /// A receive right.
    Receive(ReceiveRight<M>),
}

impl<M: Machine> Right<M> {
    /// The port of the right, unless the port has died or there is no right.
    pub(super) fn living_port(&self) -> Option<&Arc<Port<M>>> {
        let port = match self {
            Self::Null | Self::Dead => return None,
            Self::Send(right) => right.port(),
            Self::SendOnce(right) => right.port(),
            Self::Receive(right) => right.port(),
        };
        (!port.is_dead()).then_some(port)
    }
}
