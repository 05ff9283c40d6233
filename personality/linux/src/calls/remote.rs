//! Calls on other processes' memory and resources: process_vm_readv, process_vm_writev, kcmp.

use crate::call::{Call, Done};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use mach::Machine;
use unix::process::{InspectAs, Pid};
use unix::thread::{Task, Thread};
use unix::{Error, Result};

/// A thread and the task that it is in.
type Subject<M> = (Arc<Thread<M>>, Arc<Task<M>>);

/// The thread `tid`, and its memory, if the caller may inspect it. `EPERM`, `ESRCH`.
fn subject<M: Machine>(call: &Call<'_, M>, tid: Pid) -> Result<Subject<M>> {
    let thread = call.system().thread(tid).ok_or(Error::ESRCH)?;
    // The memory is taken before the permission is asked for, as `may_inspect` requires.
    let memory = thread.memory().clone();
    call.table(|table| table.may_inspect(call.tid(), thread.pid(), InspectAs::RealUser))?;
    Ok((thread, memory))
}

/// process_vm_readv(2) and process_vm_writev(2): copies between the caller's memory and another
/// process's, within the rights that each has.
pub(crate) async fn process_vm<M: Machine>(call: &Call<'_, M>, write: bool) -> Done {
    const PIECE: usize = 1 << 16;
    if call.arg(5) != 0 {
        return Err(Error::EINVAL.into());
    }
    let local = ranges(call, call.arg(1), call.arg(2)).await?;
    let remote = ranges(call, call.arg(3), call.arg(4)).await?;
    let (_, memory) = subject(call, call.id(call.int(0))?)?;
    let own = call.memory();
    let (from, to) = if write { (&own, &memory) } else { (&memory, &own) };
    let (mut from_ranges, mut to_ranges) = if write { (local, remote) } else { (remote, local) };
    let (mut done, mut buffer) = (0, Vec::new());
    while let (Some(source), Some(target)) = (first(&mut from_ranges), first(&mut to_ranges)) {
        // A copy that fails within a page moves nothing of that page.
        let to_page_end = |address: u64| (4096 - address % 4096) as usize;
        let count = source.1.min(target.1).min(PIECE);
        let count = count.min(to_page_end(source.0)).min(to_page_end(target.0));
        buffer.resize(count, 0);
        let copied = match from.copy_in(source.0, &mut buffer).await {
            Ok(()) => to.copy_out(target.0, &buffer).await,
            Err(error) => Err(error),
        };
        match copied {
            Ok(()) => {}
            Err(_) if done > 0 => break,
            Err(error) => return Err(error.into()),
        }
        for range in [source, target] {
            range.0 += count as u64;
            range.1 -= count;
        }
        done += count;
        unix::sync::give_turn().await;
    }
    Ok(done as u64)
}

/// The first range that is not empty; those before it are removed.
fn first(ranges: &mut Vec<(u64, usize)>) -> Option<&mut (u64, usize)> {
    while ranges.first().is_some_and(|range| range.1 == 0) {
        ranges.remove(0);
    }
    ranges.first_mut()
}

/// Reads an array of iovec structures.
async fn ranges<M: Machine>(call: &Call<'_, M>, array: u64, count: u64) -> Result<Vec<(u64, usize)>> {
    if count > 1024 {
        return Err(Error::EINVAL);
    }
    let bytes = call.memory().read_bytes(array, count as usize * 16).await?;
    crate::layout::file::ranges(&bytes)
}

/// kcmp(2): whether two processes share a resource.
pub(crate) fn kcmp<M: Machine>(call: &Call<'_, M>) -> Done {
    let (first, first_memory) = subject(call, call.id(call.int(0))?)?;
    let (second, second_memory) = subject(call, call.id(call.int(1))?)?;
    let at = |pointer: *const ()| pointer as usize;
    let file = |thread: &Thread<M>, index| {
        let descriptor = i32::try_from(call.arg(index)).map_err(|_| Error::EBADF)?;
        Ok::<_, Error>(at(Arc::as_ptr(&thread.descriptors().get(descriptor)?).cast()))
    };
    let actions = |thread: &Thread<M>| {
        call.table(|table| Ok::<_, Error>(at(Arc::as_ptr(table.process(thread.pid())?.actions()).cast())))
    };
    let (one, other) = match call.int(2) {
        // KCMP_FILE
        0 => (file(&first, 3)?, file(&second, 4)?),
        // KCMP_VM
        1 => (at(Arc::as_ptr(&first_memory).cast()), at(Arc::as_ptr(&second_memory).cast())),
        // KCMP_FILES
        2 => (at(Arc::as_ptr(&first.descriptors()).cast()), at(Arc::as_ptr(&second.descriptors()).cast())),
        // KCMP_FS
        3 => (at(Arc::as_ptr(&first.directories()).cast()), at(Arc::as_ptr(&second.directories()).cast())),
        // KCMP_SIGHAND
        4 => (actions(&first)?, actions(&second)?),
        // KCMP_IO, KCMP_SYSVSEM: processes have neither, so that both have the same.
        5 | 6 => (0, 0),
        _ => return Err(Error::EINVAL.into()),
    };
    Ok(match one.cmp(&other) {
        Ordering::Equal => 0,
        Ordering::Less => 1,
        Ordering::Greater => 2,
    })
}
