//! The options of packet(7), and the filters of socket(7).

use crate::call::Call;
use crate::calls::seccomp::read_program;
use crate::layout::Fields;
use crate::socket::inet::Asked;
use crate::socket::packet::{HEADER, PacketSocket, RingRequest, VERSION};
use alloc::sync::Arc;
use alloc::vec::Vec;
use inet::filter::{Program, Rules};
use mach::Machine;
use unix::socket::InetSocket;
use unix::{Error, Result};

const ADD_MEMBERSHIP: u32 = 1;
const DROP_MEMBERSHIP: u32 = 2;
const RING: u32 = 5;
const STATISTICS: u32 = 6;
const AUXILIARY_DATA: u32 = 8;
const LAYOUT: u32 = 10;
const HEADER_LENGTH: u32 = 11;
const RESERVE: u32 = 12;

/// SO_ATTACH_FILTER.
pub(super) const ATTACH_FILTER: u32 = 26;
/// SO_DETACH_FILTER.
pub(super) const DETACH_FILTER: u32 = 27;
/// SO_LOCK_FILTER: the filter cannot be changed any more.
pub(super) const LOCK_FILTER: u32 = 44;

/// Sets an option of a packet socket. `ENOPROTOOPT` for those that there are not: rings of the
/// other layouts, rings to send by, and sockets that share the frames of an interface.
pub(super) async fn set<M: Machine>(
    call: &Call<'_, M>,
    socket: &Arc<PacketSocket>,
    option: u32,
    bytes: &[u8],
) -> Result<()> {
    match option {
        ADD_MEMBERSHIP | DROP_MEMBERSHIP => socket.change_membership(bytes, option == ADD_MEMBERSHIP),
        RING => {
            let request = RingRequest::from_bytes(bytes)?;
            socket.set_ring(&call.thread.context().caller(), request).await
        }
        AUXILIARY_DATA => {
            let (value, bit) = (bytes.u32_at(0)?, Asked::PacketData.bit());
            let mut options = socket.inner().options();
            options.control = if value != 0 { options.control | bit } else { options.control & !bit };
            socket.inner().set_options(options);
            Ok(())
        }
        LAYOUT => socket.set_version(bytes.u32_at(0)?),
        RESERVE => socket.set_reserve(bytes.u32_at(0)?),
        _ => Err(Error::ENOPROTOOPT),
    }
}

/// The value of an option of a packet socket. `argument` is what is at the place of the value
/// before the call.
pub(super) fn get(socket: &PacketSocket, option: u32, argument: u32) -> Result<Vec<u8>> {
    let number = |number: u32| Ok(number.to_le_bytes().to_vec());
    match option {
        STATISTICS => socket.take_statistics(),
        AUXILIARY_DATA => number((socket.inner().options().control & Asked::PacketData.bit() != 0).into()),
        LAYOUT => number(socket.version()),
        // Programs find out by this which layouts there are.
        HEADER_LENGTH if argument == VERSION => number(HEADER),
        HEADER_LENGTH => Err(Error::EINVAL),
        RESERVE => number(socket.reserve()),
        _ => Err(Error::ENOPROTOOPT),
    }
}

/// Sets, removes or locks the filter of a socket of packets or datagrams. `EPERM` if it is locked,
/// `ENOENT` if there is none, `EOPNOTSUPP` for a stream, `ENOMEM` if the user has too much memory
/// in sockets.
pub(super) async fn change_filter<M: Machine>(
    call: &Call<'_, M>,
    socket: &InetSocket,
    option: u32,
    bytes: &[u8],
) -> Result<()> {
    const LOCKED: u64 = 1 << LOCK_FILTER;
    const PROGRAM_SIZE: usize = 16;
    let mut options = socket.options();
    let is_locked = options.kept & LOCKED != 0;
    let filter = match option {
        LOCK_FILTER => {
            let locks = bytes.u32_at(0)? != 0;
            if is_locked && !locks {
                return Err(Error::EPERM);
            }
            options.kept |= if locks { LOCKED } else { 0 };
            socket.set_options(options);
            return Ok(());
        }
        _ if is_locked => return Err(Error::EPERM),
        ATTACH_FILTER if bytes.len() != PROGRAM_SIZE => return Err(Error::EINVAL),
        ATTACH_FILTER => Some(Program::new(&read_program(call, call.arg(3)).await?, Rules::Packets)?),
        _ => None,
    };
    let removes = filter.is_none();
    let was_there = match socket.network().with(|stack| stack.set_filter(socket.id(), filter)) {
        Err(inet::Error::NoBufferSpace) => return Err(Error::ENOMEM),
        done => done?,
    };
    if removes && !was_there { Err(Error::ENOENT) } else { Ok(()) }
}
