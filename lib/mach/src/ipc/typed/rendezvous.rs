//! The short way of a message from its sender's memory to a receiver that waits.

use alloc::sync::Arc;

use super::header::{HEADER, Header, PROTECTED_PAYLOAD};
use super::incoming::kind;
use super::trap::{MsgArguments, MsgOptions};
use crate::ipc::copyin::{HeaderRight, claim_header, commit_header};
use crate::ipc::message::Destination;
use crate::ipc::notify::Later;
use crate::ipc::parking::{Buffer, Parking};
use crate::ipc::port::{Holder, Port};
use crate::ipc::{MsgErrorKind, Name, Right, Shortage};
use crate::machine::{Attempt, Machine, PAGE_SIZE, Protection, SystemCall};
use crate::vm::VmMap;

/// How many bytes are copied at a time.
const PIECE: usize = 512;
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
/// the message if its receiver waits outside of its task, and lets the caller wait so if there is
/// none for it. `call` is the system call as the machine has it. Never blocks, and allocates
/// nothing.
pub fn try_mach_msg<M: Machine>(
    caller: &Arc<Parking<M>>,
    arguments: &MsgArguments,
    call: &SystemCall,
) -> Attempt {
    let options = arguments.options;
    if !SIMPLE.contains(options) {
        return Attempt::Event;
    }
    let delivery = match options.contains(MsgOptions::SEND) {
        false => None,
        true => match send(caller, arguments) {
            None => return Attempt::Event,
            delivery => delivery,
        },
    };
    let attempt = match options.contains(MsgOptions::RECEIVE) {
        // The caller waits already before its message is delivered, so that it waits when the
        // answer comes, however fast that is.
        true if park(caller, arguments, call) => Attempt::Held,
        false if delivery.is_some() => Attempt::Return(0),
        true if delivery.is_some() => {
            caller.has_sent();
            Attempt::Event
        }
        _ => Attempt::Event,
    };
    if let Some(delivery) = delivery {
        delivery.end();
    }
    attempt
}

/// A message whose receiver has all of it but the end of its wait.
struct Delivery<M: Machine> {
    receiver: Arc<Parking<M>>,
    result: u32,
    /// The header, if it could not be written without waiting, and its address.
    missing: Option<([u8; HEADER], u64)>,
}

impl<M: Machine> Delivery<M> {
    /// Ends the receiver's wait.
    fn end(self) {
        match self.missing {
            None => self.receiver.end(self.result),
            Some((header, address)) => self.receiver.surrender_write(&header, address, self.result),
        }
    }
}

/// Parks the caller for the receive of a `mach_msg` whose send is done, if there is no message for
/// the caller, and if the options allow it. Returns whether the caller waits.
pub fn park<M: Machine>(caller: &Arc<Parking<M>>, arguments: &MsgArguments, call: &SystemCall) -> bool {
    let buffer = Buffer { address: arguments.address, room: arguments.receive_size };
    SIMPLE.contains(arguments.options) && caller.park(arguments.receive_name, buffer, call)
}

/// A message without rights or memory in its body.
struct Plain {
    header: Header,
    remote: HeaderRight,
    reply: Option<HeaderRight>,
    /// Whether the local port is the dead name.
    replies_to_dead: bool,
    /// The bytes of the body.
    body: usize,
}

/// Sends the caller's message, if its receiver waits. `None`: nothing has been done.
fn send<M: Machine>(caller: &Parking<M>, arguments: &MsgArguments) -> Option<Delivery<M>> {
    let message = plain(caller.map(), arguments)?;
    let size = HEADER + message.body.next_multiple_of(8);
    // What the rights leave is dropped after the table's lock is released.
    let mut later = Later::new();
    let mut table = caller.space().table.lock();
    let port = table.get(message.remote.0)?.port()?;
    let receiver = take_receiver(port, size)?;
    let buffer = receiver.buffer();
    let from = arguments.address + HEADER as u64;
    let to = buffer.address.wrapping_add(HEADER as u64);
    let claimed = match copy(caller.map(), from, receiver.map(), to, message.body) {
        true => claim_header(&mut table, message.remote, message.reply).ok(),
        false => None,
    };
    let Some(claimed) = claimed else {
        // A page is not in memory, or a right is missing: both go the general way.
        drop(table);
        receiver.surrender();
        return None;
    };
    let (destination, reply) =
        commit_header(&mut table, message.remote, message.reply, claimed, None, &mut later);
    drop(table);
    drop(later);
    let no_reply = || if message.replies_to_dead { Right::Dead } else { Right::Null };
    let reply = reply.unwrap_or_else(no_reply);
    Some(deliver(receiver, buffer, &message.header, size, destination, reply))
}

/// The message to be sent, if it can go the short way.
fn plain<M: Machine>(map: &VmMap<M>, arguments: &MsgArguments) -> Option<Plain> {
    let size = arguments.send_size as usize;
    let fits = (HEADER..=HEADER + LONGEST).contains(&size) && size.is_multiple_of(4);
    if !fits || arguments.address.checked_add(size as u64).is_none() {
        return None;
    }
    let mut header = [0; HEADER];
    read(map, arguments.address, &mut header)?;
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
fn take_receiver<M: Machine>(port: &Port<M>, size: usize) -> Option<Arc<Parking<M>>> {
    let mut state = port.state.lock();
    if state.is_dead() || !state.queue.is_empty() || !state.blocked.is_empty() {
        return None;
    }
    let fits = |receiver: &Parking<M>| receiver.buffer().room as usize >= size;
    if let Some(membership) = &state.membership {
        let mut set = membership.set.state.lock();
        let is_free = set.alive && set.members.first().is_none();
        let parked = set.parked.take_if(|(receiver, _)| is_free && fits(receiver));
        return parked.map(|(receiver, _)| receiver);
    }
    let version = state.version;
    let parked = state.parked.take_if(|(receiver, parked)| *parked == version && fits(receiver));
    parked.map(|(receiver, _)| receiver)
}

/// Gives the receiver the header of a message whose body it has.
fn deliver<M: Machine>(
    receiver: Arc<Parking<M>>,
    buffer: Buffer,
    sent: &Header,
    size: usize,
    destination: Destination<M>,
    reply: Right<M>,
) -> Delivery<M> {
    let space = receiver.space();
    let (port, kind_of_local) = match &destination {
        Destination::Send(right) => (Some(right.port()), 17),
        Destination::SendOnce(right) => (Some(right.port()), 18),
        Destination::None => (None, 0),
    };
    let (name, payload, sequence) = port.map_or((Name::NULL, None, 0), |port| {
        let mut state = port.state.lock();
        let sequence = state.sequence;
        state.sequence = sequence.wrapping_add(1);
        match state.holder {
            Holder::Space(holder, name) if holder == space.id => (name, state.payload, sequence),
            _ => (Name::NULL, None, sequence),
        }
    });
    let (local, kind_of_local) = match payload {
        Some(payload) if name != Name::NULL => (payload, PROTECTED_PAYLOAD),
        _ => (u64::from(name.0), kind_of_local),
    };
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
    let header =
        Header { bits, size: size as u32, remote: u64::from(remote.0), local, sequence, id: sent.id };
    let bytes = header.to_bytes();
    let missing = match write(receiver.map(), buffer.address, &bytes) {
        Some(()) => None,
        None => Some((bytes, buffer.address)),
    };
    Delivery { receiver, result, missing }
}

/// Copies bytes from one task's memory to another's, or within one. Returns false if that is not
/// possible without waiting; a part may have been copied then.
fn copy<M: Machine>(from: &VmMap<M>, source: u64, to: &VmMap<M>, target: u64, length: usize) -> bool {
    if length == 0 {
        return true;
    }
    let mut piece = [0; PIECE];
    let mut done = 0;
    while done < length {
        let count = (length - done).min(PIECE);
        let piece = &mut piece[..count];
        let (source, target) = (source.wrapping_add(done as u64), target.wrapping_add(done as u64));
        if read(from, source, piece).is_none() || write(to, target, piece).is_none() {
            return false;
        }
        done += count;
    }
    true
}

/// Reads bytes of a task's memory. `None`: that is not possible without waiting.
fn read<M: Machine>(map: &VmMap<M>, address: u64, buffer: &mut [u8]) -> Option<()> {
    each_page(address, buffer.len(), |at, offset, done, count| {
        let part = &mut buffer[done..done + count];
        map.try_with_frame(at, Protection::READ, |frame| map.vm().machine().read_frame(frame, offset, part))?
            .ok()
    })
}

/// Writes bytes to a task's memory. `None`: that is not possible without waiting.
fn write<M: Machine>(map: &VmMap<M>, address: u64, bytes: &[u8]) -> Option<()> {
    each_page(address, bytes.len(), |at, offset, done, count| {
        let part = &bytes[done..done + count];
        map.try_with_frame(at, Protection::WRITE, |frame| {
            map.vm().machine().write_frame(frame, offset, part);
        })?
        .ok()
    })
}

/// Calls `with` for the part of each page in a range: its address, the offset in the page, the
/// bytes done before, and the bytes of this part.
fn each_page(
    address: u64,
    length: usize,
    mut with: impl FnMut(u64, usize, usize, usize) -> Option<()>,
) -> Option<()> {
    let mut done = 0;
    while done < length {
        let at = address.checked_add(done as u64)?;
        let offset = (at % PAGE_SIZE) as usize;
        let count = (length - done).min(PAGE_SIZE as usize - offset);
        with(at, offset, done, count)?;
        done += count;
    }
    Some(())
}
