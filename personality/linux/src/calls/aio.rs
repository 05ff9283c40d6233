//! Asynchronous I/O: io_setup, io_submit and the calls that go with them. Each operation is done
//! while it is submitted, as Linux does those on files that are in its page cache.

use super::descriptor::open_file;
use super::poll::{restore_mask, temporary_mask};
use super::time::until;
use crate::aio::{Context, Event};
use crate::call::{Call, Done, Stop};
use crate::errno;
use crate::eventfd::EventCounter;
use crate::layout::{Fields, Writer};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;
use mach::Machine;
use unix::exec::Rights;
use unix::file::{OpenFile, Positions};
use unix::memory::{Advice, NewMapping, Place, RegionKind, UserRanges};
use unix::signal::RestartKind;
use unix::vfs::{Access, FileType, SealFlags};
use unix::{Error, Result};

/// Bytes of the mapping of a context.
const MAPPING: u64 = 4096;

pub(crate) async fn io_setup<M: Machine>(call: &Call<'_, M>) -> Done {
    const MOST: u32 = 0x1000_0000;
    let (count, address) = (call.uint(0), call.arg(1));
    let old = u64::from_le_bytes(call.read(address).await?);
    if old != 0 || count == 0 || count > MOST {
        return Err(Error::EINVAL.into());
    }
    let context = call.thread.context();
    let file = context.caller().make_memory_file(b"[aio]".to_vec(), SealFlags::SEAL).await?;
    file.truncate(&context.caller(), MAPPING).await?;
    call.linux.aio.add(&call.account(), count, &file)?;
    let new = NewMapping {
        place: Place::Hint(0),
        length: MAPPING,
        rights: Rights { read: true, write: true, execute: false },
        shared: true,
        file: Some((&file, 0)),
        grows_down: false,
        populate: false,
        locked: false,
    };
    let memory = call.memory();
    let at = memory.map_new(&new, &call.thread.limits()).await?;
    // A child has no context.
    memory.advise(at, MAPPING, Advice::Fork(false)).await?;
    if let Err(error) = call.write(address, &at.to_le_bytes()).await {
        memory.unmap(at, MAPPING).await?;
        return Err(error.into());
    }
    Ok(0)
}

/// The context that argument 0 names. `EINVAL`.
async fn context<M: Machine>(call: &Call<'_, M>) -> Result<Arc<Context>> {
    let at = call.arg(0);
    let region = call.memory().regions_from(at, 1).await.into_iter().next();
    match region.filter(|region| region.range.start == at).map(|region| region.kind) {
        Some(RegionKind::File { file, offset: 0 }) => call.linux.aio.get(&file),
        _ => Err(Error::EINVAL),
    }
}

pub(crate) async fn io_destroy<M: Machine>(call: &Call<'_, M>) -> Done {
    context(call).await?;
    call.memory().unmap(call.arg(0), MAPPING).await?;
    Ok(0)
}

/// io_submit(2): returns how many operations were begun, or the error of the first if that was not.
pub(crate) async fn io_submit<M: Machine>(call: &Call<'_, M>) -> Done {
    let (context, count) = (context(call).await?, call.arg(1) as i64);
    if count < 0 {
        return Err(Error::EINVAL.into());
    }
    let mut done = 0;
    while done < count as u64 {
        match submit(call, &context, call.arg(2).wrapping_add(8 * done)).await {
            Ok(()) => done += 1,
            Err(error) if done == 0 => return Err(error.into()),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// Does the operation whose address is at `pointer`, and keeps its result. An error that is
/// returned has kept the operation from being begun.
async fn submit<M: Machine>(call: &Call<'_, M>, context: &Context, pointer: u64) -> Result<()> {
    const COUNTED: u32 = 1;
    let operation = u64::from_le_bytes(call.read(pointer).await?);
    let block = call.read::<64>(operation).await?;
    if block.u64_at(48)? != 0 || (block.u64_at(32)? as i64) < 0 {
        return Err(Error::EINVAL);
    }
    context.check_room()?;
    let descriptors = call.thread.descriptors();
    let file = open_file(&descriptors, block.u32_at(20)? as i32)?;
    let counter = match block.u32_at(56)? & COUNTED {
        0 => None,
        _ => {
            let counter = open_file(&descriptors, block.u32_at(60)? as i32)?;
            Some(counter.object_as::<EventCounter>().ok_or(Error::EINVAL)?)
        }
    };
    // The key, by which io_cancel(2) knows that the operation was submitted.
    call.write(operation.wrapping_add(8), &[0; 4]).await?;
    let result = perform(call, &block, &file).await?;
    context.complete(Event { data: block.u64_at(0)?, operation, result });
    if let Some(counter) = counter {
        counter.add_one();
    }
    Ok(())
}

/// Does an operation and returns its result as a call returns it.
async fn perform<M: Machine>(call: &Call<'_, M>, block: &[u8; 64], file: &Arc<OpenFile>) -> Result<u64> {
    const READ: u16 = 0;
    const WRITE: u16 = 1;
    const SYNCHRONIZE: u16 = 2;
    const SYNCHRONIZE_DATA: u16 = 3;
    const READ_MANY: u16 = 7;
    const WRITE_MANY: u16 = 8;
    let (address, length, offset) = (block.u64_at(24)?, block.u64_at(32)?, block.u64_at(40)?);
    let code = block.u16_at(16)?;
    let (buffer, write) = match code {
        READ | WRITE => (call.buffer(address, length)?, code == WRITE),
        READ_MANY | WRITE_MANY => (call.buffers(address, length).await?, code == WRITE_MANY),
        SYNCHRONIZE | SYNCHRONIZE_DATA => {
            if address != 0 || length != 0 || offset != 0 || file.object().is_some() {
                return Err(Error::EINVAL);
            }
            return Ok(errno::result(file.synchronize().await.map(|()| 0)));
        }
        _ => return Err(Error::EINVAL),
    };
    if block.u32_at(12)? != 0 {
        return Err(Error::EOPNOTSUPP);
    }
    file.check(if write { Access::WRITE } else { Access::READ })?;
    if file.file_type() == FileType::Directory || (offset as i64) < 0 {
        return Err(Error::EINVAL);
    }
    Ok(match transfer(call, file, offset, buffer, write).await {
        Ok(count) => count,
        Err(Stop::Error(error)) => errno::result(Err(error)),
        Err(Stop::Outcome(_)) => errno::result(Err(Error::EINTR)),
    })
}

async fn transfer<M: Machine>(
    call: &Call<'_, M>,
    file: &OpenFile,
    offset: u64,
    mut buffer: UserRanges<M>,
    write: bool,
) -> Done {
    let context = call.thread.context();
    let caller = context.caller();
    let is_stream = file.object().is_some_and(|object| object.positions() == Positions::Stream);
    let moving = async |buffer: &mut UserRanges<M>| match (is_stream, write) {
        (true, false) => file.read(&caller, buffer).await,
        (true, true) => file.write(&caller, buffer).await,
        (false, false) => file.read_at(&caller, offset, buffer).await,
        (false, true) => file.write_at(&caller, offset, buffer).await,
    };
    call.transfer(&mut buffer, moving).await
}

/// io_cancel(2): no operation can be cancelled, since each is done when io_submit(2) returns.
pub(crate) async fn io_cancel<M: Machine>(call: &Call<'_, M>) -> Done {
    call.read::<64>(call.arg(1)).await?;
    context(call).await?;
    Err(Error::EINVAL.into())
}

pub(crate) async fn io_getevents<M: Machine>(call: &Call<'_, M>) -> Done {
    let limit = call.time(4).await?;
    events(call, limit).await
}

pub(crate) async fn io_pgetevents<M: Machine>(call: &Call<'_, M>) -> Done {
    let limit = call.time(4).await?;
    if call.arg(5) != 0 {
        let pair = call.read::<16>(call.arg(5)).await?;
        temporary_mask(call, pair.u64_at(0)?, pair.u64_at(8)?).await?;
    }
    let done = events(call, limit).await;
    restore_mask(call, &done);
    done
}

async fn events<M: Machine>(call: &Call<'_, M>, limit: Option<Duration>) -> Done {
    const EVENT: u64 = 32;
    let context = context(call).await?;
    let (least, most) = (call.arg(1) as i64, call.arg(2) as i64);
    if least < 0 || least > most {
        return Err(Error::EINVAL.into());
    }
    let environment = call.system().environment();
    let deadline = limit.map(|limit| environment.monotonic().saturating_add(limit));
    let mut count = 0;
    while count < most as u64 {
        let event = match context.try_take() {
            Some(event) => event,
            None if count >= least as u64 => break,
            None => {
                let taking = Box::pin(until(&**environment, deadline, context.take()));
                match call.wait(RestartKind::Never, taking).await {
                    Ok(Some(event)) => event?,
                    Ok(None) => break,
                    Err(_) if count > 0 => break,
                    Err(stop) => return Err(stop),
                }
            }
        };
        let bytes = Writer::<{ EVENT as usize }>::new().u64(0, event.data).u64(8, event.operation);
        let bytes = bytes.u64(16, event.result).done();
        if let Err(error) = call.write(call.arg(3).wrapping_add(EVENT * count), &bytes).await {
            context.put_back(event);
            return if count > 0 { Ok(count) } else { Err(error.into()) };
        }
        count += 1;
    }
    Ok(count)
}
