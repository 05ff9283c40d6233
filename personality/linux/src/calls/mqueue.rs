//! POSIX message queues: mq_open and the calls that go with it.

use super::descriptor::insert;
use super::time::until;
use crate::call::{Call, Done};
use crate::layout::time::timespec;
use crate::layout::{Fields, Writer, signal};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::Future;
use mach::Machine;
use unix::clock::{Clock, When};
use unix::file::OpenFile;
use unix::message_queue::{Message, MessageQueue, Notice, PRIORITIES, QueueLimits};
use unix::process::{Pid, Resource};
use unix::signal::{Cause, RestartKind, SignalInformation};
use unix::vfs::{Access, Mode, OpenFlags};
use unix::{Error, Result};

/// Bytes of struct mq_attr.
const ATTRIBUTES: usize = 64;
const NONBLOCK: u64 = 0o4000;

/// The open file of a message queue, open for all of `access`, and the queue. `EBADF`.
fn queue<M: Machine>(call: &Call<'_, M>, access: Access) -> Result<(Arc<OpenFile>, Arc<MessageQueue>)> {
    let file = super::descriptor::file(call, 0)?;
    let queue = file.object_as::<MessageQueue>().ok_or(Error::EBADF)?;
    file.check(access)?;
    Ok((file, queue))
}

pub(crate) async fn mq_open<M: Machine>(call: &Call<'_, M>) -> Done {
    const ACCESS: u32 = 3;
    const CREATE: u32 = 0o100;
    const EXCLUSIVE: u32 = 0o200;
    const KNOWN: u32 = ACCESS | CREATE | EXCLUSIVE | NONBLOCK as u32;
    let limits = match call.arg(3) {
        0 => None,
        address => {
            let attributes: [u8; ATTRIBUTES] = call.read(address).await?;
            // A negative number is more than any limit.
            Some(QueueLimits { length: attributes.u64_at(8)?, size: attributes.u64_at(16)? })
        }
    };
    let (name, flags) = (call.path(0).await?, call.uint(1) & KNOWN);
    if flags & ACCESS == ACCESS {
        return Err(Error::EINVAL.into());
    }
    let (flags, mode) = (crate::layout::file::open_flags(flags), Mode::new((call.arg(2) & 0o7777) as u16));
    let limit = call.thread.soft_limit(Resource::MessageQueues);
    let context = call.thread.context();
    let opened = context.caller().open_message_queue(&name, flags, mode, limits, limit).await?;
    insert(call, opened, true)
}

pub(crate) async fn mq_unlink<M: Machine>(call: &Call<'_, M>) -> Done {
    let name = call.path(0).await?;
    call.thread.context().caller().unlink_message_queue(&name).await?;
    Ok(0)
}

/// Waits for `work`, at most until the time of day to which the last argument points.
async fn wait<M: Machine, T>(
    call: &Call<'_, M>,
    work: impl Future<Output = Result<T>>,
) -> Result<T, crate::call::Stop> {
    let system = call.system();
    let deadline = match call.arg(4) {
        0 => None,
        address => {
            let time = When::At(timespec(&call.read::<16>(address).await?)?);
            Some(Clock::Realtime.deadline(&**system.environment(), system.processes(), time)?)
        }
    };
    let work = Box::pin(until(&**system.environment(), deadline, work));
    match call.wait(RestartKind::RestartSys, work).await? {
        Some(done) => done.map_err(Into::into),
        None => Err(Error::ETIMEDOUT.into()),
    }
}

pub(crate) async fn mq_timedsend<M: Machine>(call: &Call<'_, M>) -> Done {
    let priority = call.uint(3);
    if priority >= PRIORITIES {
        return Err(Error::EINVAL.into());
    }
    let (file, queue) = queue(call, Access::WRITE)?;
    if call.arg(2) > queue.limits().size {
        return Err(Error::EMSGSIZE.into());
    }
    let length = call.arg(2) as usize;
    let make = Message::charged(&call.account(), length)?;
    let message = make(priority, call.memory().read_bytes(call.arg(1), length).await?);
    let no_wait = file.flags().contains(OpenFlags::NONBLOCK);
    if let Some(notice) = wait(call, queue.send(message, no_wait)).await? {
        notify(call, notice);
    }
    Ok(0)
}

/// Tells a process that a message has come into an empty queue.
fn notify<M: Machine>(call: &Call<'_, M>, notice: Notice) {
    /// SI_MESGQ.
    const MESSAGE: i32 = -3;
    let (Some((signal, value)), Some(to)) = (notice.signal, Pid::new(notice.process)) else { return };
    let (process, user) = (call.pid().number(), call.thread.credentials().user.real);
    let cause = Cause::Queue { code: MESSAGE, process, user, value };
    call.table(|table| table.generate_for_process(to, SignalInformation { signal, error: 0, cause }));
}

pub(crate) async fn mq_timedreceive<M: Machine>(call: &Call<'_, M>) -> Done {
    let (file, queue) = queue(call, Access::READ)?;
    if call.arg(2) < queue.limits().size {
        return Err(Error::EMSGSIZE.into());
    }
    let no_wait = file.flags().contains(OpenFlags::NONBLOCK);
    let message = wait(call, queue.receive(no_wait)).await?;
    call.write(call.arg(1), &message.bytes).await?;
    call.write_optional(call.arg(3), &message.priority.to_le_bytes()).await?;
    Ok(message.bytes.len() as u64)
}

/// mq_notify(2). SIGEV_THREAD names a socket for messages of the kernel, of a family that there is
/// not here.
pub(crate) async fn mq_notify<M: Machine>(call: &Call<'_, M>) -> Done {
    const SIGNAL: u32 = 0;
    const NONE: u32 = 1;
    const THREAD: u32 = 2;
    let event = match call.arg(1) {
        0 => None,
        address => Some(call.read::<64>(address).await?),
    };
    let signal = match &event {
        None => None,
        Some(event) => match event.u32_at(12)? {
            NONE => None,
            SIGNAL => Some((signal::signal(event.u32_at(8)?.into())?, event.u64_at(0)?)),
            THREAD => {
                let socket = call.thread.descriptors().get(event.u32_at(8)? as i32)?;
                let is_socket = socket.socket().is_some();
                return Err(if is_socket { Error::EINVAL } else { Error::ENOTSOCK }.into());
            }
            _ => return Err(Error::EINVAL.into()),
        },
    };
    let (_, queue) = queue(call, Access::empty())?;
    let owner = call.thread.descriptors().lock_owner();
    match event {
        None => queue.forget(owner),
        Some(_) => queue.notify(Notice { owner, process: call.pid().number(), signal })?,
    }
    Ok(0)
}

pub(crate) async fn mq_getsetattr<M: Machine>(call: &Call<'_, M>) -> Done {
    let new = match call.arg(1) {
        0 => None,
        address => {
            let flags = call.read::<ATTRIBUTES>(address).await?.u64_at(0)?;
            if flags & !NONBLOCK != 0 {
                return Err(Error::EINVAL.into());
            }
            Some(flags)
        }
    };
    let (file, queue) = queue(call, Access::empty())?;
    let flags = if file.flags().contains(OpenFlags::NONBLOCK) { NONBLOCK } else { 0 };
    let QueueLimits { length, size } = queue.limits();
    let attributes = Writer::<ATTRIBUTES>::new().u64(0, flags).u64(8, length).u64(16, size);
    let attributes = attributes.u64(24, queue.length() as u64).done();
    if let Some(new) = new {
        file.set_flag(OpenFlags::NONBLOCK, new & NONBLOCK != 0);
    }
    call.write_optional(call.arg(2), &attributes).await?;
    Ok(0)
}
