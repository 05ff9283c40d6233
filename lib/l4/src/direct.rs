//! The transport of direct IPC for the stubs of interfaces: the calling thread's message registers
//! and IPC.

use crate::ipc::{self, Message, Received};
use crate::utcb;
use direct::{Registers, Transport};
use x2::message::BUFFER_REGISTERS;
use x2::{Acceptor, Fpage, IpcError, IpcErrorKind, IpcPhase, MessageTag, StringDescriptor, ThreadId};

/// The calling thread's message registers and IPC. From the first word of a request until the call,
/// no other code may use the message registers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Registers for Direct {
    #[inline(always)]
    fn register(&self, index: usize) -> u64 {
        utcb::message_register(index)
    }

    #[inline(always)]
    fn set_register(&mut self, index: usize, word: u64) {
        utcb::set_message_register(index, word);
    }
}

impl Transport for Direct {
    #[inline]
    fn call(
        &mut self,
        to: ThreadId,
        tag: MessageTag,
        strings: &[&[u8]],
        rooms: &mut [&mut [u8]],
    ) -> Result<MessageTag, IpcError> {
        let message = with_strings(tag, strings);
        if rooms.is_empty() {
            return ipc::call(to, message).map(|received| received.tag);
        }
        receive_into(rooms, || ipc::call(to, message)).map(|received| received.tag)
    }

    #[inline]
    fn send(&mut self, to: ThreadId, tag: MessageTag, strings: &[&[u8]]) -> Result<(), IpcError> {
        ipc::send(to, with_strings(tag, strings))
    }
}

/// The message in the registers, with these string items appended.
fn with_strings(tag: MessageTag, strings: &[&[u8]]) -> Message {
    strings.iter().fold(Message::in_registers(tag), |message, string| {
        let descriptor = StringDescriptor::new(string.len() as u64, 1, false);
        message.typed_words(&[descriptor.raw(), string.as_ptr() as u64])
    })
}

/// Calls `receive` so that strings are received into `rooms`, and mappings are not accepted.
fn receive_into(
    rooms: &mut [&mut [u8]],
    receive: impl FnOnce() -> ipc::Result<Received>,
) -> ipc::Result<Received> {
    if rooms.len() * 2 >= BUFFER_REGISTERS {
        return Err(IpcError::new(IpcPhase::Receive, IpcErrorKind::MessageOverflow));
    }
    let last = rooms.len() - 1;
    for (index, room) in rooms.iter_mut().enumerate() {
        let descriptor = StringDescriptor::new(room.len() as u64, 1, false).with_continues(index < last);
        // SAFETY: the buffers are borrowed until the end of this function, which ends the
        // permission to receive strings.
        unsafe {
            utcb::set_buffer_register(1 + 2 * index, descriptor.raw());
            utcb::set_buffer_register(2 + 2 * index, room.as_mut_ptr() as u64);
        }
    }
    // SAFETY: the buffers are borrowed until the end of this function; the window for pages is
    // empty.
    unsafe { utcb::accept(Acceptor::new(Fpage::NIL, true)) };
    let received = receive();
    utcb::accept_untyped_words();
    received
}
