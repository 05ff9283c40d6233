//! Calls on sockets. Only sockets of the Unix domain exist; other families are `EAFNOSUPPORT`.

use super::descriptor::{file, insert};
use crate::call::{Call, Done, Outcome, Stop};
use crate::decoded::{Left, Transfer};
use crate::errno;
use crate::layout::Fields;
use crate::layout::file::{CLOSE_ON_EXEC, open_flags};
use crate::layout::socket::{
    ADDRESS_MAXIMUM, ControlWriter, FAMILY_UNIX, MessageHeader, address, control, socket_type, timeout,
    to_address, to_credentials, to_socket_type,
};
use crate::layout::time::to_timeval;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use mach::Machine;
use unix::file::OpenFile;
use unix::memory::UserRanges;
use unix::signal::RestartKind;
use unix::socket::{
    ReceiveHow, Received, SendHow, Shutdown, SocketOptions, SocketType, UnixAddress, UnixSocket,
};
use unix::vfs::OpenFlags;
use unix::{Error, Privilege, Result, UserBuffer};

const OUT_OF_BAND: u32 = 1;
const PEEK: u32 = 2;
const CONTROL_TRUNCATED: u32 = 8;
const TRUNCATED: u32 = 0x20;
const DONT_WAIT: u32 = 0x40;
const WAIT_ALL: u32 = 0x100;
const NO_SIGNAL: u32 = 0x4000;
const WAIT_FOR_ONE: u32 = 0x1_0000;
const CONTROL_CLOSE_ON_EXEC: u32 = 0x4000_0000;
const NONBLOCK: u32 = 0o4000;

/// The socket whose descriptor is argument 0.
fn socket_file<M: Machine>(call: &Call<'_, M>) -> Result<(Arc<OpenFile>, Arc<UnixSocket>)> {
    let file = file(call, 0)?;
    if file.flags().contains(OpenFlags::PATH) {
        return Err(Error::EBADF);
    }
    let socket = file.object_as::<UnixSocket>().ok_or(Error::ENOTSOCK)?;
    Ok((file, socket))
}

/// Type and status flags of a new socket, from the arguments of the call.
fn new_socket<M: Machine>(call: &Call<'_, M>) -> Result<(SocketType, OpenFlags)> {
    const TYPES: u32 = 15;
    let (family, kind, protocol) = (call.uint(0), call.uint(1), call.int(2));
    if kind & !(TYPES | CLOSE_ON_EXEC | NONBLOCK) != 0 {
        return Err(Error::EINVAL);
    }
    if family != u32::from(FAMILY_UNIX) {
        return Err(Error::EAFNOSUPPORT);
    }
    let socket_type = socket_type(kind & TYPES);
    if socket_type == Err(Error::EINVAL) {
        return Err(Error::EINVAL);
    }
    if protocol != 0 && protocol != i32::from(FAMILY_UNIX) {
        return Err(Error::EPROTONOSUPPORT);
    }
    Ok((socket_type?, open_flags(kind).intersection(OpenFlags::NONBLOCK)))
}

pub(crate) fn socket<M: Machine>(call: &Call<'_, M>) -> Done {
    let (kind, flags) = new_socket(call)?;
    let socket = unix::socket::socket(&call.thread.context().caller(), kind, flags)?;
    insert(call, socket, call.uint(1) & CLOSE_ON_EXEC != 0)
}

pub(crate) async fn socketpair<M: Machine>(call: &Call<'_, M>) -> Done {
    let (kind, flags) = new_socket(call)?;
    let context = call.thread.context();
    let pair = unix::socket::socket_pair(&context.caller(), kind, flags)?;
    super::descriptor::install_pair(call, pair, call.uint(1) & CLOSE_ON_EXEC != 0, call.arg(3)).await
}

/// A socket address in the program's memory: `length` bytes at `at`.
async fn read_address<M: Machine>(call: &Call<'_, M>, at: u64, length: u32) -> Result<Vec<u8>> {
    let length = usize::try_from(length as i32).map_err(|_| Error::EINVAL)?;
    if length > ADDRESS_MAXIMUM {
        return Err(Error::EINVAL);
    }
    call.memory().read_bytes(at, length).await
}

/// Copies a socket address (an empty one for `None`) to the buffer at `at`, whose size is at
/// `length_at`.
async fn return_address<M: Machine>(
    call: &Call<'_, M>,
    address: Option<&UnixAddress>,
    at: u64,
    length_at: u64,
) -> Result<()> {
    if at == 0 {
        return Ok(());
    }
    let room = call.read::<4>(length_at).await?.i32_at(0)?;
    let room = usize::try_from(room).map_err(|_| Error::EINVAL)?;
    let bytes = address.map(to_address).unwrap_or_default();
    call.write(at, &bytes[..bytes.len().min(room)]).await?;
    call.write(length_at, &(bytes.len() as u32).to_le_bytes()).await
}

pub(crate) async fn bind<M: Machine>(call: &Call<'_, M>) -> Done {
    let (_, socket) = socket_file(call)?;
    let name = address(&read_address(call, call.arg(1), call.uint(2)).await?)?;
    socket.bind(&call.thread.context().caller(), name).await?;
    Ok(0)
}

pub(crate) fn listen<M: Machine>(call: &Call<'_, M>) -> Done {
    let (_, socket) = socket_file(call)?;
    // A negative number is taken for a large one, as in Linux.
    socket.listen(&call.thread.context().caller(), call.uint(1) as usize)?;
    Ok(0)
}

pub(crate) async fn connect<M: Machine>(call: &Call<'_, M>) -> Done {
    let (file, socket) = socket_file(call)?;
    let bytes = read_address(call, call.arg(1), call.uint(2)).await?;
    let forgets = socket.kind() == SocketType::Datagram && bytes.u16_at(0)? == 0;
    let name = if forgets { UnixAddress::Unnamed } else { address(&bytes)? };
    if name == UnixAddress::Unnamed && !forgets {
        return Err(Error::EINVAL.into());
    }
    let context = call.thread.context();
    let (caller, nonblock) = (context.caller(), file.flags().contains(OpenFlags::NONBLOCK));
    let restart = restart_kind(socket.options().send_timeout);
    call.wait(restart, socket.connect(&caller, &name, nonblock)).await??;
    Ok(0)
}

/// How a call is restarted after a signal: not at all if the socket has a time-out (signal(7)).
fn restart_kind(timeout: Option<Duration>) -> RestartKind {
    if timeout.is_some() { RestartKind::Never } else { RestartKind::RestartSys }
}

pub(crate) async fn accept<M: Machine>(call: &Call<'_, M>, flags: u32) -> Done {
    if flags & !(CLOSE_ON_EXEC | NONBLOCK) != 0 {
        return Err(Error::EINVAL.into());
    }
    let (file, socket) = socket_file(call)?;
    let context = call.thread.context();
    let (caller, nonblock) = (context.caller(), file.flags().contains(OpenFlags::NONBLOCK));
    let status = open_flags(flags).intersection(OpenFlags::NONBLOCK);
    let restart = restart_kind(socket.options().receive_timeout);
    let accepted = call.wait(restart, socket.accept(&caller, nonblock, status)).await??;
    if call.arg(1) != 0 {
        let connected: Arc<UnixSocket> = accepted.object_as().ok_or(Error::ECONNABORTED)?;
        let peer = connected.peer_address().map_err(|_| Error::ECONNABORTED)?;
        return_address(call, Some(&peer), call.arg(1), call.arg(2)).await?;
    }
    insert(call, accepted, flags & CLOSE_ON_EXEC != 0)
}

pub(crate) async fn getsockname<M: Machine>(call: &Call<'_, M>) -> Done {
    let (_, socket) = socket_file(call)?;
    required_address(call, &socket.address()).await
}

pub(crate) async fn getpeername<M: Machine>(call: &Call<'_, M>) -> Done {
    let (_, socket) = socket_file(call)?;
    required_address(call, &socket.peer_address()?).await
}

async fn required_address<M: Machine>(call: &Call<'_, M>, address: &UnixAddress) -> Done {
    if call.arg(1) == 0 {
        return Err(Error::EFAULT.into());
    }
    return_address(call, Some(address), call.arg(1), call.arg(2)).await?;
    Ok(0)
}

pub(crate) fn shutdown<M: Machine>(call: &Call<'_, M>) -> Done {
    let (_, socket) = socket_file(call)?;
    let how = match call.int(1) {
        0 => Shutdown::Read,
        1 => Shutdown::Write,
        2 => Shutdown::Both,
        _ => return Err(Error::EINVAL.into()),
    };
    socket.shutdown(how);
    Ok(0)
}

/// Sends a message. Returns how many bytes were sent.
async fn send<M: Machine>(
    call: &Call<'_, M>,
    (file, socket): &(Arc<OpenFile>, Arc<UnixSocket>),
    mut buffer: UserRanges<M>,
    flags: u32,
    how: SendHow,
) -> Done {
    if flags & OUT_OF_BAND != 0 {
        return Err(Error::EOPNOTSUPP.into());
    }
    let nonblock = flags & DONT_WAIT != 0 || file.flags().contains(OpenFlags::NONBLOCK);
    let how = SendHow { nonblock, ..how };
    let context = call.thread.context();
    let caller = context.caller();
    // What an attempt without the thread's task has sent.
    let before = buffer.transferred();
    let sending = socket.send(&caller, &mut buffer, how);
    match call.system().processes().interruptible(call.tid(), sending).await {
        Some(Ok(count)) => Ok((before + count) as u64),
        Some(Err(_)) if before > 0 => Ok(before as u64),
        Some(Err(error)) => {
            if socket.kind() == SocketType::Stream && flags & NO_SIGNAL == 0 {
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
        at => Some(address(&read_address(call, at, call.uint(5)).await?)?),
    };
    send(call, &target, buffer, call.uint(3), SendHow { destination, ..SendHow::default() }).await
}

/// Does [`sendto`] to the connected peer if that need not wait. What was sent is no longer in the
/// transfer that is left otherwise.
pub(crate) fn try_sendto<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    if call.arg(4) != 0 || call.uint(3) & !(NO_SIGNAL | DONT_WAIT) != 0 {
        return None;
    }
    let (file, mut buffer) = (file(call, 0).ok()?, call.buffer(call.arg(1), call.arg(2)).ok()?);
    file.socket()?;
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

async fn read_header<M: Machine>(call: &Call<'_, M>, at: u64) -> Result<(MessageHeader, UserRanges<M>)> {
    let header = MessageHeader::from_bytes(&call.read(at).await?)?;
    if header.range_count > 1024 {
        return Err(Error::EMSGSIZE);
    }
    Ok((header, call.buffers(header.ranges, header.range_count).await?))
}

async fn send_message<M: Machine>(
    call: &Call<'_, M>,
    target: &(Arc<OpenFile>, Arc<UnixSocket>),
    at: u64,
    flags: u32,
) -> Done {
    /// The most bytes of control messages that are accepted (net.core.optmem_max).
    const CONTROL_MAXIMUM: u64 = 20480;
    let (header, buffer) = read_header(call, at).await?;
    let mut how = SendHow::default();
    if header.name != 0 && header.name_length != 0 {
        let bytes = read_address(call, header.name, header.name_length.min(ADDRESS_MAXIMUM as u32)).await?;
        how.destination = Some(address(&bytes)?);
    }
    if header.control_length > CONTROL_MAXIMUM {
        return Err(Error::ENOBUFS.into());
    }
    if header.control_length > 0 {
        let bytes = call.memory().read_bytes(header.control, header.control_length as usize).await?;
        let control = control(&bytes)?;
        let descriptors = call.thread.descriptors();
        let files = control.descriptors.iter().map(|number| descriptors.get(*number));
        how.files = files.collect::<Result<Vec<_>>>()?;
        how.descriptor_limit = call.descriptor_limit() as u64;
        how.credentials = control.credentials;
    }
    send(call, target, buffer, flags, how).await
}

pub(crate) async fn sendmsg<M: Machine>(call: &Call<'_, M>) -> Done {
    send_message(call, &socket_file(call)?, call.arg(1), call.uint(2)).await
}

/// Bytes of struct mmsghdr, whose last word is the count of bytes.
const MULTIPLE_HEADER: u64 = 64;

pub(crate) async fn sendmmsg<M: Machine>(call: &Call<'_, M>) -> Done {
    let target = socket_file(call)?;
    let mut sent = 0;
    while sent < u64::from(call.uint(2).min(1024)) {
        let at = call.arg(1).wrapping_add(sent * MULTIPLE_HEADER);
        match send_message(call, &target, at, call.uint(3)).await {
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
    (file, socket): &(Arc<OpenFile>, Arc<UnixSocket>),
    buffer: &mut UserRanges<M>,
    flags: u32,
) -> Result<Received, Stop> {
    if flags & OUT_OF_BAND != 0 {
        return Err(Error::EOPNOTSUPP.into());
    }
    let how = ReceiveHow {
        peek: flags & PEEK != 0,
        wait_all: flags & WAIT_ALL != 0,
        nonblock: flags & DONT_WAIT != 0 || file.flags().contains(OpenFlags::NONBLOCK),
    };
    let context = call.thread.context();
    let caller = context.caller();
    let receiving = socket.receive(&caller, buffer, how);
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
fn received_count(socket: &UnixSocket, received: &Received, flags: u32) -> u64 {
    let whole = flags & TRUNCATED != 0 && socket.kind() != SocketType::Stream;
    if whole { received.length as u64 } else { received.count as u64 }
}

/// The address that a receive returns as the source; `None` for a sender without a name.
fn source(socket: &UnixSocket, received: &Received) -> Option<UnixAddress> {
    let source = match socket.kind() {
        SocketType::Stream => socket.peer_address().unwrap_or_default(),
        _ => received.source.clone(),
    };
    (source != UnixAddress::Unnamed).then_some(source)
}

pub(crate) async fn recvfrom<M: Machine>(call: &Call<'_, M>) -> Done {
    let target = socket_file(call)?;
    let mut buffer = call.buffer(call.arg(1), call.arg(2))?;
    let received = receive(call, &target, &mut buffer, call.uint(3)).await?;
    let source = source(&target.1, &received);
    return_address(call, source.as_ref(), call.arg(4), call.arg(5)).await?;
    Ok(received_count(&target.1, &received, call.uint(3)))
}

/// Does [`recvfrom`] without the sender's address if that need not wait.
pub(crate) fn try_recvfrom<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    if call.arg(4) != 0 || call.uint(3) & !DONT_WAIT != 0 {
        return None;
    }
    let (file, mut buffer) = (file(call, 0).ok()?, call.buffer(call.arg(1), call.arg(2)).ok()?);
    file.socket()?;
    let context = call.thread.context();
    let received = file.read_now(&context.caller(), &mut buffer)?;
    Some(received.map(|count| count as u64).map_err(Stop::from))
}

async fn receive_message<M: Machine>(
    call: &Call<'_, M>,
    target: &(Arc<OpenFile>, Arc<UnixSocket>),
    at: u64,
    flags: u32,
) -> Done {
    let (header, mut buffer) = read_header(call, at).await?;
    let mut received = receive(call, target, &mut buffer, flags).await?;
    let socket = &target.1;
    let mut shown = flags & CONTROL_CLOSE_ON_EXEC;
    if received.length > received.count {
        shown |= TRUNCATED;
    }
    let room = if header.control == 0 { 0 } else { header.control_length.min(1 << 20) as usize };
    let mut control = ControlWriter::new(room);
    if let (true, Some(credentials)) = (socket.options().pass_credentials, received.credentials) {
        control.credentials(credentials);
    }
    let files = core::mem::take(&mut received.files);
    if !files.is_empty() {
        let wanted = files.len();
        let mut numbers = Vec::new();
        for file in files.into_iter().take(control.descriptor_room()) {
            match insert(call, file, flags & CONTROL_CLOSE_ON_EXEC != 0) {
                Ok(number) => numbers.push(number as i32),
                Err(_) => break,
            }
        }
        if !numbers.is_empty() {
            control.descriptors(&numbers);
        }
        control.truncated |= numbers.len() < wanted;
    }
    if control.truncated {
        shown |= CONTROL_TRUNCATED;
    }
    if header.name != 0 {
        let length_at = at + MessageHeader::NAME_LENGTH_AT;
        return_address(call, source(socket, &received).as_ref(), header.name, length_at).await?;
    }
    call.write(header.control, control.bytes()).await?;
    let mut end = (control.bytes().len() as u64).to_le_bytes().to_vec();
    end.extend_from_slice(&shown.to_le_bytes());
    call.write(at + MessageHeader::CONTROL_LENGTH_AT, &end).await?;
    Ok(received_count(socket, &received, flags))
}

pub(crate) async fn recvmsg<M: Machine>(call: &Call<'_, M>) -> Done {
    receive_message(call, &socket_file(call)?, call.arg(1), call.uint(2)).await
}

/// recvmmsg(2): its time-out is checked after each message only, as in Linux.
pub(crate) async fn recvmmsg<M: Machine>(call: &Call<'_, M>) -> Done {
    let target = socket_file(call)?;
    let environment = call.system().environment().clone();
    let deadline = call.time(4).await?.map(|time| environment.monotonic().saturating_add(time));
    let mut flags = call.uint(3);
    let mut count = 0;
    while count < u64::from(call.uint(2).min(1024)) {
        let at = call.arg(1).wrapping_add(count * MULTIPLE_HEADER);
        match receive_message(call, &target, at, flags & !WAIT_FOR_ONE).await {
            Ok(length) => call.write(at + MessageHeader::SIZE as u64, &(length as u32).to_le_bytes()).await?,
            Err(_) if count > 0 => break,
            Err(error) => return Err(error),
        }
        count += 1;
        if flags & WAIT_FOR_ONE != 0 {
            flags |= DONT_WAIT;
        }
        if deadline.is_some_and(|deadline| environment.monotonic() >= deadline) {
            break;
        }
    }
    Ok(count)
}

const LEVEL_SOCKET: u32 = 1;
const TYPE: u32 = 3;
const ERROR: u32 = 4;
const SEND_BUFFER: u32 = 7;
const RECEIVE_BUFFER: u32 = 8;
const LINGER: u32 = 13;
const PASS_CREDENTIALS: u32 = 16;
const PEER_CREDENTIALS: u32 = 17;
const RECEIVE_LOW: u32 = 18;
const RECEIVE_TIMEOUT: u32 = 20;
const SEND_TIMEOUT: u32 = 21;
const ACCEPTS: u32 = 30;
const SEND_BUFFER_FORCE: u32 = 32;
const RECEIVE_BUFFER_FORCE: u32 = 33;
const PROTOCOL: u32 = 38;
const DOMAIN: u32 = 39;
/// Options that have no effect on Unix sockets, on Linux neither, but that programs can set and
/// read back: DEBUG, REUSEADDR, DONTROUTE, BROADCAST, KEEPALIVE, OOBINLINE, REUSEPORT.
const WITHOUT_EFFECT: [u32; 7] = [1, 2, 5, 6, 9, 10, 15];

pub(crate) async fn setsockopt<M: Machine>(call: &Call<'_, M>) -> Done {
    /// The largest buffer that a program can ask for, in bytes (net.core.wmem_max and rmem_max).
    const BUFFER_MAXIMUM: u32 = 212_992;
    const SEND_MINIMUM: usize = 4608;
    const RECEIVE_MINIMUM: usize = 2304;
    let (_, socket) = socket_file(call)?;
    if call.uint(1) != LEVEL_SOCKET {
        return Err(Error::EOPNOTSUPP.into());
    }
    let (option, length) = (call.uint(2), call.int(4));
    if length < 4 {
        return Err(Error::EINVAL.into());
    }
    let value = call.read::<4>(call.arg(3)).await?.u32_at(0)?;
    let time = match option {
        RECEIVE_TIMEOUT | SEND_TIMEOUT if length < 16 => return Err(Error::EINVAL.into()),
        RECEIVE_TIMEOUT | SEND_TIMEOUT => timeout(&call.read(call.arg(3)).await?)?,
        _ => None,
    };
    let privileged = call.has(Privilege::Network);
    let mut options = socket.options();
    match option {
        SEND_BUFFER_FORCE | RECEIVE_BUFFER_FORCE if !privileged => return Err(Error::EPERM.into()),
        SEND_BUFFER => options.send_buffer = (2 * value.min(BUFFER_MAXIMUM) as usize).max(SEND_MINIMUM),
        RECEIVE_BUFFER => options.receive_buffer = doubled(value.min(BUFFER_MAXIMUM)).max(RECEIVE_MINIMUM),
        SEND_BUFFER_FORCE => options.send_buffer = doubled(value).max(SEND_MINIMUM),
        RECEIVE_BUFFER_FORCE => options.receive_buffer = doubled(value).max(RECEIVE_MINIMUM),
        PASS_CREDENTIALS => options.pass_credentials = value != 0,
        RECEIVE_TIMEOUT => options.receive_timeout = time,
        SEND_TIMEOUT => options.send_timeout = time,
        LINGER if length < 8 => return Err(Error::EINVAL.into()),
        LINGER => {
            let seconds = call.read::<8>(call.arg(3)).await?.u32_at(4)?;
            options.linger = (value != 0).then_some(seconds);
        }
        TYPE | ERROR | ACCEPTS | PROTOCOL | DOMAIN => return Err(Error::ENOPROTOOPT.into()),
        option if WITHOUT_EFFECT.contains(&option) => {
            let bit = 1 << option;
            options.kept = if value != 0 { options.kept | bit } else { options.kept & !bit };
        }
        _ => return Err(Error::ENOPROTOOPT.into()),
    }
    socket.set_options(options);
    Ok(0)
}

/// The size of a buffer for which a program asks: twice that, and never more than fits a signed
/// number.
fn doubled(value: u32) -> usize {
    2 * value.min(i32::MAX as u32 / 2) as usize
}

/// Whether getsockopt clears the pending error (SO_ERROR), so that it must not be tried.
pub(crate) fn takes_error<M: Machine>(call: &Call<'_, M>) -> bool {
    call.uint(2) == ERROR
}

pub(crate) async fn getsockopt<M: Machine>(call: &Call<'_, M>) -> Done {
    let (_, socket) = socket_file(call)?;
    if call.uint(1) != LEVEL_SOCKET {
        return Err(Error::EOPNOTSUPP.into());
    }
    let room = call.read::<4>(call.arg(4)).await?.i32_at(0)?;
    let room = usize::try_from(room).map_err(|_| Error::EINVAL)?;
    let value = option_value(&socket, &socket.options(), call.uint(2))?;
    let shown = &value[..value.len().min(room)];
    call.write(call.arg(3), shown).await?;
    call.write(call.arg(4), &(shown.len() as u32).to_le_bytes()).await?;
    Ok(0)
}

fn option_value(socket: &UnixSocket, options: &SocketOptions, option: u32) -> Result<Vec<u8>> {
    let number = |number: u32| number.to_le_bytes().to_vec();
    let time = |time: Option<Duration>| to_timeval(time.unwrap_or_default()).to_vec();
    Ok(match option {
        TYPE => number(to_socket_type(socket.kind())),
        ERROR => number(socket.take_error().map_or(0, |error| errno::number(error) as u32)),
        SEND_BUFFER => number(options.send_buffer as u32),
        RECEIVE_BUFFER => number(options.receive_buffer as u32),
        LINGER => {
            let seconds = options.linger.unwrap_or(0);
            [number(options.linger.is_some().into()), number(seconds)].concat()
        }
        PASS_CREDENTIALS => number(options.pass_credentials.into()),
        PEER_CREDENTIALS => match socket.peer_credentials() {
            Some(credentials) => to_credentials(credentials).to_vec(),
            // There is no peer: no process, and the ids that mean "no user" and "no group".
            None => [number(0), number(u32::MAX), number(u32::MAX)].concat(),
        },
        RECEIVE_LOW => number(1),
        RECEIVE_TIMEOUT => time(options.receive_timeout),
        SEND_TIMEOUT => time(options.send_timeout),
        ACCEPTS => number(socket.is_listening().into()),
        PROTOCOL => number(0),
        DOMAIN => number(FAMILY_UNIX.into()),
        option if WITHOUT_EFFECT.contains(&option) => number(options.kept >> option & 1),
        _ => return Err(Error::ENOPROTOOPT),
    })
}
