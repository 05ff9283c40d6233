//! seccomp(2), and the same by prctl(2): filters of system calls.

use crate::call::{Call, Done};
use crate::filter::{Action, Filters};
use crate::layout::Fields;
use crate::traced::filters_of;
use alloc::sync::Arc;
use alloc::vec::Vec;
use inet::filter::{INSTRUCTION_SIZE, LENGTH_LIMIT};
use mach::Machine;
use unix::process::{Pid, Table};
use unix::{Error, Privilege, Result};

const STRICT: u32 = 0;
const FILTER: u32 = 1;
const ACTION_AVAILABLE: u32 = 2;

const ALL_THREADS: u32 = 1;
const LOG: u32 = 2;
const SPECULATION: u32 = 4;
const NO_SUCH_THREAD: u32 = 16;

/// seccomp(2).
pub(crate) async fn seccomp<M: Machine>(call: &Call<'_, M>) -> Done {
    let (operation, flags, argument) = (call.uint(0), call.uint(1), call.arg(2));
    match operation {
        STRICT if flags == 0 && argument == 0 => set_strict(call),
        FILTER => set_filter(call, flags, argument).await,
        ACTION_AVAILABLE if flags == 0 => {
            let action = u32::from_le_bytes(call.read(argument).await?);
            if Action::is_available(action) { Ok(0) } else { Err(Error::EOPNOTSUPP.into()) }
        }
        _ => Err(Error::EINVAL.into()),
    }
}

/// prctl(PR_SET_SECCOMP): mode 1 is strict, mode 2 sets a filter.
pub(crate) async fn set_mode<M: Machine>(call: &Call<'_, M>, mode: u64, program: u64) -> Done {
    match mode {
        1 => set_strict(call),
        2 => set_filter(call, 0, program).await,
        _ => Err(Error::EINVAL.into()),
    }
}

/// The mode of the calling thread (prctl(PR_GET_SECCOMP)): 0 without filters, 2 with filters. A
/// thread in strict mode cannot ask.
pub(crate) fn mode<M: Machine>(call: &Call<'_, M>) -> u64 {
    let tid = call.tid();
    if call.table(|table| table.filter(tid).is_some()) { 2 } else { 0 }
}

fn set_strict<M: Machine>(call: &Call<'_, M>) -> Done {
    let tid = call.tid();
    call.table(|table| {
        if filters_of(table, tid).is_some() {
            return Err(Error::EINVAL);
        }
        table.set_filter(tid, Arc::new(Filters::Strict))
    })?;
    call.thread.observe_calls();
    Ok(0)
}

/// The instructions of the program that a struct sock_fprog at `at` names. `EINVAL` if there are
/// none, or too many.
pub(crate) async fn read_program<M: Machine>(call: &Call<'_, M>, at: u64) -> Result<Vec<u8>> {
    let header: [u8; 16] = call.read(at).await?;
    let (length, address) = (usize::from(header.u16_at(0)?), header.u64_at(8)?);
    if length == 0 || length > LENGTH_LIMIT {
        return Err(Error::EINVAL);
    }
    call.memory().read_bytes(address, length * INSTRUCTION_SIZE).await
}

/// Adds a filter to the calling thread, or to all threads of its process. `EACCES` unless exec
/// gives the thread no privileges any more, or the thread may administer the system.
async fn set_filter<M: Machine>(call: &Call<'_, M>, flags: u32, argument: u64) -> Done {
    if flags & !(ALL_THREADS | LOG | SPECULATION | NO_SUCH_THREAD) != 0 {
        return Err(Error::EINVAL.into());
    }
    let bytes = read_program(call, argument).await?;
    if !call.thread.credentials().no_new_privileges
        && !call.thread.credentials().has_own(Privilege::Administrator)
    {
        return Err(Error::EACCES.into());
    }
    let tid = call.tid();
    let before = call.table(|table| filters_of(table, tid));
    let filters = Arc::new(Filters::add(&bytes, before.clone())?);
    let others = match flags & ALL_THREADS {
        0 => Vec::new(),
        _ => call.table(|table| others(table, tid))?,
    };
    // A thread with filters that are not the caller's cannot get the caller's.
    let differs =
        |table: &Table, other: Pid| !Filters::continues(before.as_ref(), filters_of(table, other).as_ref());
    let refuses = call.table(|table| others.iter().copied().find(|other| differs(table, *other)));
    match refuses {
        Some(_) if flags & NO_SUCH_THREAD != 0 => return Err(Error::ESRCH.into()),
        Some(other) => return Ok(other.number().into()),
        None => {}
    }
    for thread in others.into_iter().chain([tid]) {
        // A thread that has ended needs no filter.
        let _ = call.table(|table| table.set_filter(thread, filters.clone()));
        if let Some(thread) = call.system().thread(thread) {
            thread.observe_calls();
        }
    }
    Ok(0)
}

/// The other threads of the process of thread `tid`.
fn others(table: &Table, tid: Pid) -> Result<Vec<Pid>> {
    Ok(table.process_of(tid)?.threads().filter(|other| *other != tid).collect())
}
