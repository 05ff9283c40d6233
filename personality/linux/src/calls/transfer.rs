//! Calls that transfer bytes through descriptors: read, write, and their forms with offsets and
//! with several buffers.

use super::descriptor::{file, offset};
use super::poll_once;
use crate::call::{Call, Done};
use crate::decoded::Transfer;
use mach::Machine;
use unix::vfs::Access;
use unix::{Error, Result};

fn decode<M: Machine>(call: &Call<'_, M>) -> Result<Transfer<M>> {
    Ok(Transfer { file: file(call, 0)?, buffer: call.buffer(call.arg(1), call.arg(2))? })
}

/// The decoded arguments of a transfer: those that an attempt to do the call has left, or decoded
/// now.
fn known_or_decoded<M: Machine>(call: &Call<'_, M>) -> Result<Transfer<M>> {
    call.kept.decoded.take().map_or_else(|| decode(call), |known| Ok(*known))
}

/// The most bytes that a call moves without the thread's async task.
const LITTLE: u64 = 4096;

/// Does a read or write of few bytes without blocking, to or from a pipe or a device such as
/// /dev/zero. `None` if it would block or send a signal.
pub(crate) fn try_transfer<M: Machine>(call: &Call<'_, M>, write: bool) -> Option<Done> {
    attempt(call, write).map_err(|left| call.kept.decoded.leave(left)).ok()
}

/// Does the call of [`try_transfer`], or returns the decoded arguments that it leaves for the time
/// when the call is served.
#[inline]
fn attempt<M: Machine>(call: &Call<'_, M>, write: bool) -> Result<Done, Option<Transfer<M>>> {
    if call.arg(2) > LITTLE {
        return Err(None);
    }
    let mut transfer = match decode(call) {
        Ok(transfer) => transfer,
        Err(error) => return Ok(Err(error.into())),
    };
    let object = transfer.file.object().ok_or(None)?;
    if object.is_memory_device() {
        let done = match write {
            true => poll_once(write_from(call, transfer)),
            false => poll_once(read_into(call, transfer)),
        };
        return done.ok_or(None);
    }
    let end = object.pipe_end().ok_or(None)?;
    if transfer.file.check(if write { Access::WRITE } else { Access::READ }).is_err() {
        return Err(None);
    }
    let buffer = &mut transfer.buffer;
    match if write { end.write_now(buffer) } else { end.read_now(buffer) } {
        Ok(count) => Ok(Ok(count as u64)),
        Err(_) => Err(Some(transfer)),
    }
}

/// Does a pread of few bytes without blocking; `None` if it would block. A pread that comes only
/// half way is started again.
pub(crate) fn try_pread<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    if call.arg(2) > LITTLE { None } else { poll_once(pread64(call)) }
}

pub(crate) async fn read<M: Machine>(call: &Call<'_, M>) -> Done {
    read_into(call, known_or_decoded(call)?).await
}

pub(crate) async fn write<M: Machine>(call: &Call<'_, M>) -> Done {
    write_from(call, known_or_decoded(call)?).await
}

async fn read_into<M: Machine>(call: &Call<'_, M>, transfer: Transfer<M>) -> Done {
    let Transfer { file, mut buffer } = transfer;
    let context = call.thread.context();
    call.transfer(&mut buffer, async |buffer| file.read(&context.caller(), buffer).await).await
}

async fn write_from<M: Machine>(call: &Call<'_, M>, transfer: Transfer<M>) -> Done {
    let Transfer { file, mut buffer } = transfer;
    let context = call.thread.context();
    call.transfer(&mut buffer, async |buffer| file.write(&context.caller(), buffer).await).await
}

pub(crate) async fn readv<M: Machine>(call: &Call<'_, M>) -> Done {
    let (file, context) = (file(call, 0)?, call.thread.context());
    let mut buffer = call.buffers(call.arg(1), call.arg(2)).await?;
    call.transfer(&mut buffer, async |buffer| file.read(&context.caller(), buffer).await).await
}

pub(crate) async fn writev<M: Machine>(call: &Call<'_, M>) -> Done {
    let (file, context) = (file(call, 0)?, call.thread.context());
    let mut buffer = call.buffers(call.arg(1), call.arg(2)).await?;
    call.transfer(&mut buffer, async |buffer| file.write(&context.caller(), buffer).await).await
}

pub(crate) async fn pread64<M: Machine>(call: &Call<'_, M>) -> Done {
    let (file, context, offset) = (file(call, 0)?, call.thread.context(), offset(call, 3)?);
    let mut buffer = call.buffer(call.arg(1), call.arg(2))?;
    call.transfer(&mut buffer, async |buffer| file.read_at(&context.caller(), offset, buffer).await).await
}

pub(crate) async fn pwrite64<M: Machine>(call: &Call<'_, M>) -> Done {
    let (file, context, offset) = (file(call, 0)?, call.thread.context(), offset(call, 3)?);
    let mut buffer = call.buffer(call.arg(1), call.arg(2))?;
    call.transfer(&mut buffer, async |buffer| file.write_at(&context.caller(), offset, buffer).await).await
}

/// preadv(2), and preadv2(2) without flags, where an offset of -1 means the file offset.
pub(crate) async fn preadv<M: Machine>(call: &Call<'_, M>, second: bool) -> Done {
    if second && call.uint(5) != 0 {
        return Err(Error::EOPNOTSUPP.into());
    }
    if second && call.arg(3) as i64 == -1 {
        return readv(call).await;
    }
    let (file, context, offset) = (file(call, 0)?, call.thread.context(), offset(call, 3)?);
    let mut buffer = call.buffers(call.arg(1), call.arg(2)).await?;
    call.transfer(&mut buffer, async |buffer| file.read_at(&context.caller(), offset, buffer).await).await
}

/// pwritev(2), and pwritev2(2) without flags, where an offset of -1 means the file offset.
pub(crate) async fn pwritev<M: Machine>(call: &Call<'_, M>, second: bool) -> Done {
    if second && call.uint(5) != 0 {
        return Err(Error::EOPNOTSUPP.into());
    }
    if second && call.arg(3) as i64 == -1 {
        return writev(call).await;
    }
    let (file, context, offset) = (file(call, 0)?, call.thread.context(), offset(call, 3)?);
    let mut buffer = call.buffers(call.arg(1), call.arg(2)).await?;
    call.transfer(&mut buffer, async |buffer| file.write_at(&context.caller(), offset, buffer).await).await
}
