//! Receiving: a message is moved into the memory and the names of a task.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::descriptor::{DESCRIPTOR, Descriptor, INTEGER_32, NAME, PORT_NAME, SLOT};
use super::header::{COMPLEX, HEADER, Header, PROTECTED_PAYLOAD};
use crate::KernResult;
use crate::ipc::message::{Destination, Item, Message};
use crate::ipc::notify::Notification;
use crate::ipc::user_memory::pages_around;
use crate::ipc::{Disposition, MsgError, MsgErrorKind, Name, Right, Shortage, Space, UserMemory};
use crate::machine::Machine;

/// How many bytes the message takes in its receiver's buffer.
pub(super) fn size<M: Machine>(message: &Message<M>) -> usize {
    HEADER
        + match &message.notification {
            None => message.bytes.len(),
            Some(Notification::SendOnce) => 0,
            Some(_) => DESCRIPTOR + SLOT,
        }
}

/// Mach's number for the kind of a right; 0 for the null right.
pub(super) fn kind<M: Machine>(right: &Right<M>) -> u32 {
    match right {
        Right::Null => 0,
        Right::Dead | Right::Send(_) => Disposition::MoveSend as u32,
        Right::SendOnce(_) => Disposition::MoveSendOnce as u32,
        Right::Receive(_) => Disposition::MoveReceive as u32,
    }
}

/// Writes the body of a notification, which was only a value until now.
fn lay_out<M: Machine>(message: &mut Message<M>) {
    let (descriptor, word) = match message.notification.take() {
        None | Some(Notification::SendOnce) => return,
        Some(
            Notification::PortDeleted(name)
            | Notification::MessageAccepted(name)
            | Notification::DeadName(name),
        ) => (Descriptor::in_line(PORT_NAME, 32, 1), u64::from(name.0)),
        Some(Notification::NoSenders(count)) => (Descriptor::in_line(INTEGER_32, 32, 1), u64::from(count)),
        Some(Notification::PortDestroyed(right)) => {
            message.items.push((DESCRIPTOR as u32, Item::Right(right)));
            (Descriptor::in_line(Disposition::MoveReceive as u32, 8 * SLOT as u32, 1), 0)
        }
    };
    message.bytes.clear();
    message.bytes.extend_from_slice(&descriptor.to_bytes());
    message.bytes.extend_from_slice(&word.to_le_bytes());
}

/// The task that gets a message, and the buffer in its memory.
pub(super) struct Receiver<'a, M: Machine, U> {
    pub(super) space: &'a Space<M>,
    pub(super) memory: &'a U,
    /// The address of the buffer.
    pub(super) address: u64,
    /// The size of the buffer in bytes.
    pub(super) room: u32,
}

impl<M: Machine, U: UserMemory<M>> Receiver<'_, M, U> {
    /// Gives the task a message that fits into the buffer. With `notify`, the port of that receive
    /// right is told when the reply port dies. May wait for the task's memory.
    ///
    /// # Errors
    /// `ReceiveInvalidNotify`, `ReceiveHeaderError`, `ReceiveBodyError`, `ReceiveInvalidData`. The
    /// message is gone from the queue, and those of its rights that the task did not get have
    /// ended.
    pub(super) async fn accept(
        &self,
        mut message: Box<Message<M>>,
        notify: Option<Name>,
    ) -> Result<(), MsgError> {
        lay_out(&mut message);
        let mut header = self.arrival(&mut message);
        let reply = core::mem::take(&mut message.reply);
        let reply_kind = kind(&reply);
        match self.reply(reply, notify) {
            Ok(name) => header.remote = u64::from(name.0),
            Err(error) => {
                self.space.ipc().reuse(message);
                self.write_header(&header).await;
                return Err(error);
            }
        }
        header.bits |= reply_kind | if message.complex { COMPLEX } else { 0 };
        let shortage = self.items(&mut message).await;
        let written = self.write(&header, &message.bytes).await;
        self.space.ipc().reuse(message);
        match written {
            Err(_) => Err(MsgErrorKind::ReceiveInvalidData.into()),
            Ok(()) if shortage.is_empty() => Ok(()),
            Ok(()) => Err(MsgError { kind: MsgErrorKind::ReceiveBodyError, shortage }),
        }
    }

    /// Destroys a message that does not fit into the buffer. The task gets its header alone.
    pub(super) async fn reject(&self, mut message: Box<Message<M>>) {
        let header = self.arrival(&mut message);
        self.space.ipc().reuse(message);
        self.write_header(&header).await;
    }

    /// Writes the size of a message that did not fit, and stays in the queue, into the buffer's
    /// header.
    pub(super) async fn tell_size(&self, size: usize) {
        // If the buffer cannot be written the size is lost; the caller returns an error in any
        // case.
        let _ = self.memory.copyout(self.address.wrapping_add(4), &(size as u32).to_le_bytes()).await;
    }

    /// Gives a message that was not sent back to its sender. The task owns its rights and memory
    /// again, and the message in its memory names them, so that the task can send it once more.
    /// Returns what the task had no room for.
    pub(super) async fn give_back(&self, mut message: Box<Message<M>>) -> Shortage {
        let mut shortage = Shortage::empty();
        let remote = match core::mem::take(&mut message.destination) {
            Destination::None => Right::Null,
            Destination::Send(right) => Right::Send(right),
            Destination::SendOnce(right) => Right::SendOnce(right),
        };
        let local = core::mem::take(&mut message.reply);
        let complex = if message.complex { COMPLEX } else { 0 };
        let bits = kind(&remote) | kind(&local) << 8 | complex;
        let mut name = |right| {
            let name = self.space.copyout_right(right).inspect_err(|_| shortage |= Shortage::IPC_SPACE);
            u64::from(name.unwrap_or(Name::NULL).0)
        };
        let (remote, local) = (name(remote), name(local));
        shortage |= self.items(&mut message).await;
        let (size, sequence, id) = (size(&message) as u32, 0, message.id);
        let header = Header { bits, size, remote, local, sequence, id };
        // The caller returns the error of the send; that the buffer cannot be written adds nothing.
        let _ = self.write(&header, &message.bytes).await;
        self.space.ipc().reuse(message);
        shortage
    }

    /// The header as the receiver gets it, still without the reply port. Uses up a send-once right
    /// by which the message came.
    fn arrival(&self, message: &mut Message<M>) -> Header {
        let (port, kind) = match &message.destination {
            Destination::None => (None, 0),
            Destination::Send(right) => (Some(right.port()), Disposition::MoveSend as u32),
            Destination::SendOnce(right) => (Some(right.port()), Disposition::MoveSendOnce as u32),
        };
        let (name, payload) = port.map_or((Name::NULL, None), |port| self.space.destination_name(port));
        let (local, kind) = match payload {
            Some(payload) if name != Name::NULL => (payload, PROTECTED_PAYLOAD),
            _ => (u64::from(name.0), kind),
        };
        let (bits, size) = (kind << 8, size(message) as u32);
        let header = Header { bits, size, remote: 0, local, sequence: message.sequence, id: message.id };
        if let Destination::SendOnce(right) = core::mem::take(&mut message.destination) {
            right.use_up();
        }
        header
    }

    /// Gives the task the right to reply, and with `notify` a dead-name request on it.
    fn reply(&self, reply: Right<M>, notify: Option<Name>) -> Result<Name, MsgError> {
        let notify = match notify {
            None => None,
            Some(name) => {
                let right = self.space.notify_right(name);
                Some(right.map_err(|_| MsgErrorKind::ReceiveInvalidNotify)?)
            }
        };
        let no_room = |_| MsgError { kind: MsgErrorKind::ReceiveHeaderError, shortage: Shortage::IPC_SPACE };
        let name = self.space.copyout_right(reply).map_err(no_room)?;
        if let Some(right) = notify {
            if name.is_valid() {
                // This request replaces one that the name had before, and drops that one's right.
                // If the port has died since, the right of this request is dropped, which sends a
                // send-once notification.
                drop(self.space.request_dead_name(name, false, Some(right)));
            } else {
                right.use_up();
            }
        }
        Ok(name)
    }

    /// Gives the task the rights and the memory of the body, and writes their names and addresses
    /// into the body. Returns what the task had no room for.
    async fn items(&self, message: &mut Message<M>) -> Shortage {
        let mut shortage = Shortage::empty();
        let mut items = core::mem::take(&mut message.items);
        for (at, item) in items.drain(..) {
            let word = match item {
                Item::Right(right) => {
                    let name = self.space.copyout_right(right);
                    name.map(|name| u64::from(name.0)).map_err(|_| Shortage::IPC_SPACE)
                }
                Item::Rights(rights) => self.rights(rights, &mut shortage).await,
                Item::Pages(copy, offset) => {
                    let start = self.memory.insert_pages(copy).await;
                    start.map(|start| start + offset as u64).map_err(|_| Shortage::VM_SPACE)
                }
                Item::Bytes(bytes) => self.bytes(&bytes).await.map_err(|_| Shortage::VM_SPACE),
                Item::Empty => Ok(0),
            };
            let word = word.inspect_err(|missing| shortage |= *missing).unwrap_or(0);
            message.bytes[at as usize..at as usize + SLOT].copy_from_slice(&word.to_le_bytes());
        }
        // The message keeps the memory of the empty list for its next use.
        message.items = items;
        shortage
    }

    /// Writes the names of an array of rights into fresh memory of the task, and returns the
    /// address.
    async fn rights(&self, rights: Vec<Right<M>>, shortage: &mut Shortage) -> Result<u64, Shortage> {
        let mut names = Vec::with_capacity(rights.len() * NAME);
        // The memory is allocated before the names, because the task could not find names without
        // it.
        let room = self.memory.allocate((rights.len() * NAME) as u64).await;
        let room = room.map_err(|_| Shortage::VM_SPACE)?;
        for right in rights {
            let name = self.space.copyout_right(right).inspect_err(|_| *shortage |= Shortage::IPC_SPACE);
            names.extend_from_slice(&name.unwrap_or(Name::NULL).0.to_le_bytes());
        }
        self.memory.copyout(room, &names).await.map_err(|_| Shortage::VM_SPACE)?;
        Ok(room)
    }

    /// Writes bytes into fresh memory of the task, and returns the address.
    async fn bytes(&self, bytes: &[u8]) -> KernResult<u64> {
        let room = self.memory.allocate(bytes.len() as u64).await?;
        if let Err(error) = self.memory.copyout(room, bytes).await {
            if let Some((start, size)) = pages_around(room, bytes.len() as u64) {
                self.memory.deallocate(start, size).await;
            }
            return Err(error);
        }
        Ok(room)
    }

    async fn write(&self, header: &Header, body: &[u8]) -> KernResult {
        self.memory.copyout(self.address, &header.to_bytes()).await?;
        if body.is_empty() {
            return Ok(());
        }
        self.memory.copyout(self.address.wrapping_add(HEADER as u64), body).await
    }

    /// Writes the header alone, or as much of it as fits into the buffer.
    async fn write_header(&self, header: &Header) {
        let room = HEADER.min(self.room as usize);
        // The receive has failed already; that the header cannot be written adds nothing.
        let _ = self.memory.copyout(self.address, &header.to_bytes()[..room]).await;
    }
}
