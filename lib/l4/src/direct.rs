//! This thread's IPC for stubs of interfaces.

use crate::ipc::{self, Message, Received};
use crate::utcb;
use direct::{Registers, Transport};
use x2::message::BUFFER_REGISTERS;
use x2::{Acceptor, Fpage, IpcError, IpcErrorKind, IpcPhase, MessageTag, StringDescriptor, ThreadId};

/// The calling thread's message registers and IPC. A request is in the registers from its first
/// word until the call: nothing else may use them in between.
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

/// The message in the registers with string items after it.
fn with_strings(tag: MessageTag, strings: &[&[u8]]) -> Message {
    strings.iter().fold(Message::in_registers(tag), |message, string| {
        let descriptor = StringDescriptor::new(string.len() as u64, 1, false);
        message.typed_words(&[descriptor.raw(), string.as_ptr() as u64])
    })
}

/// Receives strings into `rooms`, and nothing else but words.
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
        // SAFETY: the buffer is a slice that is borrowed until the end of this function, which
        // takes the permission to receive strings back.
        unsafe {
            utcb::set_buffer_register(1 + 2 * index, descriptor.raw());
            utcb::set_buffer_register(2 + 2 * index, room.as_mut_ptr() as u64);
        }
    }
    // SAFETY: as above; the window for pages is empty.
    unsafe { utcb::accept(Acceptor::new(Fpage::NIL, true)) };
    let received = receive();
    utcb::accept_untyped_words();
    received
}
