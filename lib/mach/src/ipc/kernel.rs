//! Kernel ports: ports that stand for an object of the library. A message to such a port is not
//! queued. The port's [`KernelServer`] carries it out while it is sent, and sends the reply.
//!
//! Ports know nothing of the objects: to them an object is a value of any type, which the server
//! finds again with the port.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::any::Any;

use macadamia_sync::SpinLock;

use super::account::Charge;
use super::message::{Destination, Message};
use super::port::Port;
use super::queue::{self, Source, Taken};
use super::right::{ReceiveRight, Right, SendOnceRight, SendRight};
use super::{Interruption, Ipc, MsgErrorKind, Name, Space};
use crate::machine::Machine;
use crate::vm::BoxFuture;
use crate::{KernError, KernResult};

/// The object for which a kernel port stands.
pub type KernelObject = Arc<dyn Any + Send + Sync>;

/// What has become of a message that was to be carried out without waiting.
pub enum KernelServed<M: Machine> {
    /// Nothing has been done.
    Nothing,
    /// The message has been carried out, and the reply delivered.
    Delivered,
    /// The message has been carried out. The reply could not be delivered, or carries rights or
    /// memory.
    Reply(Box<Message<M>>),
    /// The message has been carried out. There is no reply.
    NoReply,
}

/// Delivers a reply without rights and memory, in front of which there is room for a header, and
/// whose id is the second argument. Returns whether it could.
pub type DeliverReply<'a> = &'a mut dyn FnMut(&mut [u8], i32) -> bool;

/// Carries out the messages that are sent to kernel ports.
pub trait KernelServer<M: Machine>: Send + Sync {
    /// Carries out a message without rights and memory, if that needs no wait. Never blocks.
    fn try_serve(self: Arc<Self>, request: PlainRequest<'_, M>, deliver: DeliverReply<'_>)
    -> KernelServed<M>;

    /// Carries out a message and sends the reply. The future may be dropped at any await, when the
    /// sender's thread ends.
    fn serve<'a>(self: Arc<Self>, request: KernelRequest<'a, M>) -> BoxFuture<'a, ()>;
}

/// What a kernel port has instead of receivers.
pub(super) struct KernelSide<M: Machine> {
    server: Weak<dyn KernelServer<M>>,
    object: SpinLock<Option<KernelObject>>,
}

/// A message to a kernel port.
pub struct KernelRequest<'a, M: Machine> {
    /// The object; `None` if the port's object has ended.
    pub(crate) object: Option<KernelObject>,
    /// The message, with its destination and its rights.
    pub(crate) message: Box<Message<M>>,
    /// Ends a wait of the sender's thread.
    pub(crate) interruption: &'a Interruption,
    /// The memory for the message of the reply, which the sender pays for.
    pub(crate) charge: Charge<M>,
}

/// A message to a kernel port that carries neither rights nor memory in its body.
pub struct PlainRequest<'a, M: Machine> {
    /// The object; `None` if the port's object has ended.
    pub(crate) object: Option<KernelObject>,
    /// The body of the message, and in front of it room for a header.
    pub(crate) bytes: &'a mut [u8],
    /// The id of the message.
    pub(crate) id: i32,
    /// The memory for the message of the reply, which the sender pays for.
    pub(crate) charge: Charge<M>,
}

/// How many bytes of the sender's account a reply may use before it has been carried out.
pub(crate) const REPLY_BYTES: usize = 8192;

/// A port that stands for an object. The port dies when this value is dropped.
pub struct KernelPort<M: Machine>(ReceiveRight<M>);

impl<M: Machine> KernelPort<M> {
    /// Makes a port, which stands for no object yet. The account of `payer` pays for the port.
    ///
    /// # Errors
    /// `ResourceShortage`: the account or the machine has no memory.
    pub fn new(payer: &Space<M>, server: Weak<dyn KernelServer<M>>) -> KernResult<Self> {
        let kernel = Box::new(KernelSide { server, object: SpinLock::new(None) });
        Ok(Self(Port::create_kernel(&payer.ipc, &payer.account, kernel)?))
    }

    fn side(&self) -> Option<&KernelSide<M>> {
        self.0.port().kernel.as_deref()
    }

    /// Makes the port stand for an object.
    pub fn enable(&self, object: KernelObject) {
        let before = self.side().and_then(|side| side.object.lock().replace(object));
        drop(before);
    }

    /// Makes the port stand for no object. Returns the object.
    pub fn disable(&self) -> Option<KernelObject> {
        self.side()?.object.lock().take()
    }

    /// The receive right of the port, which stands for no object any more.
    pub(crate) fn into_right(self) -> Right<M> {
        drop(self.disable());
        Right::Receive(self.0)
    }

    /// A send right to the port.
    pub fn send_right(&self) -> Right<M> {
        SendRight::make(self.0.port()).map_or(Right::Dead, Right::Send)
    }

    /// Gives a task that has a send right to the port one more reference to it, and returns the
    /// name. `None`, and nothing has changed: the task has no such right, or the most references.
    pub fn add_reference(&self, space: &Space<M>) -> Option<Name> {
        space.table.lock().add_reference(self.0.port())
    }

    /// Whether a task has a send right to the port under this name.
    pub fn has_name(&self, space: &Space<M>, name: Name) -> bool {
        space.table.lock().sends_to(name, self.0.port())
    }
}

impl<M: Machine> SendRight<M> {
    /// The object for which the port stands; `None` if it is no kernel port, or if its object has
    /// ended.
    pub fn kernel_object(&self) -> Option<KernelObject> {
        self.port().kernel_object()
    }

    /// Whether the port has died.
    pub(crate) fn is_dead(&self) -> bool {
        self.port().is_dead()
    }

    /// How many messages are in the port's queue.
    pub(crate) fn queued(&self) -> usize {
        self.port().state.lock().queue.len()
    }

    /// Whether the port is a kernel port, also after its object has ended.
    pub(crate) fn is_of_kernel(&self) -> bool {
        self.port().kernel.is_some()
    }

    /// A number that no other port has or had.
    pub(crate) fn port_number(&self) -> u64 {
        self.port().id
    }

    /// Whether a task has a send right to the port under this name.
    pub fn has_name(&self, space: &Space<M>, name: Name) -> bool {
        space.table.lock().sends_to(name, self.port())
    }
}

impl<M: Machine> Port<M> {
    pub(super) fn kernel_object(&self) -> Option<KernelObject> {
        self.kernel.as_ref()?.object.lock().clone()
    }
}

impl<M: Machine> Space<M> {
    /// Has a message carried out that was sent to a kernel port. Waits until that is done.
    ///
    /// # Errors
    /// The message comes back. `SendNoBuffer`: no memory for the reply.
    pub(super) async fn serve(
        &self,
        kernel: &KernelSide<M>,
        message: Box<Message<M>>,
        interruption: &Interruption,
    ) -> Result<(), super::send::NotSent<M>> {
        let Some(server) = kernel.server.upgrade() else {
            self.ipc.reuse(message);
            return Ok(());
        };
        let Some(charge) = self.account.charge(Message::<M>::BYTES + REPLY_BYTES) else {
            return Err((MsgErrorKind::SendNoBuffer, message));
        };
        let object = kernel.object.lock().clone();
        server.serve(KernelRequest { object, message, interruption, charge }).await;
        Ok(())
    }

    /// Has a message to a kernel port carried out without waiting, if that is possible:
    /// [`KernelServer::try_serve`].
    pub(super) fn try_serve(
        &self,
        port: &Port<M>,
        bytes: &mut [u8],
        id: i32,
        deliver: DeliverReply<'_>,
    ) -> KernelServed<M> {
        let Some(kernel) = &port.kernel else { return KernelServed::Nothing };
        let Some(server) = kernel.server.upgrade() else { return KernelServed::Nothing };
        let Some(charge) = self.account.charge(Message::<M>::BYTES + REPLY_BYTES) else {
            return KernelServed::Nothing;
        };
        let object = kernel.object.lock().clone();
        server.try_serve(PlainRequest { object, bytes, id, charge }, deliver)
    }

    /// The kernel object of a name's port, if the name has a send or receive right to a kernel
    /// port.
    ///
    /// # Errors
    /// `InvalidName`: the name denotes nothing. `InvalidRight`: it denotes neither a send nor a
    /// receive right. `InvalidTask`: the space has ended.
    pub fn kernel_object(&self, name: Name) -> KernResult<Option<KernelObject>> {
        let port = self.change(|table, _| {
            let entry = table.get(name).ok_or(KernError::InvalidName)?;
            let port = entry.receive_port().or_else(|| entry.port().filter(|_| entry.object.sends()));
            port.cloned().ok_or(KernError::InvalidRight)
        })?;
        Ok(port.kernel_object())
    }
}

/// A port at which the library waits for the reply to one message of its own.
pub(crate) struct ReplyPort<M: Machine>(ReceiveRight<M>);

impl<M: Machine> ReplyPort<M> {
    /// Makes a port. The account of `payer` pays for it.
    ///
    /// # Errors
    /// `ResourceShortage`: the account or the machine has no memory.
    pub(crate) fn new(payer: &Space<M>) -> KernResult<Self> {
        Ok(Self(Port::create(&payer.ipc, &payer.account)?))
    }

    /// A send-once right to the port.
    ///
    /// # Errors
    /// `ResourceShortage`: the account or the machine has no memory.
    pub(crate) fn send_once(&self) -> KernResult<Right<M>> {
        Ok(Right::SendOnce(SendOnceRight::make(self.0.port())?))
    }

    /// Waits for a message: the reply, or the notification that the right to reply was dropped.
    pub(crate) async fn receive(&self) -> Box<Message<M>> {
        let port = self.0.port();
        let source = Source::Port(port.clone(), port.state.lock().version);
        let taken = port.receivers.wait_until(|| match source.take(&|_| Ok(())) {
            Taken::Message(message) => Some(message),
            _ => None,
        });
        let mut message = taken.await;
        // The message has used up the right by which it came.
        if let Destination::SendOnce(right) = core::mem::take(&mut message.destination) {
            right.use_up();
        }
        message
    }
}

impl<M: Machine> Space<M> {
    /// A message without content that the task pays for, with room for `bytes` bytes. `None`: the
    /// task or the machine has no memory for it.
    pub(crate) fn message(&self, bytes: usize) -> Option<Box<Message<M>>> {
        self.ipc.new_message(&self.account, bytes)
    }
}

impl<M: Machine> Ipc<M> {
    /// Sends a message of the library to the port of `right`, even if the queue is full. The
    /// message is destroyed if the port has died, or if it is a kernel port.
    pub(crate) fn post(&self, right: Right<M>, mut message: Box<Message<M>>) {
        let port = right.living_port().cloned();
        message.destination = match right {
            Right::Send(right) => Destination::Send(right),
            Right::SendOnce(right) => Destination::SendOnce(right),
            _ => Destination::None,
        };
        match port {
            Some(port) if !matches!(message.destination, Destination::None) => {
                queue::deliver(&port, message);
            }
            _ => self.reuse(message),
        }
    }
}
