//! Calls that transfer bytes through descriptors: read, write, and their forms with offsets and
//! with several buffers.

use super::descriptor::{file, offset};
use crate::call::{Call, Done};
use crate::decoded::{Left, Transfer};
use mach::Machine;
use unix::UserBuffer;
use unix::sync::poll_once;
use unix::vfs::{Access, OpenFlags};
use unix::{Error, Result};

/// The arguments of a transfer of one range.
fn decode<M: Machine>(call: &Call<'_, M>) -> Result<Transfer<M>> {
    Ok(Transfer { file: file(call, 0)?, buffer: call.buffer(call.arg(1), call.arg(2))? })
}

/// The arguments of a transfer of many ranges.
async fn decode_many<M: Machine>(call: &Call<'_, M>) -> Result<Transfer<M>> {
    Ok(Transfer { file: file(call, 0)?, buffer: call.buffers(call.arg(1), call.arg(2)).await? })
}

/// The arguments of a transfer: what an attempt to do the call has left, or decoded now.
fn known_or_decoded<M: Machine>(call: &Call<'_, M>) -> Result<Transfer<M>> {
    call.kept.decoded.take_transfer().map_or_else(|| decode(call), Ok)
}

/// The same for transfers of many ranges.
async fn known_or_decoded_many<M: Machine>(call: &Call<'_, M>) -> Result<Transfer<M>> {
    match call.kept.decoded.take_transfer() {
        Some(known) => Ok(known),
        None => decode_many(call).await,
    }
}

/// What a transfer without a task is to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Move {
    Read,
    Write,
    /// A read at the offset in argument 3; the file offset stays.
    ReadAt,
    /// A write at the offset in argument 3.
    WriteAt,
}

/// Does read(2) if nothing has to be waited for.
pub(crate) fn try_read<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    attempt(call, decode(call), Move::Read)
}

/// Does write(2) if nothing has to be waited for.
pub(crate) fn try_write<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    attempt(call, decode(call), Move::Write)
}

/// Does readv(2) if nothing has to be waited for.
pub(crate) fn try_readv<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    attempt(call, poll_once(decode_many(call))?, Move::Read)
}

/// Does writev(2) if nothing has to be waited for.
pub(crate) fn try_writev<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    attempt(call, poll_once(decode_many(call))?, Move::Write)
}

/// Does pread64(2) if nothing has to be waited for.
pub(crate) fn try_pread<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    attempt(call, decode(call), Move::ReadAt)
}

/// Does pwrite64(2) if nothing has to be waited for.
pub(crate) fn try_pwrite<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    attempt(call, decode(call), Move::WriteAt)
}

/// Moves what can be moved without waiting. If that is not all of the call, or if the call has to
/// send a signal, the rest is left for the time when the call is served (`None`).
#[inline]
fn attempt<M: Machine>(call: &Call<'_, M>, decoded: Result<Transfer<M>>, how: Move) -> Option<Done> {
    let mut transfer = match decoded {
        Ok(transfer) => transfer,
        Err(error) => return Some(Err(error.into())),
    };
    match move_now(call, &mut transfer, how) {
        Some(done) => Some(done),
        None => {
            call.kept.decoded.leave(Some(Left::Transfer(transfer)));
            None
        }
    }
}

#[inline]
fn move_now<M: Machine>(call: &Call<'_, M>, transfer: &mut Transfer<M>, how: Move) -> Option<Done> {
    let Transfer { file, buffer } = transfer;
    if let Some(end) = file.pipe_end()
        && matches!(how, Move::Read | Move::Write)
    {
        let write = how == Move::Write;
        file.check(if write { Access::WRITE } else { Access::READ }).ok()?;
        let moved = if write { end.write_now(buffer) } else { end.read_now(buffer) };
        // A write that may wait is not over before all of its bytes are in the pipe.
        if write && buffer.remaining() > 0 && !file.flags().contains(OpenFlags::NONBLOCK) {
            return None;
        }
        return moved.ok().map(|count| Ok(count as u64));
    }
    let context = call.thread.context();
    let caller = context.caller();
    let is_write = matches!(how, Move::Write | Move::WriteAt);
    if is_write && file.flags().intersects(OpenFlags::SYNCHRONOUS | OpenFlags::DATA_SYNCHRONOUS) {
        return None;
    }
    let moved = match how {
        Move::Read => file.read_now(&caller, buffer),
        Move::Write => file.write_now(&caller, buffer),
        Move::ReadAt | Move::WriteAt => {
            let offset = match offset(call, 3) {
                Ok(offset) => offset,
                Err(error) => return Some(Err(error.into())),
            };
            match is_write {
                false => poll_once(file.read_at(&caller, offset, buffer)),
                true => poll_once(file.write_at(&caller, offset, buffer)),
            }
        }
    };
    match moved? {
        Ok(count) => Some(Ok(count as u64)),
        Err(error) if Call::<M>::signal_of(error).is_some() => None,
        Err(error) => Some(Err(error.into())),
    }
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
    read_into(call, known_or_decoded_many(call).await?).await
}

pub(crate) async fn writev<M: Machine>(call: &Call<'_, M>) -> Done {
    write_from(call, known_or_decoded_many(call).await?).await
}

/// The arguments of a transfer at an offset, and the offset at which it goes on.
fn known_or_decoded_at<M: Machine>(call: &Call<'_, M>) -> Result<(Transfer<M>, u64)> {
    let transfer = known_or_decoded(call)?;
    let offset = offset(call, 3)?.saturating_add(transfer.buffer.transferred() as u64);
    Ok((transfer, offset))
}

pub(crate) async fn pread64<M: Machine>(call: &Call<'_, M>) -> Done {
    let (Transfer { file, mut buffer }, offset) = known_or_decoded_at(call)?;
    let context = call.thread.context();
    call.transfer(&mut buffer, async |buffer| file.read_at(&context.caller(), offset, buffer).await).await
}

pub(crate) async fn pwrite64<M: Machine>(call: &Call<'_, M>) -> Done {
    let (Transfer { file, mut buffer }, offset) = known_or_decoded_at(call)?;
    let context = call.thread.context();
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
