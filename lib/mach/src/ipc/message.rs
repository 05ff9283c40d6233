//! Messages in transit.

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

/// The right by which a message is sent.
#[derive(Default)]
pub(super) enum Destination<M: Machine> {
    #[default]
    None,
    Send(SendRight<M>),
    SendOnce(SendOnceRight<M>),
}

/// What a message carries in addition to bytes.
pub(super) enum Item<M: Machine> {
    /// One right.
    Right(Right<M>),
    /// An array of rights out of line.
    Rights(Vec<Right<M>>),
    /// Pages out of line, the offset of the first byte in them, and how many bytes there are.
    Pages(MapCopy<M>, usize),
    /// Less than a page out of line.
    Bytes(Vec<u8>),
    /// Nothing: the sender named memory of no bytes.
    Empty,
}

/// A message in transit. It owns the rights and the memory that it carries.
pub struct Message<M: Machine> {
    pub(super) destination: Destination<M>,
    pub(super) reply: Right<M>,
    pub(super) id: i32,
    /// The sender says that the body has rights or memory.
    pub(super) complex: bool,
    /// The body carries a receive right.
    pub(super) moves_receive_right: bool,
    /// The body's bytes as the sender's front end has laid them out.
    pub(super) bytes: Vec<u8>,
    /// What the body carries, and where in the bytes each is named, in order.
    pub(super) items: Vec<(u32, Item<M>)>,
    /// The body of a message from the library.
    pub(super) notification: Option<Notification<M>>,
    pub(super) sequence: u32,
    /// When it came, if its port is in a set: in the order of the set's messages.
    pub(super) stamp: u64,
    /// A request to be told when the message leaves the queue.
    pub(super) accepted: Option<Acceptance<M>>,
    pub(super) charge: Option<Charge<M>>,
    /// The next of a list of [`Garbage`].
    next: Option<Box<Message<M>>>,
}

/// The most that the buffers of an unused message take.
pub(super) const KEPT_BYTES: usize = 8192;

impl<M: Machine> Message<M> {
    /// Bytes that are charged for a message in addition to its body. A place in a queue is in it.
    pub(super) const BYTES: usize = size_of::<Self>() + 2 * size_of::<usize>();

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

    /// The port to which the message goes.
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
    /// A message for which the caller has memory.
    pub(super) fn reserved_message(&self) -> Box<Message<M>> {
        let unused = self.local().unused.lock().pop();
        unused.unwrap_or_else(Message::empty)
    }

    /// A message of a task with `bytes` in line; `None`: no memory.
    pub(super) fn new_message(&self, account: &Arc<Account<M>>, bytes: usize) -> Option<Box<Message<M>>> {
        let charge = account.charge(Message::<M>::BYTES + bytes)?;
        let mut message = self.reserved_message();
        message.charge = Some(charge);
        Some(message)
    }

    /// Drops what a message still carries, and keeps the message for reuse.
    pub(super) fn reuse(&self, mut message: Box<Message<M>>) {
        // The destination's right has been used, unless the message was destroyed; and what is
        // dropped here may send notifications, so no lock is held.
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
    /// A message may carry receive rights of ports with messages, and so on, as deep as a program
    /// wants. So an inner call only adds to the list of the outermost one on its processor.
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

/// Messages that are to be destroyed, the last first.
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
