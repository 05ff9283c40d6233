//! setsockopt(2) and getsockopt(2).

use super::packet_options::{ATTACH_FILTER, DETACH_FILTER, LOCK_FILTER};
use super::{internet_options, packet_options, socket_file};
use crate::call::{Call, Done};
use crate::errno;
use crate::layout::Fields;
use crate::layout::socket::{timeout, to_credentials, to_socket_type};
use crate::layout::time::to_timeval;
use crate::socket::Socket;
use crate::socket::packet::LEVEL_PACKET;
use alloc::vec::Vec;
use core::time::Duration;
use mach::Machine;
use unix::socket::SocketOptions;
use unix::{Error, Privilege, Result};

const LEVEL_SOCKET: u32 = 1;
const LEVEL_NETLINK: u32 = 270;
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
const FILTER_EXTENSIONS: u32 = 48;
/// Options that have no effect on Unix sockets, on Linux neither, but that programs can set and
/// read back: DEBUG, REUSEADDR, DONTROUTE, BROADCAST, KEEPALIVE, OOBINLINE, REUSEPORT.
const WITHOUT_EFFECT: [u32; 7] = [1, 2, 5, 6, 9, 10, 15];

pub(crate) async fn setsockopt<M: Machine>(call: &Call<'_, M>) -> Done {
    /// The largest buffer that a program can ask for, in bytes (net.core.wmem_max and rmem_max).
    const BUFFER_MAXIMUM: u32 = 212_992;
    const SEND_MINIMUM: usize = 4608;
    const RECEIVE_MINIMUM: usize = 2304;
    /// The most bytes of an option that are read.
    const OPTION_MAXIMUM: usize = 256;
    let (_, socket) = socket_file(call)?;
    let (level, option, length) = (call.uint(1), call.uint(2), call.int(4));
    if let Some(inner) = socket.of_stack() {
        let length = usize::try_from(length).map_err(|_| Error::EINVAL)?.min(OPTION_MAXIMUM);
        let bytes = call.memory().read_bytes(call.arg(3), length).await?;
        if level == LEVEL_SOCKET && matches!(option, ATTACH_FILTER | DETACH_FILTER | LOCK_FILTER) {
            packet_options::change_filter(call, inner, option, &bytes).await?;
            return Ok(0);
        }
        if let (Socket::Packet(socket), LEVEL_PACKET) = (&socket, level) {
            packet_options::set(call, socket, option, &bytes).await?;
            return Ok(0);
        }
        if let Some(done) = internet_options::set(inner, level, option, &bytes) {
            done?;
            return Ok(0);
        }
    } else if let (Socket::Netlink(socket), LEVEL_NETLINK) = (&socket, level) {
        // Linux takes an option without a value for one with the value 0.
        let value = if length < 4 { 0 } else { call.read::<4>(call.arg(3)).await?.u32_at(0)? };
        socket.set_option(option, value)?;
        return Ok(0);
    } else if level != LEVEL_SOCKET {
        return Err(Error::EOPNOTSUPP.into());
    }
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
            let bit = 1u64 << option;
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
    let room = call.read::<4>(call.arg(4)).await?.i32_at(0)?;
    let room = usize::try_from(room).map_err(|_| Error::EINVAL)?;
    let own = match &socket {
        Socket::Packet(socket) if call.uint(1) == LEVEL_PACKET => {
            let argument = if room < 4 { 0 } else { call.read::<4>(call.arg(3)).await?.u32_at(0)? };
            Some(packet_options::get(socket, call.uint(2), argument))
        }
        Socket::Internet(_) | Socket::Packet(_) => {
            socket.of_stack().and_then(|inner| internet_options::get(inner, call.uint(1), call.uint(2)))
        }
        Socket::Netlink(socket) if call.uint(1) == LEVEL_NETLINK => Some(socket.option(call.uint(2))),
        _ if call.uint(1) != LEVEL_SOCKET => Some(Err(Error::EOPNOTSUPP)),
        _ => None,
    };
    let value = match own {
        Some(value) => value?,
        None => option_value(call, &socket, &socket.options(), call.uint(2))?,
    };
    let shown = &value[..value.len().min(room)];
    call.write(call.arg(3), shown).await?;
    call.write(call.arg(4), &(shown.len() as u32).to_le_bytes()).await?;
    Ok(0)
}

fn option_value<M: Machine>(
    call: &Call<'_, M>,
    socket: &Socket,
    options: &SocketOptions,
    option: u32,
) -> Result<Vec<u8>> {
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
            Some(credentials) => to_credentials(call.shown_peer(credentials)).to_vec(),
            // There is no peer: no process, and the ids that mean "no user" and "no group".
            None => [number(0), number(u32::MAX), number(u32::MAX)].concat(),
        },
        RECEIVE_LOW => number(1),
        RECEIVE_TIMEOUT => time(options.receive_timeout),
        SEND_TIMEOUT => time(options.send_timeout),
        ACCEPTS => number(socket.is_listening().into()),
        PROTOCOL => number(socket.protocol()),
        DOMAIN => number(socket.family().into()),
        LOCK_FILTER => number((options.kept >> LOCK_FILTER & 1) as u32),
        // The last of the values that filters can load by negative offsets (SKF_AD_MAX).
        FILTER_EXTENSIONS => number(64),
        option if WITHOUT_EFFECT.contains(&option) => number((options.kept >> option & 1) as u32),
        _ => return Err(Error::ENOPROTOOPT),
    })
}
