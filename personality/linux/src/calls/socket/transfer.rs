//! Calls that send and receive on sockets.

use super::{read_address, restart_kind, return_address, socket_file};
use crate::call::{Call, Done, Outcome, Stop};
use crate::calls::descriptor::{file, insert};
use crate::decoded::{Left, Transfer};
use crate::layout::socket::{ADDRESS_MAXIMUM, ControlWriter, MessageHeader, control};
use crate::socket::{MessageFlags, Received, Sending, Socket, is_socket};
use alloc::sync::Arc;
use alloc::vec::Vec;
use mach::Machine;
use unix::file::OpenFile;
use unix::memory::UserRanges;
use unix::socket::PeerCredentials;
use unix::sync::poll_once;
use unix::vfs::OpenFlags;
use unix::{Error, Result, UserBuffer};

/// The flags of a send or receive in argument `index`.
fn message_flags<M: Machine>(call: &Call<'_, M>, index: usize) -> MessageFlags {
    MessageFlags::from_bits_truncate(call.uint(index))
}

/// Sends a message. Returns how many bytes were sent.
async fn send<M: Machine>(
    call: &Call<'_, M>,
    (file, socket): &(Arc<OpenFile>, Socket),
    mut buffer: UserRanges<M>,
    sending: Sending,
) -> Done {
    let nonblock =
        sending.flags.contains(MessageFlags::DONT_WAIT) || file.flags().contains(OpenFlags::NONBLOCK);
    let signals = socket.is_stream() && !sending.flags.contains(MessageFlags::NO_SIGNAL);
    let sending = Sending { nonblock, ..sending };
    let context = call.thread.context();
    let caller = context.caller();
    // What an attempt without the thread's task has sent.
    let before = buffer.transferred();
    let sending = socket.send(&caller, &mut buffer, sending);
    match call.system().processes().interruptible(call.tid(), sending).await {
        Some(Ok(count)) => Ok((before + count) as u64),
        Some(Err(_)) if before > 0 => Ok(before as u64),
        Some(Err(error)) => {
            if signals {
                call.signal_for(error);
            }
            Err(error.into())
        }
        None if buffer.transferred() > 0 => Ok(buffer.transferred() as u64),
        None => Err(Stop::Outcome(Outcome::Interrupted(restart_kind(socket.options().send_timeout)))),
    }
}

pub(crate) async fn sendto<M: Machine>(call: &Call<'_, M>) -> Done {
    let left = call.kept.decoded.take_transfer();
    let target = socket_file(call)?;
    let buffer = match left {
        Some(transfer) => transfer.buffer,
        None => call.buffer(call.arg(1), call.arg(2))?,
    };
    let destination = match call.arg(4) {
        0 => None,
        at => Some(read_address(call, at, call.uint(5)).await?),
    };
    send(call, &target, buffer, Sending::to(destination, message_flags(call, 3))).await
}

/// Does [`sendto`] to the connected peer if that need not wait.
pub(crate) fn try_sendto<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    if call.arg(4) != 0 {
        return None;
    }
    try_send(call, call.buffer(call.arg(1), call.arg(2)).ok()?, message_flags(call, 3))
}

/// Does [`sendmsg`] to the connected peer, without control messages, if that need not wait.
pub(crate) fn try_sendmsg<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    let header = MessageHeader::from_bytes(&call.try_read(call.arg(1))?).ok()?;
    let has_name = header.name != 0 && header.name_length != 0;
    if has_name || header.control_length != 0 || header.range_count > RANGES_MAXIMUM {
        return None;
    }
    let buffer = poll_once(call.buffers(header.ranges, header.range_count))?.ok()?;
    try_send(call, buffer, message_flags(call, 2))
}

/// Sends to the connected peer what can be sent without waiting. What was sent is no longer in the
/// transfer that is left if that is not all, or if the call has to send a signal.
fn try_send<M: Machine>(call: &Call<'_, M>, mut buffer: UserRanges<M>, flags: MessageFlags) -> Option<Done> {
    const TRIED: MessageFlags = MessageFlags::NO_SIGNAL.union(MessageFlags::DONT_WAIT);
    let file = file(call, 0).ok()?;
    if !TRIED.contains(flags) || !is_socket(&file) {
        return None;
    }
    let context = call.thread.context();
    match file.write_now(&context.caller(), &mut buffer) {
        Some(Ok(count)) => Some(Ok(count as u64)),
        Some(Err(error)) if Call::<M>::signal_of(error).is_none() => Some(Err(error.into())),
        _ => {
            call.kept.decoded.leave(Some(Left::Transfer(Transfer { file, buffer })));
            None
        }
    }
}

/// The most pieces of memory that a message may have (UIO_MAXIOV).
const RANGES_MAXIMUM: u64 = 1024;

async fn read_header<M: Machine>(call: &Call<'_, M>, at: u64) -> Result<(MessageHeader, UserRanges<M>)> {
    let header = MessageHeader::from_bytes(&call.read(at).await?)?;
    if header.range_count > RANGES_MAXIMUM {
        return Err(Error::EMSGSIZE);
    }
    Ok((header, call.buffers(header.ranges, header.range_count).await?))
}

async fn send_message<M: Machine>(
    call: &Call<'_, M>,
    target: &(Arc<OpenFile>, Socket),
    at: u64,
    flags: MessageFlags,
) -> Done {
    /// The most bytes of control messages that are accepted (net.core.optmem_max).
    const CONTROL_MAXIMUM: u64 = 20480;
    let (header, buffer) = read_header(call, at).await?;
    let destination = if header.name != 0 && header.name_length != 0 {
        let length = header.name_length.min(ADDRESS_MAXIMUM as u32);
        Some(read_address(call, header.name, length).await?)
    } else {
        None
    };
    let mut sending = Sending::to(destination, flags);
    if header.control_length > CONTROL_MAXIMUM {
        return Err(Error::ENOBUFS.into());
    }
    if header.control_length > 0 {
        let bytes = call.memory().read_bytes(header.control, header.control_length as usize).await?;
        sending.control = control(&bytes)?;
        if let Some(shown) = &mut sending.control.credentials {
            let process = i32::try_from(shown.process).map_err(|_| Error::ESRCH)?;
            *shown = PeerCredentials {
                process: call.id(process)?.number(),
                user: call.user(shown.user)?,
                group: call.group(shown.group)?,
            };
        }
        let descriptors = call.thread.descriptors();
        let files = sending.control.descriptors.iter().map(|number| descriptors.get(*number));
        sending.files = files.collect::<Result<Vec<_>>>()?;
        sending.descriptor_limit = call.descriptor_limit() as u64;
    }
    send(call, target, buffer, sending).await
}

pub(crate) async fn sendmsg<M: Machine>(call: &Call<'_, M>) -> Done {
    let (left, target) = (call.kept.decoded.take_transfer(), socket_file(call)?);
    let flags = message_flags(call, 2);
    match left {
        // A message that was tried has no address and no control messages.
        Some(transfer) => send(call, &target, transfer.buffer, Sending::to(None, flags)).await,
        None => send_message(call, &target, call.arg(1), flags).await,
    }
}

/// Bytes of struct mmsghdr, whose last word is the count of bytes.
const MULTIPLE_HEADER: u64 = 64;

pub(crate) async fn sendmmsg<M: Machine>(call: &Call<'_, M>) -> Done {
    let target = socket_file(call)?;
    let mut sent = 0;
    while sent < u64::from(call.uint(2).min(1024)) {
        let at = call.arg(1).wrapping_add(sent * MULTIPLE_HEADER);
        match send_message(call, &target, at, message_flags(call, 3)).await {
            Ok(count) => call.write(at + MessageHeader::SIZE as u64, &(count as u32).to_le_bytes()).await?,
            Err(_) if sent > 0 => break,
            Err(error) => return Err(error),
        }
        sent += 1;
    }
    Ok(sent)
}

/// Receives a message.
async fn receive<M: Machine>(
    call: &Call<'_, M>,
    (file, socket): &(Arc<OpenFile>, Socket),
    buffer: &mut UserRanges<M>,
    flags: MessageFlags,
) -> Result<Received, Stop> {
    let nonblock = flags.contains(MessageFlags::DONT_WAIT) || file.flags().contains(OpenFlags::NONBLOCK);
    let context = call.thread.context();
    let caller = context.caller();
    let receiving = socket.receive(&caller, buffer, flags, nonblock);
    match call.system().processes().interruptible(call.tid(), receiving).await {
        Some(received) => Ok(received?),
        None if buffer.transferred() > 0 => {
            let count = buffer.transferred();
            Ok(Received { count, length: count, ..Received::default() })
        }
        None => Err(Stop::Outcome(Outcome::Interrupted(restart_kind(socket.options().receive_timeout)))),
    }
}

/// The result of a receive; if the program asked for it (MSG_TRUNC), the length of a message that
/// was cut.
fn received_count(socket: &Socket, received: &Received, flags: MessageFlags) -> u64 {
    let whole = flags.contains(MessageFlags::TRUNCATED) && !socket.is_stream();
    if whole { received.length as u64 } else { received.count as u64 }
}

pub(crate) async fn recvfrom<M: Machine>(call: &Call<'_, M>) -> Done {
    let target = socket_file(call)?;
    let mut buffer = call.buffer(call.arg(1), call.arg(2))?;
    let flags = message_flags(call, 3);
    let received = receive(call, &target, &mut buffer, flags).await?;
    return_address(call, received.source.as_ref(), call.arg(4), call.arg(5)).await?;
    Ok(received_count(&target.1, &received, flags))
}

/// Does [`recvfrom`] without the sender's address if that need not wait.
pub(crate) fn try_recvfrom<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    if call.arg(4) != 0 || call.uint(3) & !MessageFlags::DONT_WAIT.bits() != 0 {
        return None;
    }
    let (file, mut buffer) = (file(call, 0).ok()?, call.buffer(call.arg(1), call.arg(2)).ok()?);
    if !is_socket(&file) {
        return None;
    }
    let context = call.thread.context();
    let received = file.read_now(&context.caller(), &mut buffer)?;
    Some(received.map(|count| count as u64).map_err(Stop::from))
}

async fn receive_message<M: Machine>(
    call: &Call<'_, M>,
    target: &(Arc<OpenFile>, Socket),
    at: u64,
    flags: MessageFlags,
) -> Done {
    let (header, mut buffer) = read_header(call, at).await?;
    let mut received = receive(call, target, &mut buffer, flags).await?;
    let socket = &target.1;
    let mut shown = flags.intersection(MessageFlags::CLOSE_ON_EXEC);
    shown |= received.shown;
    shown.set(MessageFlags::TRUNCATED, received.length > received.count);
    let room = if header.control == 0 { 0 } else { header.control_length.min(1 << 20) as usize };
    let mut control = ControlWriter::new(room);
    if let Some(credentials) = received.credentials {
        control.credentials(call.shown_peer(credentials));
    }
    for (level, kind, data) in &received.control {
        control.append(*level, *kind, data);
    }
    let files = core::mem::take(&mut received.files);
    if !files.is_empty() {
        let wanted = files.len();
        let mut numbers = Vec::new();
        for file in files.into_iter().take(control.descriptor_room()) {
            match insert(call, file, flags.contains(MessageFlags::CLOSE_ON_EXEC)) {
                Ok(number) => numbers.push(number as i32),
                Err(_) => break,
            }
        }
        if !numbers.is_empty() {
            control.descriptors(&numbers);
        }
        control.truncated |= numbers.len() < wanted;
    }
    shown.set(MessageFlags::CONTROL_TRUNCATED, control.truncated);
    if header.name != 0 {
        let length_at = at + MessageHeader::NAME_LENGTH_AT;
        return_address(call, received.source.as_ref(), header.name, length_at).await?;
    }
    call.write(header.control, control.bytes()).await?;
    let mut end = (control.bytes().len() as u64).to_le_bytes().to_vec();
    end.extend_from_slice(&shown.bits().to_le_bytes());
    call.write(at + MessageHeader::CONTROL_LENGTH_AT, &end).await?;
    Ok(received_count(socket, &received, flags))
}

pub(crate) async fn recvmsg<M: Machine>(call: &Call<'_, M>) -> Done {
    receive_message(call, &socket_file(call)?, call.arg(1), message_flags(call, 2)).await
}

/// recvmmsg(2): its time-out is checked after each message only, as in Linux.
pub(crate) async fn recvmmsg<M: Machine>(call: &Call<'_, M>) -> Done {
    let target = socket_file(call)?;
    let environment = call.system().environment().clone();
    let deadline = call.time(4).await?.map(|time| environment.monotonic().saturating_add(time));
    let mut flags = message_flags(call, 3);
    let mut count = 0;
    while count < u64::from(call.uint(2).min(1024)) {
        let at = call.arg(1).wrapping_add(count * MULTIPLE_HEADER);
        match receive_message(call, &target, at, flags.difference(MessageFlags::WAIT_FOR_ONE)).await {
            Ok(length) => call.write(at + MessageHeader::SIZE as u64, &(length as u32).to_le_bytes()).await?,
            Err(_) if count > 0 => break,
            Err(error) => return Err(error),
        }
        count += 1;
        if flags.contains(MessageFlags::WAIT_FOR_ONE) {
            flags |= MessageFlags::DONT_WAIT;
        }
        if deadline.is_some_and(|deadline| environment.monotonic() >= deadline) {
            break;
        }
    }
    Ok(count)
}
