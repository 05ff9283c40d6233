//! Calls on scheduling: affinity, policies and priorities, also of input and output.

use super::process::check_schedule;
use crate::call::{Call, Done};
use crate::layout::time::to_timespec;
use crate::layout::{Fields, Writer};
use alloc::sync::Arc;
use alloc::vec::Vec;
use mach::Machine;
use mach::machine::ExecutionContext;
use unix::process::{Pid, Resource};
use unix::schedule::{PRIORITIES, Policy, Schedule};
use unix::thread::{Thread, context_error};
use unix::{Error, Privilege, Result};

/// The id of the thread that an argument names; 0 names the caller. `ESRCH`.
fn thread<M: Machine>(call: &Call<'_, M>, index: usize) -> Result<Pid> {
    let tid = if call.int(index) == 0 { call.tid() } else { call.id(call.int(index))? };
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

/// The policies by their numbers.
const POLICIES: [(Policy, u32); 5] =
    [(Policy::Other, 0), (Policy::Fifo, 1), (Policy::RoundRobin, 2), (Policy::Batch, 3), (Policy::Idle, 5)];
/// The bit of sched_setscheduler's policy that stands for SCHED_RESET_ON_FORK.
const RESET_ON_FORK: u32 = 0x4000_0000;

fn number(policy: Policy) -> u32 {
    POLICIES.iter().find(|(known, _)| *known == policy).map_or(0, |(_, number)| *number)
}

/// The policy with this number. `EINVAL`, also for SCHED_DEADLINE, which there is not.
fn policy(number: u32) -> Result<Policy> {
    POLICIES.iter().find(|(_, known)| *known == number).map(|(policy, _)| *policy).ok_or(Error::EINVAL)
}

/// Gives a thread a schedule, and its process a nice value. `EINVAL` for a priority that the policy
/// does not have, `EPERM`, `ESRCH`.
fn set_schedule<M: Machine>(call: &Call<'_, M>, tid: Pid, new: Schedule, nice: Option<i8>) -> Result<()> {
    let priorities = if new.is_real_time() { 1..=PRIORITIES } else { 0..=0 };
    if !priorities.contains(&new.priority) {
        return Err(Error::EINVAL);
    }
    let pid = call.table(|table| table.process_of(tid).map(|process| process.pid()))?;
    check_schedule(call, pid)?;
    let privileged = call.has(Privilege::Schedule);
    call.table(|table| {
        let process = table.process(pid)?;
        let limit = process.limits.soft(Resource::RealTimePriority);
        let floor = 20 - process.limits.soft(Resource::Nice).min(40) as i64;
        let (old_nice, old) = (process.nice, table.thread(tid)?.schedule);
        let more = new.is_real_time()
            && (new.policy != old.policy && limit == 0
                || new.priority > old.priority && u64::from(new.priority) > limit);
        let lower = nice.is_some_and(|nice| nice < old_nice && i64::from(nice) < floor);
        let leaves_idle =
            old.policy == Policy::Idle && new.policy != Policy::Idle && i64::from(old_nice) < floor;
        let keeps = old.is_reset && !new.is_reset;
        if !privileged && (more || lower || leaves_idle || keeps) {
            return Err(Error::EPERM);
        }
        table.thread_mut(tid)?.schedule = new;
        if let Some(nice) = nice {
            table.process_mut(pid)?.nice = nice;
        }
        Ok(())
    })?;
    apply_schedules(call, pid);
    Ok(())
}

/// Has the machine schedule the threads of a process as their records say.
pub(crate) fn apply_schedules<M: Machine>(call: &Call<'_, M>, pid: Pid) {
    let threads: Vec<Pid> =
        call.table(|table| table.process(pid).map(|p| p.threads().collect())).unwrap_or_default();
    for tid in threads {
        // A thread that has ended meanwhile is scheduled no more.
        if let Some(thread) = call.system().thread(tid) {
            let _ = thread.apply_schedule(tid);
        }
    }
}

/// sched_getparam, sched_setparam and sched_setscheduler; `set` is the index of the argument with
/// the new priority.
pub(crate) async fn sched_param<M: Machine>(call: &Call<'_, M>, set: Option<usize>) -> Done {
    if call.arg(set.unwrap_or(1)) == 0 || call.int(0) < 0 {
        return Err(Error::EINVAL.into());
    }
    let Some(index) = set else {
        let tid = scheduled_thread(call)?;
        let old = call.table(|table| table.thread(tid).map(|thread| thread.schedule))?;
        call.write(call.arg(1), &u32::from(old.priority).to_le_bytes()).await?;
        return Ok(0);
    };
    if index == 2 && call.int(1) < 0 {
        return Err(Error::EINVAL.into());
    }
    let priority = i32::from_le_bytes(call.read(call.arg(index)).await?);
    let tid = scheduled_thread(call)?;
    let old = call.table(|table| table.thread(tid).map(|thread| thread.schedule))?;
    let priority = u8::try_from(priority).map_err(|_| Error::EINVAL)?;
    let new = match index {
        2 => Schedule {
            policy: policy(call.uint(1) & !RESET_ON_FORK)?,
            priority,
            is_reset: call.uint(1) & RESET_ON_FORK != 0,
        },
        _ => Schedule { priority, ..old },
    };
    set_schedule(call, tid, new, None)?;
    Ok(0)
}

pub(crate) fn sched_getscheduler<M: Machine>(call: &Call<'_, M>) -> Done {
    let tid = scheduled_thread(call)?;
    let schedule = call.table(|table| table.thread(tid).map(|thread| thread.schedule))?;
    let reset = if schedule.is_reset { RESET_ON_FORK } else { 0 };
    Ok((number(schedule.policy) | reset).into())
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

pub(crate) async fn sched_rr_get_interval<M: Machine>(call: &Call<'_, M>) -> Done {
    let tid = scheduled_thread(call)?;
    let turn = call.table(|table| {
        let nice = table.process_of(tid)?.nice;
        table.thread(tid).map(|thread| thread.schedule.turn(nice))
    })?;
    call.write(call.arg(1), &to_timespec(turn)).await?;
    Ok(0)
}

/// Bytes of the first version of struct sched_attr, which has all the fields that are used here,
/// and of the present one.
const ATTRIBUTES: usize = 48;
const ALL_ATTRIBUTES: usize = 56;
/// SCHED_FLAG_RESET_ON_FORK, SCHED_FLAG_KEEP_POLICY and SCHED_FLAG_KEEP_PARAMS.
const ATTRIBUTE_RESET: u64 = 1;
const ATTRIBUTE_KEEP_POLICY: u64 = 8;
const ATTRIBUTE_KEEP: u64 = 16;

pub(crate) async fn sched_getattr<M: Machine>(call: &Call<'_, M>) -> Done {
    let size = call.uint(2) as usize;
    if !(ATTRIBUTES..=4096).contains(&size) || call.uint(3) != 0 || call.arg(1) == 0 {
        return Err(Error::EINVAL.into());
    }
    let tid = scheduled_thread(call)?;
    let (schedule, nice) = call.table(|table| {
        let nice = table.process_of(tid)?.nice;
        table.thread(tid).map(|thread| (thread.schedule, nice))
    })?;
    let size = size.min(ALL_ATTRIBUTES);
    let attributes = Writer::<ALL_ATTRIBUTES>::new()
        .u32(0, size as u32)
        .u32(4, number(schedule.policy))
        .u64(8, if schedule.is_reset { ATTRIBUTE_RESET } else { 0 });
    let attributes = match schedule.is_real_time() {
        true => attributes.u32(20, schedule.priority.into()),
        false => attributes.i32(16, nice.into()),
    };
    call.write(call.arg(1), &attributes.done()[..size]).await?;
    Ok(0)
}

/// sched_setattr(2), without SCHED_DEADLINE (`EINVAL`) and limits of the use of a processor
/// (`EOPNOTSUPP`).
pub(crate) async fn sched_setattr<M: Machine>(call: &Call<'_, M>) -> Done {
    const LIMITS: u64 = 0x60;
    if call.arg(1) == 0 || call.int(0) < 0 || call.uint(2) != 0 {
        return Err(Error::EINVAL.into());
    }
    let size = match u32::from_le_bytes(call.read(call.arg(1)).await?) as usize {
        0 => ATTRIBUTES,
        size => size,
    };
    let rest = size.saturating_sub(ALL_ATTRIBUTES);
    let is_known = (ATTRIBUTES..=4096).contains(&size)
        && call
            .memory()
            .read_bytes(call.arg(1).wrapping_add(ALL_ATTRIBUTES as u64), rest)
            .await?
            .iter()
            .all(|byte| *byte == 0);
    if !is_known {
        call.write(call.arg(1), &(ALL_ATTRIBUTES as u32).to_le_bytes()).await?;
        return Err(Error::E2BIG.into());
    }
    let attributes = call.read::<ATTRIBUTES>(call.arg(1)).await?;
    let (flags, nice) = (attributes.u64_at(8)?, attributes.i32_at(16)?.clamp(-20, 19) as i8);
    if flags & LIMITS != 0 {
        return Err(Error::EOPNOTSUPP.into());
    }
    if flags & !(ATTRIBUTE_RESET | ATTRIBUTE_KEEP_POLICY | ATTRIBUTE_KEEP) != 0 {
        return Err(Error::EINVAL.into());
    }
    let tid = scheduled_thread(call)?;
    let old = call.table(|table| table.thread(tid).map(|thread| thread.schedule))?;
    let policy = match flags & ATTRIBUTE_KEEP_POLICY {
        0 => policy(attributes.u32_at(4)?)?,
        _ => old.policy,
    };
    let priority = match flags & ATTRIBUTE_KEEP {
        0 => u8::try_from(attributes.u32_at(20)?).map_err(|_| Error::EINVAL)?,
        _ => old.priority,
    };
    let new = Schedule { policy, priority, is_reset: flags & ATTRIBUTE_RESET != 0 };
    let sets_nice = !new.is_real_time() && flags & ATTRIBUTE_KEEP == 0;
    set_schedule(call, tid, new, sets_nice.then_some(nice))?;
    Ok(0)
}

/// The threads that the arguments 0 and 1 of ioprio_get and ioprio_set name. `EINVAL`, `ESRCH`.
fn io_targets<M: Machine>(call: &Call<'_, M>) -> Result<Vec<Pid>> {
    let number = call.int(1);
    let threads = match call.uint(0) {
        1 => return Ok(alloc::vec![thread(call, 1)?]),
        2 => {
            let group = if number == 0 { None } else { Some(call.id(number)?) };
            call.table(|table| {
                let group = match group {
                    Some(group) => group,
                    None => table.process(call.pid())?.group(),
                };
                let members = table.group_members(group);
                Ok::<_, Error>(
                    members
                        .iter()
                        .flat_map(|pid| table.process(*pid).into_iter().flat_map(|process| process.threads()))
                        .collect(),
                )
            })?
        }
        3 => {
            let user = match number {
                0 => call.thread.credentials().user.real,
                number => call.user(number as u32)?,
            };
            call.table(|table| {
                let processes = table.processes().filter(|process| process.credentials().user.real == user);
                processes.flat_map(|process| process.threads()).collect::<Vec<_>>()
            })
        }
        _ => return Err(Error::EINVAL),
    };
    if threads.is_empty() { Err(Error::ESRCH) } else { Ok(threads) }
}

/// The bits of a priority of input and output in which its class is.
const CLASS_SHIFT: u32 = 13;

/// ioprio_get(2): the most urgent of the priorities that the threads have; a thread for which none
/// was set has that which belongs to its nice value.
pub(crate) fn ioprio_get<M: Machine>(call: &Call<'_, M>) -> Done {
    const BEST_EFFORT: u16 = 2;
    let threads = io_targets(call)?;
    let is_one = call.uint(0) == 1;
    let priority = |tid: &Pid| {
        call.table(|table| {
            let (set, nice) = (table.thread(*tid).ok()?.io_priority, table.process_of(*tid).ok()?.nice);
            let usual = BEST_EFFORT << CLASS_SHIFT | (u16::from((nice + 20) as u8) / 5);
            Some(if set != 0 {
                set
            } else if is_one {
                0
            } else {
                usual
            })
        })
    };
    threads.iter().filter_map(priority).min().map(u64::from).ok_or(Error::ESRCH.into())
}

/// ioprio_set(2): no queue of a disk looks at it, as with Linux' scheduler `none`.
pub(crate) fn ioprio_set<M: Machine>(call: &Call<'_, M>) -> Done {
    let (class, data) = (call.uint(2) >> CLASS_SHIFT, call.uint(2) & ((1 << CLASS_SHIFT) - 1));
    match class {
        1 if !call.has(Privilege::Administrator) && !call.has(Privilege::Schedule) => {
            return Err(Error::EPERM.into());
        }
        1 | 2 if data < 8 => {}
        3 => {}
        0 if data == 0 => {}
        _ => return Err(Error::EINVAL.into()),
    }
    for tid in io_targets(call)? {
        let pid = call.table(|table| table.process_of(tid).map(|process| process.pid()))?;
        check_schedule(call, pid)?;
        call.table(|table| table.thread_mut(tid).map(|thread| thread.io_priority = call.uint(2) as u16))?;
    }
    Ok(0)
}
