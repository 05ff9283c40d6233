//! The short way of a message from its sender's memory to a receiver that waits: another thread, or
//! the sender itself, which waits for its own message.

use alloc::sync::Arc;

use macadamia_sync::SpinGuard;

use super::header::{HEADER, Header, PROTECTED_PAYLOAD};
use super::incoming::kind;
use super::kernel_call;
use super::trap::{MsgArguments, MsgOptions};
use crate::KernResult;
use crate::ipc::copyin::{HeaderRight, claim_header, commit_header};
use crate::ipc::held::{Buffer, Held, HeldReceiver};
use crate::ipc::message::Destination;
use crate::ipc::notify::Later;
use crate::ipc::port::{Holder, Port, PortState};
use crate::ipc::table::Table;
use crate::ipc::{Disposition, MsgErrorKind, Name, Right, SendOnceRight, SendRight, Shortage, Space};
use crate::machine::{Attempt, Machine, SystemCall};
use crate::vm::VmMap;

/// The most bytes of a body that goes the short way: the sender's names are locked while it is
/// copied.
const LONGEST: usize = 8192;
/// How many bytes of a body are read together with the header: as many as most requests to kernel
/// objects have.
const WITH_HEADER: usize = 64;
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
    if !options.contains(MsgOptions::SEND) {
        return if hold(caller, arguments, call) { Attempt::Held } else { Attempt::Event };
    }
    match send(caller, arguments, call) {
        Sent::Nothing => Attempt::Event,
        Sent::Answered(result) => Attempt::Return(u64::from(result)),
        Sent::Queued => {
            caller.has_sent();
            Attempt::Event
        }
        // What is left is the caller's `Rest`.
        Sent::ToCaller(Delivery { is_whole: false, .. }) => Attempt::Event,
        Sent::ToCaller(Delivery { result, .. }) => Attempt::Return(u64::from(result)),
        Sent::To { receiver, delivery, caller_waits } => {
            let attempt = match options.contains(MsgOptions::RECEIVE) {
                true if caller_waits => Attempt::Held,
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
    /// The receiver has the message, and waits still. The caller waits for a message, if it was to
    /// receive and there was none.
    To { receiver: Arc<HeldReceiver<M>>, delivery: Delivery, caller_waits: bool },
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
    /// The result of the receive.
    result: u32,
    /// Whether the header is written, too. If not, its writing is left to the receiver's task.
    is_whole: bool,
}

impl Delivery {
    /// Ends the receiver's wait.
    #[inline]
    fn end<M: Machine>(self, receiver: &HeldReceiver<M>) {
        if self.is_whole { receiver.end(self.result) } else { receiver.surrender() }
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
    pub(super) id: i32,
    pub(super) remote: HeaderRight,
    pub(super) reply: Option<HeaderRight>,
    /// Whether the local port is the dead name.
    replies_to_dead: bool,
    /// How many bytes the body has.
    pub(super) body: usize,
}

/// The bytes of a message that are read first: the header, and the first of the body.
pub(super) type Start = [u8; HEADER + WITH_HEADER];

/// Sends the caller's message, if its receiver waits or is the caller, or if it goes to a kernel
/// object.
fn send<M: Machine>(caller: &Arc<HeldReceiver<M>>, arguments: &MsgArguments, call: &SystemCall) -> Sent<M> {
    let mut start = [0; HEADER + WITH_HEADER];
    let Some(message) = plain(caller.map(), arguments, &mut start) else { return Sent::Nothing };
    match (message.remote.1, message.reply) {
        (Disposition::CopySend, Some((_, Disposition::MakeSendOnce))) => {
            transfer::<M, CallRights<M>>(caller, arguments, &message, &mut start, call)
        }
        (Disposition::MoveSendOnce, None) if !message.replies_to_dead => {
            transfer::<M, AnswerRights<M>>(caller, arguments, &message, &mut start, call)
        }
        (Disposition::MakeSend | Disposition::CopySend, None) if !message.replies_to_dead => {
            transfer::<M, SendRights<M>>(caller, arguments, &message, &mut start, call)
        }
        _ => transfer_other(caller, arguments, &message, &mut start, call),
    }
}

/// Sends a message with other rights than those of a call, an answer, or a message without reply.
#[inline(never)]
fn transfer_other<M: Machine>(
    caller: &Arc<HeldReceiver<M>>,
    arguments: &MsgArguments,
    message: &Plain,
    start: &mut Start,
    call: &SystemCall,
) -> Sent<M> {
    transfer::<M, OtherRights<M>>(caller, arguments, message, start, call)
}

/// Sends a message whose header has rights of the kind `R`.
#[inline(always)]
fn transfer<M: Machine, R: HeaderRights<M>>(
    caller: &Arc<HeldReceiver<M>>,
    arguments: &MsgArguments,
    message: &Plain,
    start: &mut Start,
    call: &SystemCall,
) -> Sent<M> {
    let size = HEADER + message.body.next_multiple_of(8);
    let mut table = caller.space().table.lock();
    let Some(port) = table.get(message.remote.0).and_then(|entry| entry.port()).cloned() else {
        return Sent::Nothing;
    };
    if port.kernel.is_some() {
        return kernel_call::call(caller, arguments, (message, start), &port, table);
    }
    let (receiver, target) = match receiver(&port, caller, arguments, size) {
        Receiver::Waiting(receiver, target) => (receiver, target),
        Receiver::Caller => return send_to_caller::<M, R>(caller, arguments, message, &port, table),
        Receiver::None => return Sent::Nothing,
    };
    let from = arguments.address + HEADER as u64;
    let to = target.address.wrapping_add(HEADER as u64);
    let is_copied = message.body == 0 || caller.map().try_copy(from, receiver.map(), to, message.body);
    let taken = if is_copied { R::take(&mut table, message) } else { None };
    // The caller waits already before its message is delivered, so that it waits when the answer
    // comes, however fast that is.
    let caller_waits = taken.is_some()
        && arguments.options.contains(MsgOptions::RECEIVE)
        && caller.hold_at(&mut table, arguments.receive_name, buffer(arguments), call);
    drop(table);
    let Some(rights) = taken else {
        // A page is not in memory, or a right is missing: both go the general way.
        receiver.surrender();
        return Sent::Nothing;
    };
    let delivery = deliver(&receiver, target, message, &port, rights);
    Sent::To { receiver, delivery, caller_waits }
}

/// Gives the caller its own message, whose body is in its buffer already.
#[inline(never)]
fn send_to_caller<M: Machine, R: HeaderRights<M>>(
    caller: &HeldReceiver<M>,
    arguments: &MsgArguments,
    message: &Plain,
    port: &Arc<Port<M>>,
    mut table: SpinGuard<'_, Table<M>>,
) -> Sent<M> {
    let rights = R::take(&mut table, message);
    drop(table);
    match rights {
        None => Sent::Nothing,
        Some(rights) => Sent::ToCaller(deliver(caller, buffer(arguments), message, port, rights)),
    }
}

/// The message to be sent, if it can go the short way. Its first bytes are read into `start`.
#[inline(always)]
fn plain<M: Machine>(map: &VmMap<M>, arguments: &MsgArguments, start: &mut Start) -> Option<Plain> {
    let size = arguments.send_size as usize;
    let fits = (HEADER..=HEADER + LONGEST).contains(&size) && size.is_multiple_of(4);
    if !fits || arguments.address.checked_add(size as u64).is_none() {
        return None;
    }
    map.try_copyin(arguments.address, start.get_mut(..size.min(HEADER + WITH_HEADER))?).then_some(())?;
    let header = Header::from_bytes(start.first_chunk()?);
    let (remote, (local, disposition)) = header.rights().ok()?;
    if header.is_complex() {
        return None;
    }
    let reply = disposition.filter(|_| local.is_valid()).map(|disposition| (local, disposition));
    let replies_to_dead = local == Name::DEAD;
    Some(Plain { id: header.id, remote, reply, replies_to_dead, body: size - HEADER })
}

/// What gets a message next that goes the short way.
enum Receiver<M: Machine> {
    /// A thread that waits, which was taken from its place, and its buffer.
    Waiting(Arc<HeldReceiver<M>>, Buffer),
    /// The caller, which receives the message that it sends.
    Caller,
    /// None: the message goes the general way.
    None,
}

/// What receives a message of `size` bytes that the caller sends to the port.
#[inline(always)]
fn receiver<M: Machine>(
    port: &Port<M>,
    caller: &HeldReceiver<M>,
    arguments: &MsgArguments,
    size: usize,
) -> Receiver<M> {
    let mut state = port.state.lock();
    match take_receiver(&mut state, size) {
        Some((receiver, target)) => Receiver::Waiting(receiver, target),
        None if receives_own(caller, arguments, &state, size) => Receiver::Caller,
        None => Receiver::None,
    }
}

/// Takes the thread that waits at a port or its set, if a message of `size` bytes fits into its
/// buffer, which is also returned.
#[inline(always)]
fn take_receiver<M: Machine>(
    state: &mut PortState<M>,
    size: usize,
) -> Option<(Arc<HeldReceiver<M>>, Buffer)> {
    if state.is_dead() || !state.queue.is_empty() || !state.blocked.is_empty() {
        return None;
    }
    if let Some(membership) = &state.membership {
        let mut set = membership.set.state.lock();
        let is_free = set.alive && set.members.first().is_none();
        return if is_free { take_fitting(&mut set.held, size) } else { None };
    }
    let is_current = state.held.as_ref().is_some_and(|(_, version)| *version == state.version);
    if is_current { take_fitting(&mut state.held, size) } else { None }
}

/// Takes the thread from its place if a message of `size` bytes fits into its buffer.
#[inline(always)]
fn take_fitting<M: Machine>(held: &mut Held<M>, size: usize) -> Option<(Arc<HeldReceiver<M>>, Buffer)> {
    let buffer = held.as_ref()?.0.buffer();
    let fitting = if buffer.room as usize >= size { held.take() } else { None };
    fitting.map(|(receiver, _)| (receiver, buffer))
}

/// Whether the caller is to receive next what it sends to a port: it receives from this port, in
/// which there is no message and at which no other thread is held. The body must fill whole words,
/// as the caller's buffer keeps it.
fn receives_own<M: Machine>(
    caller: &HeldReceiver<M>,
    arguments: &MsgArguments,
    state: &PortState<M>,
    size: usize,
) -> bool {
    arguments.options.contains(MsgOptions::RECEIVE)
        && size == arguments.send_size as usize
        && size <= arguments.receive_size as usize
        && state.is_next_receiver(caller.space().id, arguments.receive_name)
}

/// The rights of a header on their way from the sender's names to the receiver. There is a type for
/// each frequent pair of rights, so that its code is made for that pair alone.
trait HeaderRights<M: Machine>: Sized {
    /// Takes the rights from the sender's names. `None`: one is missing, and nothing has changed.
    fn take(table: &mut Table<M>, message: &Plain) -> Option<Self>;

    /// Counts the message at the port, and ends the right by which it came: see [`arrive`].
    fn arrive(&mut self, port: &Port<M>, space: u64, kind: u32) -> (u64, u32, u32);

    /// Gives the receiver the right to reply. Returns its name and kind.
    fn name(self, space: &Space<M>) -> KernResult<(Name, u32)>;
}

/// The rights of a call: by a send right that the sender keeps, with a new send-once right for the
/// answer.
struct CallRights<M: Machine>(SendOnceRight<M>);

impl<M: Machine> HeaderRights<M> for CallRights<M> {
    #[inline(always)]
    fn take(table: &mut Table<M>, message: &Plain) -> Option<Self> {
        table.get(message.remote.0).filter(|entry| entry.object.sends())?;
        table.make_send_once(message.reply?.0).map(Self)
    }

    #[inline(always)]
    fn arrive(&mut self, port: &Port<M>, space: u64, kind: u32) -> (u64, u32, u32) {
        arrive(port, space, kind, None)
    }

    #[inline(always)]
    fn name(self, space: &Space<M>) -> KernResult<(Name, u32)> {
        let name = space.copyout_send_once(self.0)?;
        Ok((name, Disposition::MoveSendOnce as u32))
    }
}

/// The right of an answer: a send-once right, which ends, and no right to reply.
struct AnswerRights<M: Machine>(Option<SendOnceRight<M>>);

impl<M: Machine> HeaderRights<M> for AnswerRights<M> {
    #[inline(always)]
    fn take(table: &mut Table<M>, message: &Plain) -> Option<Self> {
        table.take_lone_send_once(message.remote.0).map(|right| Self(Some(right)))
    }

    #[inline(always)]
    fn arrive(&mut self, port: &Port<M>, space: u64, kind: u32) -> (u64, u32, u32) {
        arrive(port, space, kind, self.0.take())
    }

    #[inline(always)]
    fn name(self, _: &Space<M>) -> KernResult<(Name, u32)> {
        Ok((Name::NULL, 0))
    }
}

/// The right of a message by a send right that the sender keeps or makes, and no right to reply.
struct SendRights<M: Machine> {
    /// The right that was made for the message. It ends after the message has arrived.
    _made: Option<SendRight<M>>,
}

impl<M: Machine> HeaderRights<M> for SendRights<M> {
    #[inline(always)]
    fn take(table: &mut Table<M>, message: &Plain) -> Option<Self> {
        let entry = table.get(message.remote.0)?;
        match (message.remote.1, entry.receive_port()) {
            (Disposition::CopySend, _) => entry.object.sends().then_some(Self { _made: None }),
            (Disposition::MakeSend, Some(port)) => {
                SendRight::make(port).map(|right| Self { _made: Some(right) })
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn arrive(&mut self, port: &Port<M>, space: u64, kind: u32) -> (u64, u32, u32) {
        arrive(port, space, kind, None)
    }

    #[inline(always)]
    fn name(self, _: &Space<M>) -> KernResult<(Name, u32)> {
        Ok((Name::NULL, 0))
    }
}

/// Any rights of a header.
struct OtherRights<M: Machine> {
    destination: Destination<M>,
    reply: Right<M>,
    /// What the rights have left with the sender. It is dropped without the lock of its names.
    later: Later<M>,
}

impl<M: Machine> HeaderRights<M> for OtherRights<M> {
    fn take(table: &mut Table<M>, message: &Plain) -> Option<Self> {
        let (remote, reply, mut later) = (message.remote, message.reply, Later::new());
        let claimed = claim_header(table, remote, reply).ok()?;
        let (destination, reply) = commit_header(table, remote, reply, claimed, None, &mut later);
        let no_reply = || if message.replies_to_dead { Right::Dead } else { Right::Null };
        Some(Self { destination, reply: reply.unwrap_or_else(no_reply), later })
    }

    fn arrive(&mut self, port: &Port<M>, space: u64, kind: u32) -> (u64, u32, u32) {
        drop(core::mem::replace(&mut self.later, Later::new()));
        match core::mem::take(&mut self.destination) {
            Destination::SendOnce(right) => arrive(port, space, kind, Some(right)),
            // A send right ends after the message has arrived.
            _send => arrive(port, space, kind, None),
        }
    }

    fn name(self, space: &Space<M>) -> KernResult<(Name, u32)> {
        let kind = kind(&self.reply);
        Ok((space.copyout_right(self.reply)?, kind))
    }
}

/// Gives the receiver the header of a message to `port` whose body it has.
#[inline(always)]
fn deliver<M: Machine, R: HeaderRights<M>>(
    receiver: &HeldReceiver<M>,
    buffer: Buffer,
    message: &Plain,
    port: &Port<M>,
    mut rights: R,
) -> Delivery {
    let space = receiver.space();
    let (local, kind_of_local, sequence) = rights.arrive(port, space.id, message.remote.1.received());
    let (remote, kind_of_remote, result) = match rights.name(space) {
        Ok((name, kind)) => (name, kind, 0),
        Err(_) => (Name::NULL, 0, MsgErrorKind::ReceiveHeaderError as u32 | Shortage::IPC_SPACE.bits()),
    };
    let bits = kind_of_local << 8 | kind_of_remote;
    let size = (HEADER + message.body.next_multiple_of(8)) as u32;
    let (remote, id) = (u64::from(remote.0), message.id);
    let bytes = Header { bits, size, remote, local, sequence, id }.to_bytes();
    let is_whole = receiver.map().try_copyout(buffer.address, &bytes);
    if !is_whole {
        receiver.leave_write(&bytes, buffer.address, result, MsgErrorKind::ReceiveInvalidData as u32);
    }
    Delivery { result, is_whole }
}

/// Counts a message that arrives at the port by a right of the kind `kind`, and uses up the
/// send-once right to the port by which it came, if any. Returns the local port of its header for
/// the task `space`, which receives it, with the kind, and its number.
#[inline(always)]
pub(super) fn arrive<M: Machine>(
    port: &Port<M>,
    space: u64,
    kind: u32,
    used: Option<SendOnceRight<M>>,
) -> (u64, u32, u32) {
    let mut state = port.state.lock();
    if let Some(right) = used {
        right.use_up_locked(&mut state);
    }
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
