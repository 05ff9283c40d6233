//! Moving bytes through descriptors: read, write, and their forms with offsets and with several
//! buffers.

use super::descriptor::{file, offset};
use super::poll_once;
use crate::call::{Call, Done};
use alloc::boxed::Box;
use alloc::sync::Arc;
use mach::Machine;
use unix::file::OpenFile;
use unix::memory::UserRanges;
use unix::vfs::Access;
use unix::{Error, Result};

/// What a read or write needs: looked up once, however often it is tried. It is handed on in a box:
/// the many calls that have none would pay for moving it.
pub struct Transfer<M: Machine> {
    file: Arc<OpenFile>,
    buffer: UserRanges<M>,
}

impl<M: Machine> Transfer<M> {
    fn decode(call: &Call<'_, M>) -> Result<Transfer<M>> {
        Ok(Transfer { file: file(call, 0)?, buffer: call.buffer(call.arg(1), call.arg(2))? })
    }
}

/// What became of a read or write that was tried without waiting.
pub(crate) enum Tried<M: Machine> {
    Done(Done),
    /// It is to be begun as any other call.
    No,
    /// It has to wait; nothing has been done but this.
    Decoded(Box<Transfer<M>>),
}

/// Bytes that are moved without the thread's task at most.
const LITTLE: u64 = 4096;

/// A read or write that moves little, to or from a pipe or a device whose bytes are always the same
/// or random, if it need not wait and sends no signal.
pub(crate) fn try_transfer<M: Machine>(call: &Call<'_, M>, write: bool) -> Tried<M> {
    if call.arg(2) > LITTLE {
        return Tried::No;
    }
    let mut transfer = match Transfer::decode(call) {
        Ok(transfer) => transfer,
        Err(error) => return Tried::Done(Err(error.into())),
    };
    let Some(object) = transfer.file.object() else { return Tried::No };
    if object.is_memory_device() {
        *call.decoded.lock() = Some(Box::new(transfer));
        let done = if write { poll_once(self::write(call)) } else { poll_once(read(call)) };
        return done.map_or(Tried::No, Tried::Done);
    }
    let Some(end) = object.pipe_end() else { return Tried::No };
    if transfer.file.check(if write { Access::WRITE } else { Access::READ }).is_err() {
        return Tried::No;
    }
    let buffer = &mut transfer.buffer;
    match if write { end.write_now(buffer) } else { end.read_now(buffer) } {
        Ok(count) => Tried::Done(Ok(count as u64)),
        Err(_) => Tried::Decoded(Box::new(transfer)),
    }
}

/// A pread that moves little, if it need not wait. One that comes half way begins again.
pub(crate) fn try_pread<M: Machine>(call: &Call<'_, M>) -> Option<Done> {
    if call.arg(2) > LITTLE { None } else { poll_once(pread64(call)) }
}

pub(crate) async fn read<M: Machine>(call: &Call<'_, M>) -> Done {
    let Transfer { file, mut buffer } =
        call.decoded().map_or_else(|| Transfer::decode(call), |known| Ok(*known))?;
    let context = call.thread.context();
    call.transfer(&mut buffer, async |buffer| file.read(&context.caller(), buffer).await).await
}

pub(crate) async fn write<M: Machine>(call: &Call<'_, M>) -> Done {
    let Transfer { file, mut buffer } =
        call.decoded().map_or_else(|| Transfer::decode(call), |known| Ok(*known))?;
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

/// preadv(2), and preadv2(2) without flags, where an offset of -1 is the position.
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

/// pwritev(2), and pwritev2(2) without flags, where an offset of -1 is the position.
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
