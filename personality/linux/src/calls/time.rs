//! Calls on clocks, sleeping and timers.

use crate::call::{Call, Done};
use crate::kept::Continuation;
use crate::layout::time::{
    itimerspec, itimerval, timespec, timeval, to_itimerspec, to_itimerval, to_timespec, to_timeval, to_timex,
};
use crate::layout::{Fields, signal};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use mach::Machine;
use unix::clock::{Clock, When};
use unix::process::Pid;
use unix::signal::{RestartKind, Signal};
use unix::timer::{Notification, TimerId};
use unix::{Environment, Error, Privilege, Result, Timestamp};

/// Waits for `work` until `deadline` on the monotonic clock; `None` if the deadline passes first.
pub(crate) async fn until<T>(
    environment: &dyn Environment,
    deadline: Option<Duration>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let Some(deadline) = deadline else { return Some(work.await) };
    let (mut work, mut sleep) = (pin!(work), pin!(environment.sleep_until(deadline)));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => sleep.as_mut().poll(cx).map(|()| None),
    })
    .await
}

fn clock<M: Machine>(call: &Call<'_, M>, id: i32) -> Result<Clock> {
    const PER_THREAD: i32 = 4;
    Ok(match id {
        // REALTIME, REALTIME_COARSE, REALTIME_ALARM and TAI.
        0 | 5 | 8 | 11 => Clock::Realtime,
        // MONOTONIC, MONOTONIC_RAW, MONOTONIC_COARSE, BOOTTIME and BOOTTIME_ALARM.
        1 | 4 | 6 | 7 | 9 => Clock::Monotonic,
        2 => Clock::ProcessTime(call.pid()),
        3 => Clock::ThreadTime(call.tid()),
        // The low two bits say which processor time; 3 would be a clock of a device, by its
        // descriptor.
        ..0 if id & 3 == 3 => return Err(Error::EINVAL),
        ..0 => {
            let number = (!(id >> 3)) as u32;
            let own = if id & PER_THREAD != 0 { call.tid() } else { call.pid() };
            let pid = if number == 0 { own } else { call.id(number as i32).map_err(|_| Error::EINVAL)? };
            if id & PER_THREAD != 0 { Clock::ThreadTime(pid) } else { Clock::ProcessTime(pid) }
        }
        _ => return Err(Error::EINVAL),
    })
}

fn now<M: Machine>(call: &Call<'_, M>, clock: Clock) -> Result<Duration> {
    let system = call.system();
    clock.now(&**system.environment(), system.processes())
}

pub(crate) async fn clock_gettime<M: Machine>(call: &Call<'_, M>) -> Done {
    let time = now(call, clock(call, call.int(0))?)?;
    call.write(call.arg(1), &to_timespec(time)).await?;
    Ok(0)
}

pub(crate) async fn clock_getres<M: Machine>(call: &Call<'_, M>) -> Done {
    let resolution = clock(call, call.int(0))?.resolution();
    call.write_optional(call.arg(1), &to_timespec(resolution)).await?;
    Ok(0)
}

/// clock_settime(2): the clock of the day can be set, and no other.
pub(crate) async fn clock_settime<M: Machine>(call: &Call<'_, M>) -> Done {
    if call.int(0) != 0 {
        return Err(Error::EINVAL.into());
    }
    let time = timespec(&call.read::<16>(call.arg(1)).await?)?;
    set(call, time)
}

/// settimeofday(2). A time zone is ignored: the clock is that of UTC, and programs have files for
/// the zones.
pub(crate) async fn settimeofday<M: Machine>(call: &Call<'_, M>) -> Done {
    let time = match call.arg(0) {
        0 => None,
        address => Some(timeval(&call.read::<16>(address).await?)?),
    };
    if call.arg(1) != 0 {
        call.read::<8>(call.arg(1)).await?;
    }
    match time {
        Some(time) => set(call, time),
        None if call.has(Privilege::Clock) => Ok(0),
        None => Err(Error::EPERM.into()),
    }
}

/// Sets the clock of the day to this time since 1970.
fn set<M: Machine>(call: &Call<'_, M>, time: Duration) -> Done {
    /// The last second to which the clock can be set: 30 years before the last that it can show.
    const LAST: u64 = 8_277_292_035;
    if time.as_secs() > LAST {
        return Err(Error::EINVAL.into());
    }
    if !call.has(Privilege::Clock) {
        return Err(Error::EPERM.into());
    }
    let seconds = i64::try_from(time.as_secs()).map_err(|_| Error::EINVAL)?;
    let time = Timestamp { seconds, nanoseconds: time.subsec_nanos() };
    call.system().environment().set_realtime(time)?;
    call.linux.clock_changes.announce();
    Ok(0)
}

/// adjtimex(2), and clock_adjtime(2) with the structure at another argument. The clock is not
/// synchronised by the kernel, as its state says: it can be read and set, by an offset, too, but
/// runs at its own rate.
pub(crate) async fn adjtimex<M: Machine>(call: &Call<'_, M>, at: usize) -> Done {
    const OFFSET: u32 = 1;
    const FREQUENCY: u32 = 2;
    const SETOFFSET: u32 = 0x100;
    const NANO: u32 = 0x2000;
    const TICK: u32 = 0x4000;
    const SINGLE_SHOT: u32 = 0x8000;
    const READ_SINGLE_SHOT: u32 = 0xa001;
    /// Bits of the modes that only say what user programs keep there: errors, status, constants.
    const KEPT: u32 = 0x4 | 0x8 | 0x10 | 0x20 | 0x80 | 0x1000 | NANO;
    /// The microseconds between two ticks of a hundred a second.
    const TICK_MICROSECONDS: i64 = 10_000;
    /// What the result says of the clock: it is not synchronised.
    const TIME_ERROR: u64 = 5;
    if at == 1 && call.int(0) != 0 {
        clock(call, call.int(0))?;
        return Err(Error::EOPNOTSUPP.into());
    }
    let asked = call.read::<208>(call.arg(at)).await?;
    let modes = asked.u32_at(0)?;
    let only_reads = modes == 0 || modes == READ_SINGLE_SHOT;
    if !only_reads && !call.has(Privilege::Clock) {
        return Err(Error::EPERM.into());
    }
    if modes & SINGLE_SHOT != 0 && modes & OFFSET == 0 {
        return Err(Error::EINVAL.into());
    }
    let changes_rate = !only_reads
        && ((modes & OFFSET != 0 && asked.i64_at(8)? != 0)
            || (modes & FREQUENCY != 0 && asked.i64_at(16)? != 0)
            || (modes & TICK != 0 && asked.i64_at(88)? != TICK_MICROSECONDS));
    let known = OFFSET | FREQUENCY | SETOFFSET | TICK | SINGLE_SHOT | KEPT;
    if modes & !known != 0 || changes_rate {
        return Err(Error::EOPNOTSUPP.into());
    }
    if modes & SETOFFSET != 0 && !only_reads {
        let (seconds, part) = (asked.i64_at(72)?, asked.i64_at(80)?);
        let unit = if modes & NANO != 0 { 1 } else { 1000 };
        let part = u64::try_from(part).ok().filter(|part| *part < 1_000_000_000 / unit);
        let part = Duration::from_nanos(part.ok_or(Error::EINVAL)? * unit);
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let now = now(call, Clock::Realtime)?.saturating_add(part);
        let time = if seconds < 0 { now.checked_sub(whole) } else { now.checked_add(whole) };
        set(call, time.ok_or(Error::EINVAL)?)?;
    }
    let time = now(call, Clock::Realtime)?;
    call.write(call.arg(at), &to_timex(modes, time, TICK_MICROSECONDS)).await?;
    Ok(TIME_ERROR)
}

pub(crate) async fn gettimeofday<M: Machine>(call: &Call<'_, M>) -> Done {
    let time = now(call, Clock::Realtime)?;
    call.write_optional(call.arg(0), &to_timeval(time)).await?;
    call.write_optional(call.arg(1), &[0; 8]).await?;
    Ok(0)
}

pub(crate) async fn time<M: Machine>(call: &Call<'_, M>) -> Done {
    let seconds = now(call, Clock::Realtime)?.as_secs();
    call.write_optional(call.arg(0), &seconds.to_le_bytes()).await?;
    Ok(seconds)
}

/// Sleeps until `deadline`. If a signal interrupts the sleep, it can be continued, and the
/// remaining time is written to `remaining`.
pub(crate) async fn sleep<M: Machine>(
    call: &Call<'_, M>,
    clock: Clock,
    deadline: Duration,
    remaining: u64,
) -> Done {
    let environment = call.system().environment().clone();
    // A sleep ends at a microsecond of the machine's clock, so one that is over waits for none.
    if deadline <= environment.monotonic() {
        return Ok(0);
    }
    let end = call.with_slack(deadline);
    match call.wait(RestartKind::RestartBlock, environment.sleep_until(end)).await {
        Ok(()) => Ok(0),
        Err(stop) => {
            let left = deadline.saturating_sub(environment.monotonic());
            call.write_optional(remaining, &to_timespec(left)).await?;
            call.kept.set_continuation(Continuation::Sleep { clock, deadline, remaining });
            Err(stop)
        }
    }
}

pub(crate) async fn nanosleep<M: Machine>(call: &Call<'_, M>) -> Done {
    let time = timespec(&call.read::<16>(call.arg(0)).await?)?;
    let deadline = call.system().environment().monotonic().saturating_add(time);
    sleep(call, Clock::Monotonic, deadline, call.arg(1)).await
}

pub(crate) async fn clock_nanosleep<M: Machine>(call: &Call<'_, M>) -> Done {
    const ABSOLUTE: u32 = 1;
    let clock = clock(call, call.int(0))?;
    let time = timespec(&call.read::<16>(call.arg(2)).await?)?;
    match clock {
        // The clock is the calling thread's own, named by the constant CLOCK_THREAD_CPUTIME_ID.
        Clock::ThreadTime(_) if call.int(0) >= 0 => return Err(Error::EOPNOTSUPP.into()),
        Clock::ThreadTime(_) => return Err(Error::EINVAL.into()),
        Clock::ProcessTime(_) => return processor_sleep(call, clock, time).await,
        Clock::Realtime | Clock::Monotonic => {}
    }
    let system = call.system().clone();
    if call.uint(1) & ABSOLUTE == 0 {
        let deadline = system.environment().monotonic().saturating_add(time);
        return sleep(call, clock, deadline, call.arg(3)).await;
    }
    let deadline = clock.deadline(&**system.environment(), system.processes(), When::At(time))?;
    let end = call.with_slack(deadline);
    call.wait(RestartKind::RestartNoHand, system.environment().sleep_until(end)).await?;
    Ok(0)
}

/// Sleeps until the process has used so much processor time. It looks again at the earliest time at
/// which that is possible.
async fn processor_sleep<M: Machine>(call: &Call<'_, M>, clock: Clock, time: Duration) -> Done {
    let system = call.system().clone();
    let target = if call.uint(1) & 1 != 0 { time } else { now(call, clock)?.saturating_add(time) };
    let work = async {
        loop {
            let left = target.saturating_sub(now(call, clock)?);
            if left.is_zero() {
                return Ok::<(), Error>(());
            }
            let next = system.environment().monotonic().saturating_add(left.max(Duration::from_millis(1)));
            system.environment().sleep_until(next).await;
        }
    };
    call.wait(RestartKind::RestartNoHand, work).await??;
    Ok(0)
}

fn interval_timer(which: u32) -> Result<TimerId> {
    match which {
        0 => Ok(TimerId::Real),
        1 => Ok(TimerId::Virtual),
        2 => Ok(TimerId::Profiling),
        _ => Err(Error::EINVAL),
    }
}

pub(crate) async fn getitimer<M: Machine>(call: &Call<'_, M>) -> Done {
    let (system, id) = (call.system(), interval_timer(call.uint(0))?);
    let setting = system.timers().get(&**system.environment(), system.processes(), (call.pid(), id))?;
    call.write(call.arg(1), &to_itimerval(setting)).await?;
    Ok(0)
}

pub(crate) async fn setitimer<M: Machine>(call: &Call<'_, M>) -> Done {
    let (system, id) = (call.system(), interval_timer(call.uint(0))?);
    let new = itimerval(&call.read(call.arg(1)).await?)?;
    let timer = (call.pid(), id);
    let when = When::After(new.value);
    let old = system.timers().set(&**system.environment(), system.processes(), timer, when, new.interval)?;
    call.write_optional(call.arg(2), &to_itimerval(old)).await?;
    Ok(0)
}

pub(crate) fn alarm<M: Machine>(call: &Call<'_, M>) -> Done {
    let system = call.system();
    let when = When::After(Duration::from_secs(call.uint(0).into()));
    let timer = (call.pid(), TimerId::Real);
    let old =
        system.timers().set(&**system.environment(), system.processes(), timer, when, Duration::ZERO)?;
    // A part of a second counts as one, so that a pending alarm is not reported as zero.
    Ok(old.value.as_secs() + u64::from(old.value.subsec_nanos() > 0))
}

pub(crate) async fn timer_create<M: Machine>(call: &Call<'_, M>) -> Done {
    const SIGNAL: u32 = 0;
    const NONE: u32 = 1;
    const THREAD: u32 = 4;
    let clock = clock(call, call.int(0))?;
    let event = match call.arg(1) {
        0 => None,
        address => Some(call.read::<64>(address).await?),
    };
    let notify = event.as_ref().map_or(Ok(SIGNAL), |event| event.u32_at(12))?;
    let chosen = match (&event, notify) {
        (None, _) => None,
        (Some(_), NONE) => None,
        (Some(event), SIGNAL | THREAD) => Some((signal::signal(event.u32_at(8)?.into())?, event.u64_at(0)?)),
        _ => return Err(Error::EINVAL.into()),
    };
    let thread = match (&event, notify) {
        (Some(event), THREAD) => {
            let tid = call.id(event.i32_at(16)?).map_err(|_| Error::EINVAL)?;
            let own = call.table(|table| table.thread(tid).is_ok_and(|thread| thread.pid() == call.pid()));
            if !own {
                return Err(Error::EINVAL.into());
            }
            Some(tid)
        }
        _ => None,
    };
    let has_event = event.is_some();
    let id = call.system().timers().create(&call.account(), call.pid(), clock, |id| {
        match (chosen, has_event) {
            (Some((signal, value)), _) => Notification::Signal { signal, value, thread },
            (None, true) => Notification::None,
            (None, false) => Notification::Signal { signal: Signal::ALRM, value: id.into(), thread: None },
        }
    })?;
    if let Err(error) = call.write(call.arg(2), &id.to_le_bytes()).await {
        let _ = call.system().timers().delete(call.system().processes(), call.pid(), id);
        return Err(error.into());
    }
    Ok(0)
}

fn created<M: Machine>(call: &Call<'_, M>) -> (Pid, TimerId) {
    (call.pid(), TimerId::Created(call.uint(0)))
}

pub(crate) async fn timer_settime<M: Machine>(call: &Call<'_, M>) -> Done {
    const ABSOLUTE: u32 = 1;
    let system = call.system();
    let new = itimerspec(&call.read(call.arg(2)).await?)?;
    let absolute = call.uint(1) & ABSOLUTE != 0;
    let when = if absolute { When::At(new.value) } else { When::After(new.value) };
    let old = system.timers().set(
        &**system.environment(),
        system.processes(),
        created(call),
        when,
        new.interval,
    )?;
    call.write_optional(call.arg(3), &to_itimerspec(old)).await?;
    Ok(0)
}

pub(crate) async fn timer_gettime<M: Machine>(call: &Call<'_, M>) -> Done {
    let system = call.system();
    let setting = system.timers().get(&**system.environment(), system.processes(), created(call))?;
    call.write(call.arg(1), &to_itimerspec(setting)).await?;
    Ok(0)
}

pub(crate) fn timer_getoverrun<M: Machine>(call: &Call<'_, M>) -> Done {
    let (pid, id) = created(call);
    if !call.system().timers().exists(pid, id) {
        return Err(Error::EINVAL.into());
    }
    Ok(call.table(|table| table.timer_overrun(pid, call.uint(0))).into())
}

pub(crate) fn timer_delete<M: Machine>(call: &Call<'_, M>) -> Done {
    let system = call.system();
    system.timers().delete(system.processes(), call.pid(), call.uint(0))?;
    Ok(0)
}
