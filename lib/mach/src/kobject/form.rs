//! The form in which the kernel's own stubs see messages: a header and a body of the typed dialect,
//! in which each right and each piece of memory out of line is a number.

use message::{DEALLOCATE, Format, Header, for_each_item, is_right};

use crate::ipc::{Disposition, Item, Message, Right};
use crate::machine::Machine;

/// The layout of messages.
pub(super) const FORMAT: Format = mach_interfaces::mach::FORMAT;
/// The size in bytes of a header, and of a right or an address in a body.
pub(super) const HEADER: usize = 32;
const SLOT: usize = 8;
/// The type of a send-once right in a header.
pub(super) const SEND_ONCE: u32 = Disposition::MoveSendOnce as u32;
/// The bit of a header that says that the message has rights or memory out of line.
const COMPLEX: u32 = 1 << 31;

/// The number of a right's type in a header; 0 for the null right.
pub(super) fn kind<M: Machine>(right: &Right<M>) -> u32 {
    match right {
        Right::Null => 0,
        Right::Dead | Right::Send(_) => Disposition::MoveSend as u32,
        Right::SendOnce(_) => Disposition::MoveSendOnce as u32,
        Right::Receive(_) => Disposition::MoveReceive as u32,
    }
}

/// Puts a number for a right or memory into a body.
pub(super) fn set(body: &mut [u8], at: usize, number: u64) {
    if let Some(slot) = body.get_mut(at..at + SLOT) {
        slot.copy_from_slice(&number.to_le_bytes());
    }
}

/// Puts a header in front of the body of a message that has arrived at the port with the number
/// `local`, with a right of the type `reply` to reply.
pub(super) fn add_header<M: Machine>(message: &mut Message<M>, reply: u32, local: u64) {
    let complex = if message.complex { COMPLEX } else { 0 };
    let body = message.bytes.len();
    message.bytes.resize(HEADER + body, 0);
    message.bytes.copy_within(..body, HEADER);
    write_header(&mut message.bytes, reply | complex, local, message.id);
}

/// Writes the header of a request with the id `id`, which has arrived at the port with the number
/// `local`, in front of the body. `reply` is the type of the right to reply.
pub(super) fn write_header(request: &mut [u8], reply: u32, local: u64, id: i32) {
    let header = Header {
        bits: reply | (Disposition::MoveSend as u32) << 8,
        size: request.len(),
        remote: u64::from(reply & 0xff != 0),
        local,
        sequence: 0,
        id: id as u32,
    };
    header.write(&FORMAT, request);
}

/// Completes a message whose body a stub has written: each right and each piece of memory for which
/// the body has a number is what `take` returns for the number.
pub(super) fn close<M: Machine>(message: &mut Message<M>, mut take: impl FnMut(u64) -> Item<M>) {
    let mut items = core::mem::take(&mut message.items);
    let mut moves_receive_right = false;
    let mut each = |body: &mut [u8], at: usize| {
        let Some(slot) = body.get_mut(at..at + SLOT) else { return };
        let mut number = [0; SLOT];
        number.copy_from_slice(slot);
        slot.fill(0);
        let item = take(u64::from_le_bytes(number));
        moves_receive_right |= matches!(item, Item::Right(Right::Receive(_)));
        items.push((at as u32, item));
    };
    // A stub has written whole items.
    let _ = for_each_item(&FORMAT, &mut message.bytes, |descriptor, body, at| {
        if !descriptor.is_inline() {
            each(body, at);
            descriptor.flags |= DEALLOCATE;
        } else if is_right(descriptor.name) {
            (0..descriptor.number as usize).for_each(|index| each(body, at + index * SLOT));
        }
        if let Some(disposition) = Disposition::from_number(descriptor.name) {
            descriptor.name = disposition.received();
        }
    });
    message.complex = !items.is_empty();
    (message.items, message.moves_receive_right) = (items, moves_receive_right);
}
