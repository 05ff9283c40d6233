//! From a message to a kernel port to the generated server, and from its answer to the reply.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use mach_interfaces::{gnumach, mach, mach_debug, mach_host, mach_i386, mach_port};
use message::{Header, Status};

use super::call::{Call, TARGET};
use super::form::{self, FORMAT, HEADER};
use super::{Kernel, Object, PortPersonality};
use crate::ipc::{
    DeliverReply, Interruption, KernelRequest, KernelServed, KernelServer, Message, PlainRequest,
};
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

/// Whether a call has no effect before it may have to wait, and acts on no thread, which could be
/// the caller's. If such a call would have to wait, it is given up and begins again the general
/// way.
fn can_be_tried(call: u32) -> bool {
    use mach_interfaces::{gnumach::id as gnu, mach::id, mach_host::id as host};
    match call {
        // All calls on names.
        3200..=3299 => true,
        id::TASK_INFO | id::THREAD_INFO | id::TASK_GET_SPECIAL_PORT | id::THREAD_GET_SPECIAL_PORT => true,
        id::VM_ALLOCATE | id::VM_DEALLOCATE | id::VM_PROTECT | id::VM_INHERIT | id::VM_REGION => true,
        id::VM_STATISTICS => true,
        host::HOST_INFO | host::HOST_GET_TIME | host::HOST_GET_TIME64 | host::HOST_GET_UPTIME64 => true,
        host::PROCESSOR_INFO | host::PROCESSOR_SET_INFO | host::PROCESSOR_SET_DEFAULT => true,
        gnu::VM_CACHE_STATISTICS | gnu::GSYNC_WAKE => true,
        _ => false,
    }
}

impl<M: Machine, P: PortPersonality<M>> KernelServer<M> for Kernel<M, P> {
    fn try_serve(
        self: Arc<Self>,
        request: PlainRequest<'_, M>,
        deliver: DeliverReply<'_>,
    ) -> KernelServed<M> {
        let PlainRequest { object, bytes, id, charge } = request;
        if !can_be_tried(id as u32) {
            return KernelServed::Nothing;
        }
        form::write_header(bytes, form::SEND_ONCE, TARGET, id);
        let interruption = Interruption::new();
        let mut call = Call::new(self.clone(), object.and_then(Object::of), &interruption, charge);
        let mut buffer = self.buffer();
        let size = {
            let dispatched = pin!(dispatch(&mut call, bytes, &mut buffer));
            dispatched.poll(&mut Context::from_waker(Waker::noop()))
        };
        let served = match size {
            Poll::Pending => KernelServed::Nothing,
            Poll::Ready(None) => KernelServed::NoReply,
            Poll::Ready(Some(size)) => match Header::read(&FORMAT, &buffer[..size]) {
                Some(header) if call.is_empty() && deliver(&mut buffer[..size], header.id as i32) => {
                    KernelServed::Delivered
                }
                _ => self.reply(call, &buffer[..size]).map_or(KernelServed::NoReply, KernelServed::Reply),
            },
        };
        self.keep(buffer);
        served
    }

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
