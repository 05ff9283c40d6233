//! Calls on scheduling: affinity, policies and priorities. Programs may ask for all of these, and
//! may change the affinity. The policy and its priority cannot be changed: a program may only set
//! the values that it has.

use super::process::{check_schedule, id};
use crate::call::{Call, Done};
use crate::layout::time::to_timespec;
use crate::layout::{Fields, Writer};
use alloc::sync::Arc;
use core::time::Duration;
use mach::Machine;
use mach::machine::ExecutionContext;
use unix::process::Pid;
use unix::thread::{Thread, context_error};
use unix::{Error, Result};

/// The id of the thread that an argument names; 0 names the caller. `ESRCH`.
fn thread<M: Machine>(call: &Call<'_, M>, index: usize) -> Result<Pid> {
    let tid = if call.int(index) == 0 { call.tid() } else { id(call.int(index))? };
    call.table(|table| table.thread(tid).map(|_| tid))
}

/// The thread that argument 0 names, for the calls on policies. `EINVAL` for a negative number,
/// `ESRCH`.
fn scheduled_thread<M: Machine>(call: &Call<'_, M>) -> Result<Pid> {
    if call.int(0) < 0 { Err(Error::EINVAL) } else { thread(call, 0) }
}

/// Bytes of an affinity mask in the system's own size.
const MASK: usize = 8;
const LONGEST_MASK: usize = 1024;

/// The thread that argument 0 names; 0 names the caller.
fn target<M: Machine>(call: &Call<'_, M>) -> Result<Arc<Thread<M>>> {
    let tid = thread(call, 0)?;
    call.system().thread(tid).ok_or(Error::ESRCH)
}

pub(crate) async fn sched_getaffinity<M: Machine>(call: &Call<'_, M>) -> Done {
    let target = target(call)?;
    let size = call.uint(1) as usize;
    if !size.is_multiple_of(MASK) || size == 0 {
        return Err(Error::EINVAL.into());
    }
    call.write(call.arg(2), &target.machine_thread().affinity().to_le_bytes()).await?;
    Ok(MASK as u64)
}

pub(crate) async fn sched_setaffinity<M: Machine>(call: &Call<'_, M>) -> Done {
    let given = call.memory().read_bytes(call.arg(2), (call.uint(1) as usize).min(LONGEST_MASK)).await?;
    let mut mask = [0; MASK];
    mask.iter_mut().zip(&given).for_each(|(byte, given)| *byte = *given);
    may_set(call)?;
    target(call)?.machine_thread().set_affinity(u64::from_le_bytes(mask)).map_err(context_error)?;
    Ok(0)
}

/// Checks that the caller may change how the thread in argument 0 is scheduled. `EPERM`, `ESRCH`.
fn may_set<M: Machine>(call: &Call<'_, M>) -> Result<()> {
    let tid = thread(call, 0)?;
    let pid = call.table(|table| table.process_of(tid).map(|process| process.pid()))?;
    check_schedule(call, pid)
}

/// sched_getparam and related calls: the only scheduling policy is SCHED_OTHER, with priority 0.
pub(crate) async fn sched_param<M: Machine>(call: &Call<'_, M>, set: Option<usize>) -> Done {
    if call.arg(set.unwrap_or(1)) == 0 {
        return Err(Error::EINVAL.into());
    }
    scheduled_thread(call)?;
    match set {
        None => call.write(call.arg(1), &[0; 4]).await?,
        Some(index) => {
            if index == 2 && call.uint(1) != 0 {
                return Err(Error::EPERM.into());
            }
            if call.read::<4>(call.arg(index)).await? != [0; 4] {
                return Err(Error::EINVAL.into());
            }
            may_set(call)?;
        }
    }
    Ok(0)
}

pub(crate) fn sched_getscheduler<M: Machine>(call: &Call<'_, M>) -> Done {
    scheduled_thread(call)?;
    Ok(0)
}

pub(crate) fn sched_priority_bound<M: Machine>(call: &Call<'_, M>, real_time: u64) -> Done {
    match call.uint(0) {
        // OTHER, BATCH, IDLE and DEADLINE have one priority; FIFO and RR have 1 to 99.
        0 | 3 | 5 | 6 => Ok(0),
        1 | 2 => Ok(real_time),
        _ => Err(Error::EINVAL.into()),
    }
}

/// sched_yield(2): lets other threads run, once more than they could while this one came to the
/// server.
pub(crate) async fn sched_yield() -> Done {
    let mut yielded = false;
    core::future::poll_fn(|cx| match core::mem::replace(&mut yielded, true) {
        true => core::task::Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            core::task::Poll::Pending
        }
    })
    .await;
    Ok(0)
}

/// How long a thread runs before another of its priority (sched_rr_get_interval(2)).
const TURN: Duration = Duration::from_millis(10);

pub(crate) async fn sched_rr_get_interval<M: Machine>(call: &Call<'_, M>) -> Done {
    scheduled_thread(call)?;
    call.write(call.arg(1), &to_timespec(TURN)).await?;
    Ok(0)
}

/// Bytes of the first version of struct sched_attr, which has all the fields that are used here.
const ATTRIBUTES: usize = 48;

pub(crate) async fn sched_getattr<M: Machine>(call: &Call<'_, M>) -> Done {
    let (tid, size) = (scheduled_thread(call)?, call.uint(2) as usize);
    if !(ATTRIBUTES..=4096).contains(&size) || call.uint(3) != 0 {
        return Err(Error::EINVAL.into());
    }
    let nice = call.table(|table| table.process_of(tid).map(|process| process.nice))?;
    let attributes = Writer::<ATTRIBUTES>::new().u32(0, ATTRIBUTES as u32).i32(16, nice.into()).done();
    call.write(call.arg(1), &attributes).await?;
    Ok(0)
}

/// sched_setattr(2): sets only the values that the thread has, SCHED_OTHER and its nice value
/// (`EPERM` for others).
pub(crate) async fn sched_setattr<M: Machine>(call: &Call<'_, M>) -> Done {
    let tid = scheduled_thread(call)?;
    if call.uint(2) != 0 {
        return Err(Error::EINVAL.into());
    }
    let attributes = call.read::<ATTRIBUTES>(call.arg(1)).await?;
    if attributes.u32_at(0)? != 0 && (attributes.u32_at(0)? as usize) < ATTRIBUTES {
        return Err(Error::E2BIG.into());
    }
    let nice = call.table(|table| table.process_of(tid).map(|process| process.nice))?;
    let same = attributes.u32_at(4)? == 0 && attributes.i32_at(16)? == i32::from(nice);
    if same { Ok(0) } else { Err(Error::EPERM.into()) }
}

/// ioprio_get(2): returns that no priority of input and output has been set, since none can be.
pub(crate) fn ioprio_get<M: Machine>(call: &Call<'_, M>) -> Done {
    match call.uint(0) {
        1 => thread(call, 1).map(|_| 0).map_err(Into::into),
        2 | 3 => Ok(0),
        _ => Err(Error::EINVAL.into()),
    }
}
