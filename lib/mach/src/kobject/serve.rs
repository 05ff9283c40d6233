//! From a message to a kernel port to the generated server, and from its answer to the reply.

use alloc::boxed::Box;
use alloc::sync::Arc;

use mach_interfaces::{mach, mach_host, mach_port};
use message::{DEALLOCATE, Header, Status, for_each_item, is_right};

use super::call::{Call, TARGET};
use super::{Kernel, Object, PortPersonality};
use crate::ipc::{Disposition, Item, KernelRequest, KernelServer, Message, Right};
use crate::machine::Machine;
use crate::vm::BoxFuture;

/// The size in bytes of a header, and of a right or an address in a body.
const HEADER: usize = 32;
const SLOT: usize = 8;
/// The layout of messages.
const FORMAT: message::Format = mach::FORMAT;
/// The bit of a header that says that the message has rights or memory out of line.
const COMPLEX: u32 = 1 << 31;

const fn largest(sizes: &[usize]) -> usize {
    let (mut at, mut largest) = (0, 0);
    while at < sizes.len() {
        if sizes[at] > largest {
            largest = sizes[at];
        }
        at += 1;
    }
    largest
}

/// Bytes of the largest reply.
const LARGEST: usize = largest(&[mach::REPLY_BYTES, mach_host::REPLY_BYTES, mach_port::REPLY_BYTES]);
const _: () = assert!(LARGEST <= crate::ipc::REPLY_BYTES);

/// Memory in which a server writes a reply.
pub(super) type Buffer = Box<[u8; LARGEST]>;

/// How many buffers for replies are kept.
const KEPT: usize = 8;

/// The number of a right's type in a header; 0 for the null right.
fn kind<M: Machine>(right: &Right<M>) -> u32 {
    match right {
        Right::Null => 0,
        Right::Dead | Right::Send(_) => Disposition::MoveSend as u32,
        Right::SendOnce(_) => Disposition::MoveSendOnce as u32,
        Right::Receive(_) => Disposition::MoveReceive as u32,
    }
}

/// Puts numbers into the body of a request for the rights and the memory that it carries, and a
/// header in front of it.
fn open<M: Machine, P: PortPersonality<M>>(call: &mut Call<M, P>, message: &mut Message<M>) {
    for (at, item) in message.items.drain(..) {
        let number = call.add(item);
        if let Some(slot) = message.bytes.get_mut(at as usize..at as usize + SLOT) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
    }
    let complex = if message.complex { COMPLEX } else { 0 };
    let reply = kind(&message.reply);
    let header = Header {
        bits: reply | (Disposition::MoveSend as u32) << 8 | complex,
        size: HEADER + message.bytes.len(),
        remote: u64::from(reply != 0),
        local: TARGET,
        sequence: 0,
        id: message.id as u32,
    };
    message.bytes.splice(0..0, [0; HEADER]);
    header.write(&FORMAT, &mut message.bytes);
}

/// Makes the body of a reply: takes the rights and the memory out of the call for which the body
/// has numbers.
fn close<M: Machine, P: PortPersonality<M>>(call: &mut Call<M, P>, reply: &mut Message<M>) {
    let mut items = core::mem::take(&mut reply.items);
    let mut moves_receive_right = false;
    let mut each = |body: &mut [u8], at: usize| {
        let Some(slot) = body.get_mut(at..at + SLOT) else { return };
        let mut number = [0; SLOT];
        number.copy_from_slice(slot);
        slot.fill(0);
        let item = call.take(u64::from_le_bytes(number));
        moves_receive_right |= matches!(item, Item::Right(Right::Receive(_)));
        items.push((at as u32, item));
    };
    // The server has written whole items.
    let _ = for_each_item(&FORMAT, &mut reply.bytes, |descriptor, body, at| {
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
    reply.complex = !items.is_empty();
    (reply.items, reply.moves_receive_right) = (items, moves_receive_right);
}

/// Has the server of the request's interface carry the request out. Returns the size of the reply
/// in the buffer; `None`: there is none.
async fn dispatch<M: Machine, P: PortPersonality<M>>(
    call: &mut Call<M, P>,
    request: &[u8],
    buffer: &mut Buffer,
) -> Option<usize> {
    let header = Header::read(&FORMAT, request)?;
    macro_rules! serve {
        ($($interface:ident: $ids:pat,)*) => {
            match header.id {
                $($ids => {
                    let reply = buffer.first_chunk_mut::<{ $interface::REPLY_BYTES }>()?;
                    $interface::serve(call, request, reply).await
                })*
                _ => message::answer(&FORMAT, &header, &mut buffer[..], Err(Status::BAD_ID)),
            }
        };
    }
    serve! {
        mach: 2000..=2099,
        mach_host: 2600..=2699,
        mach_port: 3200..=3299,
    }
}

impl<M: Machine, P: PortPersonality<M>> KernelServer<M> for Kernel<M, P> {
    fn serve(self: Arc<Self>, request: KernelRequest<M>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let KernelRequest { object, mut message, charge } = request;
            let ipc = self.ipc().clone();
            let mut call = Call::new(self.clone(), object.and_then(Object::of), charge);
            open(&mut call, &mut message);
            let mut buffer = self.buffer();
            let size = dispatch(&mut call, &message.bytes, &mut buffer).await;
            let to = core::mem::take(&mut message.reply);
            let reply = size.and_then(|size| self.reply(call, buffer.get(..size)?));
            self.keep(buffer);
            ipc.reuse(message);
            if let Some(reply) = reply {
                ipc.post(to, reply);
            }
        })
    }
}

impl<M: Machine, P: PortPersonality<M>> Kernel<M, P> {
    /// The message of a reply that the server has written.
    fn reply(&self, mut call: Call<M, P>, bytes: &[u8]) -> Option<Box<Message<M>>> {
        let header = Header::read(&FORMAT, bytes)?;
        let mut reply = self.ipc().reserved_message();
        reply.id = header.id as i32;
        reply.bytes.extend_from_slice(bytes.get(HEADER..)?);
        close(&mut call, &mut reply);
        let items = reply.items.iter().map(|(_, item)| item.bytes()).sum::<usize>();
        let Call { mut charge, .. } = call;
        let size = Message::<M>::BYTES + reply.bytes.len() + items;
        charge.shrink(size);
        reply.charge = Some(charge);
        Some(reply)
    }

    fn buffer(&self) -> Buffer {
        let kept = self.buffers.lock().pop();
        kept.unwrap_or_else(|| Box::new([0; LARGEST]))
    }

    fn keep(&self, buffer: Buffer) {
        let mut buffers = self.buffers.lock();
        if buffers.len() < KEPT {
            buffers.push(buffer);
        }
    }
}
