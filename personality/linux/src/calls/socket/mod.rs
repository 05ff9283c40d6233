//! Calls on sockets.

mod internet_options;
mod options;
mod packet_options;
mod transfer;

pub(crate) use options::{getsockopt, setsockopt, takes_error};
pub(crate) use transfer::{
    recvfrom, recvmmsg, recvmsg, sendmmsg, sendmsg, sendto, try_recvfrom, try_sendmsg, try_sendto,
};

use super::descriptor::{file, insert};
use crate::call::{Call, Done};
use crate::layout::Fields;
use crate::layout::file::{CLOSE_ON_EXEC, open_flags};
use crate::layout::inet::{FAMILY_V4, FAMILY_V6};
use crate::layout::socket::{ADDRESS_MAXIMUM, FAMILY_UNIX};
use crate::socket::{self, Address, Socket};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use mach::Machine;
use unix::file::OpenFile;
use unix::signal::RestartKind;
use unix::socket::Shutdown;
use unix::vfs::OpenFlags;
use unix::{Error, Result};

const NONBLOCK: u32 = 0o4000;

/// The socket whose descriptor is argument 0.
fn socket_file<M: Machine>(call: &Call<'_, M>) -> Result<(Arc<OpenFile>, Socket)> {
    let file = file(call, 0)?;
    if file.flags().contains(OpenFlags::PATH) {
        return Err(Error::EBADF);
    }
    let socket = Socket::of(&file).ok_or(Error::ENOTSOCK)?;
    Ok((file, socket))
}

/// The type of a new socket, as a number, and its status flags, from argument 1 of the call.
fn new_socket<M: Machine>(call: &Call<'_, M>) -> Result<(u32, OpenFlags)> {
    const TYPES: u32 = 15;
    let kind = call.uint(1);
    if kind & !(TYPES | CLOSE_ON_EXEC | NONBLOCK) != 0 {
        return Err(Error::EINVAL);
    }
    Ok((kind & TYPES, open_flags(kind).intersection(OpenFlags::NONBLOCK)))
}

pub(crate) fn socket<M: Machine>(call: &Call<'_, M>) -> Done {
    let (kind, flags) = new_socket(call)?;
    let context = call.thread.context();
    let socket = socket::create(&context.caller(), call.uint(0), kind, call.int(2), flags)?;
    insert(call, socket, call.uint(1) & CLOSE_ON_EXEC != 0)
}

pub(crate) async fn socketpair<M: Machine>(call: &Call<'_, M>) -> Done {
    let (kind, flags) = new_socket(call)?;
    match u16::try_from(call.uint(0)) {
        Ok(FAMILY_UNIX) => {}
        Ok(FAMILY_V4 | FAMILY_V6) => return Err(Error::EOPNOTSUPP.into()),
        _ => return Err(Error::EAFNOSUPPORT.into()),
    }
    let kind = socket::unix_type(kind, call.int(2))?;
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
    address: Option<&Address>,
    at: u64,
    length_at: u64,
) -> Result<()> {
    if at == 0 {
        return Ok(());
    }
    let room = call.read::<4>(length_at).await?.i32_at(0)?;
    let room = usize::try_from(room).map_err(|_| Error::EINVAL)?;
    let bytes = address.map(Address::to_bytes).unwrap_or_default();
    call.write(at, &bytes[..bytes.len().min(room)]).await?;
    call.write(length_at, &(bytes.len() as u32).to_le_bytes()).await
}

pub(crate) async fn bind<M: Machine>(call: &Call<'_, M>) -> Done {
    let (_, socket) = socket_file(call)?;
    let bytes = read_address(call, call.arg(1), call.uint(2)).await?;
    socket.bind(&call.thread.context().caller(), &bytes).await?;
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
    let context = call.thread.context();
    let (caller, nonblock) = (context.caller(), file.flags().contains(OpenFlags::NONBLOCK));
    let restart = restart_kind(socket.options().send_timeout);
    call.wait(restart, socket.connect(&caller, &bytes, nonblock)).await??;
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
        let connected = Socket::of(&accepted).ok_or(Error::ECONNABORTED)?;
        let peer = connected.peer_address().map_err(|_| Error::ECONNABORTED)?;
        return_address(call, Some(&peer), call.arg(1), call.arg(2)).await?;
    }
    insert(call, accepted, flags & CLOSE_ON_EXEC != 0)
}

pub(crate) async fn getsockname<M: Machine>(call: &Call<'_, M>) -> Done {
    let (_, socket) = socket_file(call)?;
    required_address(call, &socket.address()?).await
}

pub(crate) async fn getpeername<M: Machine>(call: &Call<'_, M>) -> Done {
    let (_, socket) = socket_file(call)?;
    required_address(call, &socket.peer_address()?).await
}

async fn required_address<M: Machine>(call: &Call<'_, M>, address: &Address) -> Done {
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
    socket.shutdown(how)?;
    Ok(0)
}
