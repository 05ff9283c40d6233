//! From a message to a kernel port to the generated server, and from its answer to the reply.

use alloc::boxed::Box;
use alloc::sync::Arc;

use mach_interfaces::{gnumach, mach, mach_debug, mach_host, mach_i386, mach_port};
use message::{Header, Status};

use super::call::{Call, TARGET};
use super::form::{self, FORMAT, HEADER};
use super::{Kernel, Object, PortPersonality};
use crate::ipc::{KernelRequest, KernelServer, Message};
use crate::machine::Machine;
use crate::vm::BoxFuture;

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
const LARGEST: usize = largest(&[
    gnumach::REPLY_BYTES,
    mach::REPLY_BYTES,
    mach_debug::REPLY_BYTES,
    mach_host::REPLY_BYTES,
    mach_i386::REPLY_BYTES,
    mach_port::REPLY_BYTES,
]);
const _: () = assert!(LARGEST <= crate::ipc::REPLY_BYTES);

/// Memory in which a server writes a reply.
pub(super) type Buffer = Box<[u8; LARGEST]>;

/// How many buffers for replies are kept.
const KEPT: usize = 8;

/// Puts numbers into the body of a request for the rights and the memory that it carries, and a
/// header in front of it.
fn open<M: Machine, P: PortPersonality<M>>(call: &mut Call<'_, M, P>, message: &mut Message<M>) {
    for (at, item) in message.items.drain(..) {
        form::set(&mut message.bytes, at as usize, call.add(item));
    }
    let reply = form::kind(&message.reply);
    form::add_header(message, reply, TARGET);
}

/// Has the server of the request's interface carry the request out. Returns the size of the reply
/// in the buffer; `None`: there is none.
async fn dispatch<M: Machine, P: PortPersonality<M>>(
    call: &mut Call<'_, M, P>,
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
        mach_debug: 3000..=3099,
        mach_port: 3200..=3299,
        mach_i386: 3800..=3899,
        gnumach: 4200..=4299,
    }
}

impl<M: Machine, P: PortPersonality<M>> KernelServer<M> for Kernel<M, P> {
    fn serve<'a>(self: Arc<Self>, request: KernelRequest<'a, M>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let KernelRequest { object, mut message, interruption, charge } = request;
            let ipc = self.ipc().clone();
            let mut call = Call::new(self.clone(), object.and_then(Object::of), interruption, charge);
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
    fn reply(&self, mut call: Call<'_, M, P>, bytes: &[u8]) -> Option<Box<Message<M>>> {
        let header = Header::read(&FORMAT, bytes)?;
        let mut reply = self.ipc().reserved_message();
        reply.id = header.id as i32;
        reply.bytes.extend_from_slice(bytes.get(HEADER..)?);
        form::close(&mut reply, |number| call.take(number));
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
