//! Calls that move bytes from file to file: sendfile, copy_file_range, splice, tee, vmsplice.

use super::descriptor::{file, not_done};
use crate::call::{Call, Done};
use alloc::sync::Arc;
use mach::Machine;
use unix::file::{OpenFile, transfer};
use unix::signal::RestartKind;
use unix::vfs::{FileType, OpenFlags};
use unix::{AttemptError, Error, Result, UserBuffer};

/// The most bytes that one call moves.
const MAXIMUM: u64 = 0x7fff_f000;
/// The flag SPLICE_F_NONBLOCK.
const NONBLOCK: u32 = 2;
/// The mask of all flags of splice, tee and vmsplice.
const FLAGS: u32 = 15;

/// The offset at the address in argument `index`; `None` if the address is 0.
async fn optional_offset<M: Machine>(call: &Call<'_, M>, index: usize) -> Result<Option<u64>> {
    match call.arg(index) {
        0 => Ok(None),
        address => {
            let offset = i64::from_le_bytes(call.read(address).await?);
            u64::try_from(offset).map(Some).map_err(|_| Error::EINVAL)
        }
    }
}

/// Returns how many bytes were moved, and stores the offsets, which have advanced by that, at their
/// addresses.
async fn finish<M: Machine>(
    call: &Call<'_, M>,
    done: Result<Result<()>, crate::call::Stop>,
    progress: usize,
    offsets: [(Option<u64>, usize); 2],
) -> Done {
    if progress == 0 {
        done?.inspect_err(|error| call.signal_for(*error))?;
    }
    for (offset, index) in offsets {
        if let Some(offset) = offset {
            call.write(call.arg(index), &offset.to_le_bytes()).await?;
        }
    }
    Ok(progress as u64)
}

async fn move_bytes<M: Machine>(
    call: &Call<'_, M>,
    (source, target): (Arc<OpenFile>, Arc<OpenFile>),
    offsets: (usize, Option<usize>),
    count: u64,
) -> Done {
    let context = call.thread.context();
    let mut from = optional_offset(call, offsets.0).await?;
    let mut to = match offsets.1 {
        Some(index) => optional_offset(call, index).await?,
        None => None,
    };
    let (mut progress, count) = (0, count.min(MAXIMUM) as usize);
    let caller = context.caller();
    let work = transfer(&caller, &source, from.as_mut(), &target, to.as_mut(), count, &mut progress);
    let done = call.wait(RestartKind::RestartSys, work).await;
    finish(call, done, progress, [(from, offsets.0), (to, offsets.1.unwrap_or(0))]).await
}

pub(crate) async fn sendfile<M: Machine>(call: &Call<'_, M>) -> Done {
    move_bytes(call, (file(call, 1)?, file(call, 0)?), (2, None), call.arg(3)).await
}

pub(crate) async fn copy_file_range<M: Machine>(call: &Call<'_, M>) -> Done {
    if call.uint(5) != 0 {
        return Err(Error::EINVAL.into());
    }
    let (source, target) = (file(call, 0)?, file(call, 2)?);
    if !matches!(target.file_type(), FileType::Regular | FileType::Directory) {
        return Err(Error::EINVAL.into());
    }
    move_bytes(call, (source, target), (1, Some(3)), call.arg(4)).await
}

pub(crate) async fn splice<M: Machine>(call: &Call<'_, M>) -> Done {
    if call.arg(4) == 0 {
        return Ok(0);
    }
    if call.uint(5) & !FLAGS != 0 {
        return Err(Error::EINVAL.into());
    }
    let (source, target) = (file(call, 0)?, file(call, 2)?);
    let (mut from, mut to) = (optional_offset(call, 1).await?, optional_offset(call, 3).await?);
    let context = call.thread.context();
    let caller = context.caller();
    let (mut progress, count) = (0, call.arg(4).min(MAXIMUM) as usize);
    let nonblock = call.uint(5) & NONBLOCK != 0;
    let ends = ((&source, from.as_mut()), (&target, to.as_mut()));
    let work = unix::pipe::splice(&caller, ends.0, ends.1, count, nonblock, &mut progress);
    let done = call.wait(RestartKind::RestartSys, work).await;
    finish(call, done, progress, [(from, 1), (to, 3)]).await
}

pub(crate) async fn tee<M: Machine>(call: &Call<'_, M>) -> Done {
    if call.uint(3) & !FLAGS != 0 {
        return Err(Error::EINVAL.into());
    }
    if call.arg(2) == 0 {
        return Ok(0);
    }
    let (source, target) = (file(call, 0)?, file(call, 1)?);
    let count = call.arg(2).min(MAXIMUM) as usize;
    let work = unix::pipe::tee(&source, &target, count, call.uint(3) & NONBLOCK != 0);
    let copied =
        call.wait(RestartKind::RestartSys, work).await?.inspect_err(|error| call.signal_for(*error))?;
    Ok(copied as u64)
}

/// vmsplice(2): does a writev to a pipe, or a readv from one; the pages are copied, as the manual
/// page allows.
pub(crate) async fn vmsplice<M: Machine>(call: &Call<'_, M>) -> Done {
    if call.uint(3) & !FLAGS != 0 {
        return Err(Error::EINVAL.into());
    }
    let file = file(call, 0)?;
    let end = file.pipe_end().ok_or(Error::EBADF)?;
    let writes = file.flags().contains(OpenFlags::WRITE);
    if call.uint(3) & NONBLOCK != 0 {
        let mut buffer = call.buffers(call.arg(1), call.arg(2)).await?;
        let done = loop {
            match if writes { end.write_now(&mut buffer) } else { end.read_now(&mut buffer) } {
                Err(AttemptError::NotResident) => buffer.resolve(!writes).await?,
                done => break done.map_err(not_done),
            }
        };
        return Ok(done.inspect_err(|error| call.signal_for(*error))? as u64);
    }
    match writes {
        true => super::transfer::writev(call).await,
        false => super::transfer::readv(call).await,
    }
}
