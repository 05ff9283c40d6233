//! The short way of a call of a kernel object: the request is read from the caller's memory and
//! carried out, and the reply is written into the caller's memory, in one trap and without a
//! message.
//!
//! It is for requests without rights or memory, whose reply the caller waits for at the reply port.
//! What differs from that, and what would have to wait, goes the general way.

use alloc::sync::Arc;

use macadamia_sync::SpinGuard;

use super::header::{HEADER, Header};
use super::rendezvous::{Plain, Sent, Start, arrive, buffer};
use super::trap::{MsgArguments, MsgOptions};
use crate::ipc::held::{Buffer, HeldReceiver};
use crate::ipc::port::Port;
use crate::ipc::table::Table;
use crate::ipc::{Disposition, KernelServed, Name, Right, SendOnceRight};
use crate::machine::Machine;
use crate::vm::VmMap;

/// The most bytes of a request that goes this way.
const LONGEST: usize = 256;

/// Carries out a message to a kernel port, if it goes the short way. `table` has the caller's
/// names.
#[inline(never)]
pub(super) fn call<M: Machine>(
    caller: &HeldReceiver<M>,
    arguments: &MsgArguments,
    (message, start): (&Plain, &mut Start),
    port: &Arc<Port<M>>,
    mut table: SpinGuard<'_, Table<M>>,
) -> Sent<M> {
    let Some(right) = reply_right(&mut table, arguments, message) else { return Sent::Nothing };
    drop(table);
    let size = HEADER + message.body.next_multiple_of(8);
    let reply = Reply { caller, buffer: buffer(arguments), port: right.port(), name: arguments.receive_name };
    let serve = |request: &mut [u8]| {
        let deliver = &mut |bytes: &mut [u8], id| reply.deliver(bytes, id);
        caller.space().try_serve(port, request, message.id, deliver)
    };
    let served = match start.get_mut(..size) {
        Some(request) => serve(request),
        None => with_long_request(caller.map(), arguments.address, message.body, serve),
    };
    match served {
        KernelServed::Nothing => {
            right.use_up();
            Sent::Nothing
        }
        KernelServed::Delivered => {
            right.use_up();
            Sent::Answered(0)
        }
        KernelServed::Reply(reply) => {
            caller.space().ipc().post(Right::SendOnce(right), reply);
            Sent::Queued
        }
        // The right ends unused, which the caller receives as a notification.
        KernelServed::NoReply => Sent::Queued,
    }
}

/// Reads a request that was not read with its header, and has it carried out.
#[inline(never)]
fn with_long_request<M: Machine>(
    map: &VmMap<M>,
    address: u64,
    body: usize,
    serve: impl FnOnce(&mut [u8]) -> KernelServed<M>,
) -> KernelServed<M> {
    let mut request = [0; LONGEST];
    let is_read = request
        .get_mut(HEADER..HEADER + body)
        .is_some_and(|bytes| map.try_copyin(address + HEADER as u64, bytes));
    match request.get_mut(..HEADER + body.next_multiple_of(8)).filter(|_| is_read) {
        Some(request) => serve(request),
        None => KernelServed::Nothing,
    }
}

/// The right to reply to the request, if the caller waits for the reply at a port at which nothing
/// else is.
fn reply_right<M: Machine>(
    table: &mut Table<M>,
    arguments: &MsgArguments,
    message: &Plain,
) -> Option<SendOnceRight<M>> {
    let (remote, Disposition::CopySend) = message.remote else { return None };
    let (name, Disposition::MakeSendOnce) = message.reply? else { return None };
    if !arguments.options.contains(MsgOptions::RECEIVE) || name != arguments.receive_name {
        return None;
    }
    table.get(remote).filter(|entry| entry.object.sends())?;
    table.make_send_once(name)
}

/// Where a reply goes.
struct Reply<'a, M: Machine> {
    caller: &'a HeldReceiver<M>,
    buffer: Buffer,
    port: &'a Arc<Port<M>>,
    name: Name,
}

impl<M: Machine> Reply<'_, M> {
    /// Writes a reply, which has room for its header, into the caller's buffer. Returns false, and
    /// the port is as before, if it has to go through the queue.
    fn deliver(&self, bytes: &mut [u8], id: i32) -> bool {
        let space = self.caller.space().id;
        let is_next = self.port.state.lock().is_next_receiver(space, self.name);
        if !is_next || bytes.len() > self.buffer.room as usize {
            return false;
        }
        let kind = Disposition::MoveSendOnce.received();
        let (local, kind, sequence) = arrive(self.port, space, kind, None);
        let header = Header { bits: kind << 8, size: bytes.len() as u32, remote: 0, local, sequence, id };
        bytes[..HEADER].copy_from_slice(&header.to_bytes());
        let written = self.caller.map().try_copyout(self.buffer.address, bytes);
        if !written {
            let mut state = self.port.state.lock();
            state.sequence = state.sequence.wrapping_sub(1);
        }
        written
    }
}
