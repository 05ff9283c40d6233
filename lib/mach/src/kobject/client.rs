//! The kernel as the client of a program: calls of exception servers and pagers by the generated
//! clients.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use message::AsyncTransport;

use super::form::{self, HEADER};
use crate::ipc::{Interruption, Item, Message, MsgErrorKind, ReplyPort, Right, SendRight, Space};
use crate::machine::Machine;
use crate::{KernError, KernResult};

/// The number of the first right of a request.
const FIRST: u64 = 1;
/// The error of a call without memory for its message.
const NO_BUFFER: i32 = MsgErrorKind::SendNoBuffer as u32 as i32;
/// The error of a call whose wait was interrupted.
const INTERRUPTED: i32 = MsgErrorKind::ReceiveInterrupted as u32 as i32;

/// Calls a program on behalf of a task, whose account pays for the messages.
pub(super) struct Caller<'a, M: Machine> {
    payer: &'a Arc<Space<M>>,
    to: Right<M>,
    /// Ends the wait for the reply; `None`: the caller only sends.
    interruption: Option<&'a Interruption>,
    items: Vec<Item<M>>,
    interrupted: bool,
}

impl<'a, M: Machine> Caller<'a, M> {
    /// Prepares one message to the port `to`.
    pub(super) fn new(
        payer: &'a Arc<Space<M>>,
        to: SendRight<M>,
        interruption: Option<&'a Interruption>,
    ) -> Self {
        Self { interruption, ..Self::to(payer, Right::Send(to)) }
    }

    /// Prepares one message to the port of a right, for which there is no reply.
    pub(super) fn to(payer: &'a Arc<Space<M>>, to: Right<M>) -> Self {
        Self { payer, to, interruption: None, items: Vec::new(), interrupted: false }
    }

    /// Adds a right to the request, and returns the number that stands for it.
    pub(super) fn give(&mut self, right: Right<M>) -> u64 {
        self.add(Item::Right(right))
    }

    /// Adds a right or memory to the request, and returns the number that stands for it.
    pub(super) fn add(&mut self, item: Item<M>) -> u64 {
        self.items.push(item);
        FIRST + self.items.len() as u64 - 1
    }

    /// Whether an interruption has ended the wait for the reply.
    pub(super) fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    fn post(&mut self, bytes: &[u8], reply: Right<M>) -> KernResult {
        let mut request = write(self.payer, bytes, &mut self.items)?;
        request.reply = reply;
        self.payer.ipc().post(core::mem::replace(&mut self.to, Right::Dead), request);
        Ok(())
    }
}

/// The message that a generated client has written, whose numbers stand for `items`.
pub(super) fn write<M: Machine>(
    payer: &Space<M>,
    bytes: &[u8],
    items: &mut [Item<M>],
) -> KernResult<Box<Message<M>>> {
    let header = message::Header::read(&form::FORMAT, bytes).ok_or(KernError::InvalidArgument)?;
    let body = bytes.get(HEADER..header.size).ok_or(KernError::InvalidArgument)?;
    let outside = items.iter().map(Item::bytes).sum::<usize>();
    let mut message = payer.message(body.len() + outside).ok_or(KernError::ResourceShortage)?;
    message.id = header.id as i32;
    message.bytes.extend_from_slice(body);
    form::close(&mut message, |number| {
        let place = number.checked_sub(FIRST).and_then(|place| usize::try_from(place).ok());
        let item = place.and_then(|place| items.get_mut(place));
        item.map_or(Item::Empty, |item| core::mem::replace(item, Item::Empty))
    });
    Ok(message)
}

impl<M: Machine> AsyncTransport for Caller<'_, M> {
    fn reply_port(&mut self) -> u64 {
        0
    }

    async fn call(&mut self, message: &mut [u8], length: usize, _call: &message::Call) -> Result<(), i32> {
        let port = ReplyPort::new(self.payer).map_err(|_| NO_BUFFER)?;
        let right = port.send_once().map_err(|_| NO_BUFFER)?;
        self.post(&message[..length], right).map_err(|_| NO_BUFFER)?;
        let ipc = self.payer.ipc();
        let reply = port.receive();
        let received = match self.interruption {
            Some(interruption) => interruption.wait(ipc.machine(), None, reply).await.ok(),
            None => Some(reply.await),
        };
        let Some(mut reply) = received else {
            self.interrupted = true;
            return Err(INTERRUPTED);
        };
        // Rights and memory of the reply end here: no call of the kernel expects any.
        reply.items.clear();
        form::add_header(&mut reply, 0, 0);
        let count = reply.bytes.len().min(message.len());
        message[..count].copy_from_slice(&reply.bytes[..count]);
        ipc.reuse(reply);
        Ok(())
    }

    async fn send(&mut self, message: &mut [u8], length: usize, _call: &message::Call) -> Result<(), i32> {
        self.post(&message[..length], Right::Null).map_err(|_| NO_BUFFER)
    }
}
