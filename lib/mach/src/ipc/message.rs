//! Messages between their sender and their receiver, which own the rights and the memory in them.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::account::{Account, Charge};
use super::notify::{Acceptance, Notification};
use super::port::Port;
use super::right::{Right, SendOnceRight, SendRight};
use super::{Ipc, UNUSED_MESSAGES};
use crate::machine::Machine;
use crate::vm::MapCopy;

/// The right by which a message is sent, which names its port.
#[derive(Default)]
pub(crate) enum Destination<M: Machine> {
    #[default]
    None,
    Send(SendRight<M>),
    SendOnce(SendOnceRight<M>),
}

/// Something that a message carries in addition to the bytes of its body.
pub(crate) enum Item<M: Machine> {
    /// One right.
    Right(Right<M>),
    /// An array of rights out of line.
    Rights(Vec<Right<M>>),
    /// Whole pages out of line, and the offset in them of the sender's first byte. The descriptor
    /// has the number of bytes.
    Pages(MapCopy<M>, usize),
    /// Memory of less than a page out of line, copied as bytes.
    Bytes(Vec<u8>),
    /// No memory: the sender's descriptor out of line has the length 0.
    Empty,
}

impl<M: Machine> Item<M> {
    /// Bytes of server memory that the item takes outside of the message's list of items.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Right(_) | Self::Empty => 0,
            Self::Rights(rights) => rights.len() * size_of::<Right<M>>(),
            Self::Pages(copy, _) => copy.bytes(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// A message in transit. It owns the rights and the memory that it carries.
pub struct Message<M: Machine> {
    pub(crate) destination: Destination<M>,
    pub(crate) reply: Right<M>,
    pub(crate) id: i32,
    /// Whether the sender says that the body has rights or memory out of line.
    pub(crate) complex: bool,
    /// Whether the body carries a receive right, so that the lock of transit is needed.
    pub(crate) moves_receive_right: bool,
    /// The bytes of the body as the receiver gets them, except that rights and addresses are
    /// missing.
    pub(crate) bytes: Vec<u8>,
    /// What the body carries, in order, each with the offset in `bytes` at which it is named.
    pub(crate) items: Vec<(u32, Item<M>)>,
    /// The content of a notification, until the receiver's front end lays it out as a body.
    pub(super) notification: Option<Notification<M>>,
    pub(super) sequence: u32,
    /// The place of the message in the order of all messages of its port's set, if there is a set.
    pub(super) stamp: u64,
    /// The sender's request to be told when the message leaves the queue; dropping it tells the
    /// sender.
    pub(super) accepted: Option<Acceptance<M>>,
    pub(crate) charge: Option<Charge<M>>,
    /// The next message in a list of [`Garbage`].
    next: Option<Box<Message<M>>>,
}

/// The most bytes of buffers that a message kept for reuse may have.
pub(super) const KEPT_BYTES: usize = 8192;

impl<M: Machine> Message<M> {
    /// Bytes that are charged for a message and its place in a queue, in addition to its body.
    pub(crate) const BYTES: usize = size_of::<Self>() + 2 * size_of::<usize>();

    fn empty() -> Box<Self> {
        Box::new(Self {
            destination: Destination::None,
            reply: Right::Null,
            id: 0,
            complex: false,
            moves_receive_right: false,
            bytes: Vec::new(),
            items: Vec::new(),
            notification: None,
            sequence: 0,
            stamp: 0,
            accepted: None,
            charge: None,
            next: None,
        })
    }

    /// The port to which the message goes, if it still has a destination.
    pub(super) fn port(&self) -> Option<&Arc<Port<M>>> {
        match &self.destination {
            Destination::None => None,
            Destination::Send(right) => Some(right.port()),
            Destination::SendOnce(right) => Some(right.port()),
        }
    }

    /// Calls `with` for the port of each receive right that the message carries.
    pub(super) fn for_each_receive_right(&self, mut with: impl FnMut(&Arc<Port<M>>)) {
        let mut each = |right: &Right<M>| {
            if let Right::Receive(right) = right {
                with(right.port());
            }
        };
        if let Some(Notification::PortDestroyed(right)) = &self.notification {
            each(right);
        }
        for (_, item) in &self.items {
            match item {
                Item::Right(right) => each(right),
                Item::Rights(rights) => rights.iter().for_each(&mut each),
                _ => {}
            }
        }
    }
}

impl<M: Machine> Ipc<M> {
    /// A message without content, whose memory the caller has reserved already.
    pub(crate) fn reserved_message(&self) -> Box<Message<M>> {
        let unused = self.local().unused.lock().pop();
        unused.unwrap_or_else(Message::empty)
    }

    /// A message without content, charged to a task's account with a body of `bytes` bytes. `None`:
    /// the account or the machine has no memory for it.
    pub(super) fn new_message(&self, account: &Arc<Account<M>>, bytes: usize) -> Option<Box<Message<M>>> {
        let charge = account.charge(Message::<M>::BYTES + bytes)?;
        let mut message = self.reserved_message();
        message.charge = Some(charge);
        Some(message)
    }

    /// Drops what a message still carries, and keeps the message for reuse. No lock may be held.
    pub(crate) fn reuse(&self, mut message: Box<Message<M>>) {
        // The destination is still there if the message was not received. Each right that is
        // dropped here may send a notification.
        message.destination = Destination::None;
        message.reply = Right::Null;
        (message.notification, message.accepted, message.charge) = (None, None, None);
        message.moves_receive_right = false;
        message.items.clear();
        message.bytes.clear();
        let items = message.items.capacity() * size_of::<(u32, Item<M>)>();
        if message.bytes.capacity() + items > KEPT_BYTES {
            return;
        }
        let mut unused = self.local().unused.lock();
        if unused.len() < UNUSED_MESSAGES {
            unused.push(message);
        }
    }

    /// Destroys the messages of a port that has died.
    ///
    /// A message may carry the receive rights of ports whose queues have messages, and so on to any
    /// depth. To use no stack for that, a call inside another call on the same processor only adds
    /// its messages to the list that the outermost call empties.
    pub(super) fn discard(&self, messages: VecDeque<Box<Message<M>>>) {
        if messages.is_empty() {
            return;
        }
        let local = self.local();
        {
            let mut garbage = local.garbage.lock();
            for message in messages {
                garbage.push(message);
            }
            if core::mem::replace(&mut garbage.is_being_emptied, true) {
                return;
            }
        }
        loop {
            let message = {
                let mut garbage = local.garbage.lock();
                let message = garbage.pop();
                garbage.is_being_emptied = message.is_some();
                message
            };
            match message {
                Some(message) => self.reuse(message),
                None => return,
            }
        }
    }
}

/// A list of messages that are to be destroyed; the last one added is destroyed first.
pub(super) struct Garbage<M: Machine> {
    first: Option<Box<Message<M>>>,
    is_being_emptied: bool,
}

impl<M: Machine> Garbage<M> {
    pub(super) fn new() -> Self {
        Self { first: None, is_being_emptied: false }
    }

    fn push(&mut self, mut message: Box<Message<M>>) {
        message.next = self.first.take();
        self.first = Some(message);
    }

    fn pop(&mut self) -> Option<Box<Message<M>>> {
        let mut message = self.first.take()?;
        self.first = message.next.take();
        Some(message)
    }
}
