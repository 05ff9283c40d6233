//! Calls on process descriptors: pidfd_open, pidfd_send_signal, pidfd_getfd.

use super::descriptor::{file, insert};
use crate::call::{Call, Done};
use crate::layout::Fields;
use crate::layout::signal::{information, optional_signal};
use crate::pidfd::PidFile;
use crate::procfs;
use alloc::sync::Arc;
use mach::Machine;
use unix::process::{ExactPid, InspectAs, Pid, Target};
use unix::vfs::OpenFlags;
use unix::{Error, Result};

pub(crate) fn pidfd_open<M: Machine>(call: &Call<'_, M>) -> Done {
    const NONBLOCK: u32 = 0o4000;
    if call.uint(1) & !NONBLOCK != 0 || call.int(0) <= 0 {
        return Err(Error::EINVAL.into());
    }
    let id = call.id(call.int(0))?;
    let flags = if call.uint(1) != 0 { OpenFlags::NONBLOCK } else { OpenFlags::empty() };
    // The id of a thread that is not the first one of its process does not identify the process.
    if call.table(|table| table.thread(id).is_ok_and(|thread| thread.pid() != id)) {
        return Err(Error::EINVAL.into());
    }
    insert(call, PidFile::create(call.system(), id, flags)?, true)
}

/// Makes a descriptor for `child`, which does not run yet, and stores its number at `address`. If
/// the number cannot be stored, no descriptor is made.
pub(crate) async fn store_for_child<M: Machine>(call: &Call<'_, M>, child: Pid, address: u64) -> Result<()> {
    let file = PidFile::create(call.system(), child, OpenFlags::empty())?;
    let descriptors = call.thread.descriptors();
    let number = descriptors.insert(file, true, call.descriptor_limit())?;
    let stored = call.write(address, &number.to_le_bytes()).await;
    if stored.is_err() {
        let _ = descriptors.close(number);
    }
    stored
}

/// The process to which the descriptor in argument `index` refers. `EBADF` if the descriptor is of
/// another kind.
pub(crate) fn process_of<M: Machine>(call: &Call<'_, M>, index: usize) -> Result<(ExactPid, OpenFlags)> {
    let file = file(call, index)?;
    let found: Arc<PidFile<M>> = file.object_as().ok_or(Error::EBADF)?;
    Ok((found.process(), file.flags()))
}

pub(crate) async fn pidfd_send_signal<M: Machine>(call: &Call<'_, M>) -> Done {
    if call.uint(3) != 0 {
        return Err(Error::EINVAL.into());
    }
    // A process's directory in /proc names the process, too.
    let directory = file(call, 0)?.location().and_then(|place| procfs::process_of::<M>(&place.vnode));
    let process = match directory {
        Some(process) => process,
        None => process_of(call, 0)?.0,
    };
    // A process of another namespace cannot be signalled, even if a descriptor for it was passed.
    if call.number(process.pid()) == 0 {
        return Err(Error::EINVAL.into());
    }
    let (signal, tid) = (optional_signal(call.uint(1).into())?, call.tid());
    if call.arg(2) == 0 {
        call.table(|table| {
            let pid = table.exact_process(process)?.pid();
            table.kill(tid, Target::Process(pid), signal)
        })?;
        return Ok(0);
    }
    let bytes = call.read::<128>(call.arg(2)).await?;
    if bytes.u32_at(0)? != call.uint(1) {
        return Err(Error::EINVAL.into());
    }
    let to_self = process.pid() == call.pid();
    let information = signal.map(|signal| information(signal, &bytes, to_self)).transpose()?;
    call.table(|table| {
        let pid = table.exact_process(process)?.pid();
        table.send_to_process(tid, pid, signal, information)
    })?;
    Ok(0)
}

pub(crate) fn pidfd_getfd<M: Machine>(call: &Call<'_, M>) -> Done {
    if call.uint(2) != 0 {
        return Err(Error::EINVAL.into());
    }
    let (process, _) = process_of(call, 0)?;
    let thread = call.system().thread_of_exact(process).ok_or(Error::ESRCH)?;
    // Take the file before the check whether the caller may have it: `may_inspect` requires this
    // order.
    let theirs = thread.descriptors().get(call.int(1));
    call.table(|table| {
        let target = table.exact_process(process)?.pid();
        table.may_inspect(call.tid(), target, InspectAs::RealUser)
    })?;
    insert(call, theirs?, true)
}
