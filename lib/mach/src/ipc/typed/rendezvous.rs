//! The short way of a message from its sender's memory to a receiver that waits: another thread, or
//! the sender itself, which waits for its own message.

use alloc::sync::Arc;

use macadamia_sync::SpinGuard;

use super::header::{HEADER, Header, PROTECTED_PAYLOAD};
use super::incoming::kind;
use super::kernel_call;
use super::trap::{MsgArguments, MsgOptions};
use crate::ipc::copyin::{HeaderRight, claim_header, commit_header};
use crate::ipc::held::{Buffer, HeldReceiver};
use crate::ipc::message::Destination;
use crate::ipc::notify::Later;
use crate::ipc::port::{Holder, Port};
use crate::ipc::table::Table;
use crate::ipc::{Disposition, MsgErrorKind, Name, Right, Shortage};
use crate::machine::{Attempt, Machine, SystemCall};
use crate::vm::VmMap;

/// The most bytes of a body that goes the short way: the sender's names are locked while it is
/// copied.
const LONGEST: usize = 8192;
/// The options with which a message can go the short way.
const SIMPLE: MsgOptions = MsgOptions::SEND
    .union(MsgOptions::RECEIVE)
    .union(MsgOptions::SEND_TIMEOUT)
    .union(MsgOptions::SEND_INTERRUPT)
    .union(MsgOptions::RECEIVE_INTERRUPT);

/// Carries out the trap `mach_msg` as far as that is possible without a wait of the server: sends
/// the message if its receiver waits outside of its task or is the caller, or has a kernel object
/// carry it out, and lets the caller wait if there is no message for it. `call` is the system call
/// as the machine has it. Never blocks, and allocates nothing.
pub fn try_mach_msg<M: Machine>(
    caller: &Arc<HeldReceiver<M>>,
    arguments: &MsgArguments,
    call: &SystemCall,
) -> Attempt {
    let options = arguments.options;
    if !SIMPLE.contains(options) {
        return Attempt::Event;
    }
    let sent = match options.contains(MsgOptions::SEND) {
        false => Sent::Nothing,
        true => send(caller, arguments),
    };
    match sent {
        Sent::Nothing if options.contains(MsgOptions::SEND) => Attempt::Event,
        Sent::Answered(result) => Attempt::Return(u64::from(result)),
        Sent::Queued => {
            caller.has_sent();
            Attempt::Event
        }
        Sent::ToCaller(delivery) => match delivery.end_own(caller) {
            Some(result) => Attempt::Return(u64::from(result)),
            None => Attempt::Event,
        },
        Sent::Nothing if hold(caller, arguments, call) => Attempt::Held,
        Sent::Nothing => Attempt::Event,
        Sent::To(receiver, delivery) => {
            let attempt = match options.contains(MsgOptions::RECEIVE) {
                // The caller waits already before its message is delivered, so that it waits when
                // the answer comes, however fast that is.
                true if hold(caller, arguments, call) => Attempt::Held,
                false => Attempt::Return(0),
                true => {
                    caller.has_sent();
                    Attempt::Event
                }
            };
            delivery.end(&receiver);
            attempt
        }
    }
}

/// What has become of the caller's message.
pub(super) enum Sent<M: Machine> {
    /// Nothing has been done.
    Nothing,
    /// The receiver has the message, and waits still.
    To(Arc<HeldReceiver<M>>, Delivery),
    /// The caller has received the message.
    ToCaller(Delivery),
    /// A kernel object has carried out the message, and the caller has received the reply, with
    /// this result.
    Answered(u32),
    /// A kernel object has carried out the message. The reply is in the queue of the reply port.
    Queued,
}

/// A message whose receiver has all of it but the end of its wait.
pub(super) struct Delivery {
    result: u32,
    /// The header, if it could not be written without waiting, and its address.
    missing: Option<([u8; HEADER], u64)>,
}

impl Delivery {
    /// Ends the receiver's wait.
    fn end<M: Machine>(self, receiver: &HeldReceiver<M>) {
        match self.missing {
            None => receiver.end(self.result),
            Some((header, address)) => receiver.surrender_write(&header, address, self.result),
        }
    }

    /// Returns the result of the caller's receive; `None`: its task has to end it.
    fn end_own<M: Machine>(self, caller: &HeldReceiver<M>) -> Option<u32> {
        let Some((header, address)) = self.missing else { return Some(self.result) };
        caller.leave_write(&header, address, self.result, MsgErrorKind::ReceiveInvalidData as u32);
        None
    }
}

/// Holds the caller for the receive of a `mach_msg` whose send is done, if there is no message for
/// the caller, and if the options allow it. Returns whether the caller waits.
pub fn hold<M: Machine>(caller: &Arc<HeldReceiver<M>>, arguments: &MsgArguments, call: &SystemCall) -> bool {
    SIMPLE.contains(arguments.options) && caller.hold(arguments.receive_name, buffer(arguments), call)
}

/// The caller's buffer for a message that it receives.
pub(super) fn buffer(arguments: &MsgArguments) -> Buffer {
    Buffer { address: arguments.address, room: arguments.receive_size }
}

/// A message without rights or memory in its body.
pub(super) struct Plain {
    pub(super) header: Header,
    pub(super) remote: HeaderRight,
    pub(super) reply: Option<HeaderRight>,
    /// Whether the local port is the dead name.
    replies_to_dead: bool,
    /// The bytes of the body.
    pub(super) body: usize,
}

/// Sends the caller's message, if its receiver waits or is the caller, or if it goes to a kernel
/// object.
fn send<M: Machine>(caller: &Arc<HeldReceiver<M>>, arguments: &MsgArguments) -> Sent<M> {
    let Some(message) = plain(caller.map(), arguments) else { return Sent::Nothing };
    let size = HEADER + message.body.next_multiple_of(8);
    // What the rights leave is dropped after the table's lock is released.
    let mut later = Later::new();
    let mut table = caller.space().table.lock();
    let Some(port) = table.get(message.remote.0).and_then(|entry| entry.port()).cloned() else {
        return Sent::Nothing;
    };
    if port.kernel.is_some() {
        return kernel_call::call(caller, arguments, &message, &port, table);
    }
    let Some(receiver) = take_receiver(&port, size) else {
        return match receives_own(caller, arguments, &port, size) {
            true => send_to_caller(caller, arguments, &message, &port, table, &mut later),
            false => Sent::Nothing,
        };
    };
    let buffer = receiver.buffer();
    let from = arguments.address + HEADER as u64;
    let to = buffer.address.wrapping_add(HEADER as u64);
    let taken = match caller.map().try_copy(from, receiver.map(), to, message.body) {
        true => take_rights(&mut table, &message, &mut later),
        false => None,
    };
    drop(table);
    drop(later);
    let Some(rights) = taken else {
        // A page is not in memory, or a right is missing: both go the general way.
        receiver.surrender();
        return Sent::Nothing;
    };
    let delivery = deliver(&receiver, buffer, &message, &port, rights);
    Sent::To(receiver, delivery)
}

/// Gives the caller its own message, whose body is in its buffer already.
fn send_to_caller<M: Machine>(
    caller: &HeldReceiver<M>,
    arguments: &MsgArguments,
    message: &Plain,
    port: &Arc<Port<M>>,
    mut table: SpinGuard<'_, Table<M>>,
    later: &mut Later<M>,
) -> Sent<M> {
    let rights = take_rights(&mut table, message, later);
    drop(table);
    match rights {
        None => Sent::Nothing,
        Some(rights) => Sent::ToCaller(deliver(caller, buffer(arguments), message, port, rights)),
    }
}

/// The message to be sent, if it can go the short way.
fn plain<M: Machine>(map: &VmMap<M>, arguments: &MsgArguments) -> Option<Plain> {
    let size = arguments.send_size as usize;
    let fits = (HEADER..=HEADER + LONGEST).contains(&size) && size.is_multiple_of(4);
    if !fits || arguments.address.checked_add(size as u64).is_none() {
        return None;
    }
    let mut header = [0; HEADER];
    map.try_copyin(arguments.address, &mut header).then_some(())?;
    let header = Header::from_bytes(&header);
    let (remote, (local, disposition)) = header.rights().ok()?;
    if header.is_complex() {
        return None;
    }
    let reply = disposition.filter(|_| local.is_valid()).map(|disposition| (local, disposition));
    Some(Plain { header, remote, reply, replies_to_dead: local == Name::DEAD, body: size - HEADER })
}

/// Takes the thread that waits at the port or its set, if a message of `size` bytes fits into
/// its buffer.
fn take_receiver<M: Machine>(port: &Port<M>, size: usize) -> Option<Arc<HeldReceiver<M>>> {
    let mut state = port.state.lock();
    if state.is_dead() || !state.queue.is_empty() || !state.blocked.is_empty() {
        return None;
    }
    let fits = |receiver: &HeldReceiver<M>| receiver.buffer().room as usize >= size;
    if let Some(membership) = &state.membership {
        let mut set = membership.set.state.lock();
        let is_free = set.alive && set.members.first().is_none();
        let held = set.held.take_if(|(receiver, _)| is_free && fits(receiver));
        return held.map(|(receiver, _)| receiver);
    }
    let version = state.version;
    let held = state.held.take_if(|(receiver, held)| *held == version && fits(receiver));
    held.map(|(receiver, _)| receiver)
}

/// Whether the caller is to receive next what it sends to the port: it receives from this port, in
/// which there is no message and at which no other thread is held. The body must fill whole words,
/// as the caller's buffer keeps it.
fn receives_own<M: Machine>(
    caller: &HeldReceiver<M>,
    arguments: &MsgArguments,
    port: &Port<M>,
    size: usize,
) -> bool {
    arguments.options.contains(MsgOptions::RECEIVE)
        && size == arguments.send_size as usize
        && size <= arguments.receive_size as usize
        && port.state.lock().is_next_receiver(caller.space().id, arguments.receive_name)
}

/// The rights of a header that were taken from the sender: that by which the message came, if it is
/// to end, and the right to reply.
struct Rights<M: Machine> {
    destination: Destination<M>,
    reply: Right<M>,
}

/// Takes the rights of a header from the sender's names. `None`: one is missing, and nothing has
/// changed.
fn take_rights<M: Machine>(table: &mut Table<M>, message: &Plain, later: &mut Later<M>) -> Option<Rights<M>> {
    let no_reply = || if message.replies_to_dead { Right::Dead } else { Right::Null };
    match (message.remote, message.reply) {
        // A call. The sender keeps its right, so none is made for the message.
        ((remote, Disposition::CopySend), Some((name, Disposition::MakeSendOnce))) => {
            table.get(remote).filter(|entry| entry.object.sends())?;
            let reply = table.claim(name, Disposition::MakeSendOnce).ok()??;
            Some(Rights { destination: Destination::None, reply: Right::SendOnce(reply) })
        }
        // An answer.
        ((remote, Disposition::MoveSendOnce), None) => {
            let right = table.take_send_once(remote, later)?;
            Some(Rights { destination: Destination::SendOnce(right), reply: no_reply() })
        }
        (remote, reply) => {
            let claimed = claim_header(table, remote, reply).ok()?;
            let (destination, reply) = commit_header(table, remote, reply, claimed, None, later);
            Some(Rights { destination, reply: reply.unwrap_or_else(no_reply) })
        }
    }
}

/// Gives the receiver the header of a message to `port` whose body it has.
fn deliver<M: Machine>(
    receiver: &HeldReceiver<M>,
    buffer: Buffer,
    message: &Plain,
    port: &Port<M>,
    Rights { destination, reply }: Rights<M>,
) -> Delivery {
    let space = receiver.space();
    let (local, kind_of_local, sequence) = arrive(port, space.id, message.remote.1.received());
    if let Destination::SendOnce(right) = destination {
        right.use_up();
    }
    let kind_of_remote = kind(&reply);
    let (remote, result) = match reply {
        Right::Null => (Name::NULL, 0),
        reply => match space.copyout_right(reply) {
            Ok(name) => (name, 0),
            Err(_) => (Name::NULL, MsgErrorKind::ReceiveHeaderError as u32 | Shortage::IPC_SPACE.bits()),
        },
    };
    let bits = kind_of_local << 8 | if result == 0 { kind_of_remote } else { 0 };
    let size = (HEADER + message.body.next_multiple_of(8)) as u32;
    let (remote, id) = (u64::from(remote.0), message.header.id);
    let bytes = Header { bits, size, remote, local, sequence, id }.to_bytes();
    let written = receiver.map().try_copyout(buffer.address, &bytes);
    Delivery { result, missing: (!written).then_some((bytes, buffer.address)) }
}

/// Counts a message that arrives at the port by a right of the kind `kind`. Returns the local port
/// of its header for the task `space`, which receives it, with the kind, and its number.
pub(super) fn arrive<M: Machine>(port: &Port<M>, space: u64, kind: u32) -> (u64, u32, u32) {
    let mut state = port.state.lock();
    let sequence = state.sequence;
    state.sequence = sequence.wrapping_add(1);
    match (state.holder, state.payload) {
        (Holder::Space(holder, _), Some(payload)) if holder == space => {
            (payload, PROTECTED_PAYLOAD, sequence)
        }
        (Holder::Space(holder, name), None) if holder == space => (u64::from(name.0), kind, sequence),
        _ => (u64::from(Name::NULL.0), kind, sequence),
    }
}
