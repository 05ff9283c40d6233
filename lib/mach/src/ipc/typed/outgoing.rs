//! Sending: a message is made of the memory and the names of a task.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::descriptor::{DESCRIPTOR, Descriptor, NAME, SLOT};
use super::header::{HEADER, Header};
use crate::ipc::copyin::Parcel;
use crate::ipc::message::{Item, Message};
use crate::ipc::user_memory::pages_around;
use crate::ipc::{Disposition, MsgErrorKind, Name, Space, UserMemory};
use crate::machine::{Machine, PAGE_SIZE};

/// The 8 bytes at `at`, which the caller has found to lie in `bytes`.
pub(super) fn slot(bytes: &[u8], at: usize) -> [u8; 8] {
    let mut slot = [0; 8];
    slot.copy_from_slice(&bytes[at..at + 8]);
    slot
}

/// A message that is being made of a task's memory.
struct Outgoing<'a, M: Machine, U> {
    space: &'a Arc<Space<M>>,
    memory: &'a U,
    parcels: Vec<(u32, Parcel<M>)>,
    /// Ranges of pages, by start and size, that the sender gives up when the message is sent.
    deallocations: Vec<(u64, u64)>,
}

/// Makes a message of the `size` bytes at `address` in the task's memory. With `cancel`, the port
/// of that receive right is not told if the destination's name goes away. May wait for the task's
/// memory.
///
/// # Errors
/// Those of sending, except those that come from the queue. The task has everything that it had
/// before.
pub(super) async fn message<M: Machine, U: UserMemory<M>>(
    space: &Arc<Space<M>>,
    memory: &U,
    address: u64,
    size: u32,
    cancel: Option<Name>,
) -> Result<Box<Message<M>>, MsgErrorKind> {
    let size = size as usize;
    if size < HEADER || !size.is_multiple_of(4) {
        return Err(MsgErrorKind::SendMsgTooSmall);
    }
    let body = (size - HEADER).next_multiple_of(8);
    if body > space.ipc().limits.message {
        return Err(MsgErrorKind::SendNoBuffer);
    }
    let message = space.ipc().new_message(&space.account, body);
    let mut message = Unsent { space, message: Some(message.ok_or(MsgErrorKind::SendNoBuffer)?) };
    let mut header = [0; HEADER];
    memory.copyin(address, &mut header).await.map_err(|_| MsgErrorKind::SendInvalidData)?;
    let header = Header::from_bytes(&header);
    let content = message.get();
    content.bytes.resize(body, 0);
    let from = address.checked_add(HEADER as u64).ok_or(MsgErrorKind::SendInvalidData)?;
    let read = memory.copyin(from, &mut content.bytes[..size - HEADER]);
    read.await.map_err(|_| MsgErrorKind::SendInvalidData)?;
    let (remote, local) = header.rights()?;
    let cancel = match cancel {
        None => None,
        Some(name) => Some(space.receive_port(name).map_err(|_| MsgErrorKind::SendInvalidNotify)?),
    };
    (content.id, content.complex) = (header.id, header.is_complex());
    let mut outgoing = Outgoing { space, memory, parcels: Vec::new(), deallocations: Vec::new() };
    if content.complex {
        outgoing.items(content, size - HEADER).await?;
    }
    let Outgoing { parcels, deallocations, .. } = outgoing;
    space.copyin(content, remote, local, parcels, cancel.as_ref())?;
    // From here on the message is sent or comes back. The arrays of rights that the sender gives up
    // have been read, so their memory can be unmapped.
    for (start, size) in deallocations {
        memory.deallocate(start, size).await;
    }
    Ok(message.take())
}

/// Gives a message back for reuse when it is dropped, unless the message was taken out before.
struct Unsent<'a, M: Machine> {
    space: &'a Space<M>,
    message: Option<Box<Message<M>>>,
}

impl<M: Machine> Unsent<'_, M> {
    fn get(&mut self) -> &mut Message<M> {
        self.message.as_mut().expect("it is there until it is taken")
    }

    fn take(&mut self) -> Box<Message<M>> {
        self.message.take().expect("it is taken once")
    }
}

impl<M: Machine> Drop for Unsent<'_, M> {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            self.space.ipc().reuse(message);
        }
    }
}

impl<M: Machine, U: UserMemory<M>> Outgoing<'_, M, U> {
    /// Reads the items of a body, and changes their descriptors to what the receiver gets.
    async fn items(&mut self, message: &mut Message<M>, length: usize) -> Result<(), MsgErrorKind> {
        let mut at = 0;
        while at < length {
            if length - at < DESCRIPTOR {
                return Err(MsgErrorKind::SendMsgTooSmall);
            }
            let descriptor = Descriptor::from_bytes(slot(&message.bytes, at));
            descriptor.check()?;
            message.bytes[at..at + DESCRIPTOR].copy_from_slice(&descriptor.received().to_bytes());
            at += DESCRIPTOR;
            let data = if descriptor.is_in_line() { descriptor.length() } else { SLOT as u64 };
            if data > (length - at) as u64 {
                return Err(MsgErrorKind::SendMsgTooSmall);
            }
            if !descriptor.is_in_line() {
                self.out_of_line(message, descriptor, at).await?;
            } else if let Some(disposition) = descriptor.disposition() {
                self.rights(message, at, descriptor.number, disposition)?;
            }
            at += (data as usize).next_multiple_of(SLOT);
        }
        Ok(())
    }

    /// Adds a parcel for each of `number` rights in line, from the offset `at` of the body on.
    fn rights(
        &mut self,
        message: &mut Message<M>,
        at: usize,
        number: u32,
        disposition: Disposition,
    ) -> Result<(), MsgErrorKind> {
        let number = number as usize;
        charge(message, number * (size_of::<(u32, Item<M>)>() + size_of::<(u32, Parcel<M>)>()))?;
        self.parcels.reserve(number);
        message.items.reserve(number);
        for at in (at..).step_by(SLOT).take(number) {
            let name = Name(u64::from_le_bytes(slot(&message.bytes, at)) as u32);
            self.parcels.push((at as u32, Parcel::Right(name, disposition)));
        }
        Ok(())
    }

    /// Adds a parcel for memory or an array of rights out of line, whose address is at the offset
    /// `at`.
    async fn out_of_line(
        &mut self,
        message: &mut Message<M>,
        descriptor: Descriptor,
        at: usize,
    ) -> Result<(), MsgErrorKind> {
        let address = u64::from_le_bytes(slot(&message.bytes, at));
        let length = descriptor.length();
        charge(message, size_of::<(u32, Item<M>)>())?;
        let parcel = match descriptor.disposition() {
            _ if length == 0 => Parcel::Ready(Item::Empty),
            Some(disposition) => {
                let count = descriptor.number as usize;
                charge(message, count * (size_of::<Name>() + size_of::<crate::ipc::Right<M>>()))?;
                let bytes = self.read(address, length as usize).await?;
                let (names, _) = bytes.as_chunks::<NAME>();
                let names = names.iter().map(|&name| Name(u32::from_le_bytes(name))).collect();
                Parcel::Rights(names, disposition)
            }
            None if length < PAGE_SIZE => {
                charge(message, length as usize)?;
                Parcel::Ready(Item::Bytes(self.read(address, length as usize).await?))
            }
            None => {
                let (start, size) = pages_around(address, length).ok_or(MsgErrorKind::SendInvalidMemory)?;
                let copy = self.memory.copy_pages(start, size).await;
                let copy = copy.map_err(|_| MsgErrorKind::SendInvalidMemory)?;
                charge(message, copy.bytes())?;
                Parcel::Ready(Item::Pages(copy, (address - start) as usize))
            }
        };
        if descriptor.deallocates() && length > 0 {
            // The range was read, so its end does not overflow and `pages_around` finds the pages.
            self.deallocations.extend(pages_around(address, length));
        }
        self.parcels.push((at as u32, parcel));
        Ok(())
    }

    async fn read(&self, address: u64, length: usize) -> Result<Vec<u8>, MsgErrorKind> {
        if length > self.space.ipc().limits.message {
            return Err(MsgErrorKind::SendNoBuffer);
        }
        let mut bytes = alloc::vec![0; length];
        let read = self.memory.copyin(address, &mut bytes).await;
        read.map_err(|_| MsgErrorKind::SendInvalidMemory)?;
        Ok(bytes)
    }
}

/// Charges the account of the message for more bytes.
fn charge<M: Machine>(message: &mut Message<M>, bytes: usize) -> Result<(), MsgErrorKind> {
    let granted = message.charge.as_mut().is_some_and(|charge| charge.extend(bytes));
    if granted { Ok(()) } else { Err(MsgErrorKind::SendNoBuffer) }
}
