//! Timers that send signals (timer_create(2), setitimer(2)).
//!
//! One async task of the server drives all of them ([`Timers::drive`]): it sleeps until the
//! earliest deadline in the `queue`, sends the signals of the timers that have expired, and is
//! woken when an earlier deadline is set.

mod queue;

pub use queue::TimerQueue;

use crate::account::{Account, Charge};
use crate::clock::{Clock, When};
use crate::process::{Pid, Processes};
use crate::signal::{Signal, SignalInformation};
use crate::sync::{SpinLock, give_turn};
use crate::{Environment, Error, Result};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Poll, Waker};
use core::time::Duration;

/// Identifies a timer of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerId {
    /// The interval timer of real time; SIGALRM (ITIMER_REAL, alarm).
    Real,
    /// The interval timer of user time; SIGVTALRM (ITIMER_VIRTUAL).
    Virtual,
    /// The interval timer of processor time; SIGPROF (ITIMER_PROF).
    Profiling,
    /// A timer made by timer_create(2), with its number.
    Created(u32),
}

/// What a timer does when it expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    /// Nothing happens; a program can read the timer (SIGEV_NONE).
    None,
    /// A signal is sent to the process, or to one thread of it (SIGEV_SIGNAL, SIGEV_THREAD_ID).
    Signal {
        /// The signal that is sent.
        signal: Signal,
        /// The value that is sent with the signal.
        value: u64,
        /// The thread that gets the signal; `None` if it is for the whole process.
        thread: Option<Pid>,
    },
}

/// When a timer expires: the first time, and then repeatedly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// Time until the timer expires; zero if it is not set.
    pub value: Duration,
    /// Time between later expirations; zero if the timer expires once.
    pub interval: Duration,
}

struct Timer {
    clock: Clock,
    notification: Notification,
    interval: Duration,
    /// The time of its clock at which the timer expires; `None` if it is not set.
    expiry: Option<Duration>,
    /// The entry of the timer's deadline in the queue.
    queued: Option<(Duration, u64)>,
    /// The charge for the timer, to the account of the user that created it; `None` for the timers
    /// that every process has.
    _charge: Option<Charge>,
}

/// Bytes that are charged for a timer that a process has created.
const TIMER_BYTES: u64 = 512;

#[derive(Default)]
struct State {
    timers: BTreeMap<(Pid, TimerId), Timer>,
    queue: TimerQueue<(Pid, TimerId)>,
    driver: Option<Driver>,
}

/// The async task that drives the timers, while it sleeps.
struct Driver {
    waker: Waker,
    /// The deadline until which it sleeps; without end if there is none.
    until: Option<Duration>,
}

/// Whether a driver that sleeps until `until` has to be woken for the deadline `first`. One that
/// wakes before there is something to do sleeps again.
fn is_earlier(first: Option<Duration>, until: Option<Duration>) -> bool {
    first.is_some_and(|first| until.is_none_or(|until| first < until))
}

/// The timers of all processes.
#[derive(Default)]
pub struct Timers {
    state: SpinLock<State>,
}

impl Timers {
    /// How many timers a process may create.
    pub const LIMIT: u32 = 1024;
    /// A timer of processor time is looked at again after this time at the earliest.
    const PROCESSOR_TIME_GRAIN: Duration = Duration::from_millis(1);
    /// A timer that has expired is looked at again after this time at the earliest. If it expires
    /// more often than that, the expirations are counted.
    const GRAIN: Duration = Duration::from_micros(100);
    /// After this many timers, the driver lets other async tasks run.
    const TURN: usize = 64;

    /// Makes an object without timers.
    pub fn new() -> Timers {
        Timers::default()
    }

    /// Creates a timer (timer_create(2)) for process `pid` of a user; returns its number, the
    /// lowest that is free. `EAGAIN`.
    pub fn create(
        &self,
        account: &Arc<Account>,
        pid: Pid,
        clock: Clock,
        notification: impl FnOnce(u32) -> Notification,
    ) -> Result<u32> {
        let mut state = self.state.lock();
        let used = state.timers.range((pid, TimerId::Created(0))..=(pid, TimerId::Created(u32::MAX)));
        let mut number = 0;
        for ((_, id), _) in used {
            if *id != TimerId::Created(number) {
                break;
            }
            number += 1;
        }
        if number >= Timers::LIMIT {
            return Err(Error::EAGAIN);
        }
        let timer = Timer {
            clock,
            notification: notification(number),
            interval: Duration::ZERO,
            expiry: None,
            queued: None,
            _charge: Some(account.charge_memory(TIMER_BYTES).ok_or(Error::EAGAIN)?),
        };
        state.timers.insert((pid, TimerId::Created(number)), timer);
        Ok(number)
    }

    /// Sets a timer (timer_settime, setitimer) and returns its previous setting; an interval timer
    /// is made if it does not exist. A zero `when` disarms the timer. `EINVAL` if there is no such
    /// timer.
    pub fn set(
        &self,
        environment: &dyn Environment,
        processes: &Processes,
        (pid, id): (Pid, TimerId),
        when: When,
        interval: Duration,
    ) -> Result<Setting> {
        let clock = self.clock_of(pid, id)?;
        let now = clock.now(environment, processes)?;
        let monotonic = environment.monotonic();
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let timer = match id {
            TimerId::Created(_) => state.timers.get_mut(&(pid, id)).ok_or(Error::EINVAL)?,
            _ => state.timers.entry((pid, id)).or_insert_with(|| Timer {
                clock,
                notification: Notification::Signal { signal: interval_signal(id), value: 0, thread: None },
                interval: Duration::ZERO,
                expiry: None,
                queued: None,
                _charge: None,
            }),
        };
        let old = timer.setting(now);
        state.queue.remove(timer.queued.take());
        timer.interval = interval;
        timer.expiry = match when {
            When::After(Duration::ZERO) | When::At(Duration::ZERO) => None,
            When::After(time) => Some(now.saturating_add(time)),
            When::At(time) => Some(time),
        };
        if let Some(expiry) = timer.expiry {
            let due = monotonic.saturating_add(expiry.saturating_sub(now));
            timer.queued = Some(state.queue.insert(due, (pid, id)));
        }
        let first = state.queue.first();
        let driver = state.driver.take_if(|driver| is_earlier(first, driver.until));
        drop(guard);
        if let Some(driver) = driver {
            driver.waker.wake();
        }
        Ok(old)
    }

    /// The setting of a timer (timer_gettime, getitimer). `EINVAL` if there is no such timer;
    /// interval timers always exist.
    pub fn get(
        &self,
        environment: &dyn Environment,
        processes: &Processes,
        (pid, id): (Pid, TimerId),
    ) -> Result<Setting> {
        let now = self.clock_of(pid, id)?.now(environment, processes)?;
        let state = self.state.lock();
        Ok(state.timers.get(&(pid, id)).map_or(Setting::default(), |timer| timer.setting(now)))
    }

    /// Whether process `pid` has a timer `id`.
    pub fn exists(&self, pid: Pid, id: TimerId) -> bool {
        self.state.lock().timers.contains_key(&(pid, id))
    }

    /// Deletes a timer (timer_delete(2)). `EINVAL` if there is no such timer.
    pub fn delete(&self, processes: &Processes, pid: Pid, number: u32) -> Result<()> {
        let mut state = self.state.lock();
        let timer = state.timers.remove(&(pid, TimerId::Created(number))).ok_or(Error::EINVAL)?;
        state.queue.remove(timer.queued);
        drop(state);
        processes.with(|table| table.forget_timer(pid, number));
        Ok(())
    }

    /// Deletes the timers of process `pid`: all at its end, only the created ones at exec.
    pub fn delete_all(&self, processes: &Processes, pid: Pid, intervals_too: bool) {
        let mut state = self.state.lock();
        let ids: Vec<TimerId> = state
            .timers
            .range((pid, TimerId::Real)..=(pid, TimerId::Created(u32::MAX)))
            .map(|((_, id), _)| *id)
            .collect();
        for id in &ids {
            if (intervals_too || matches!(id, TimerId::Created(_)))
                && let Some(timer) = state.timers.remove(&(pid, *id))
            {
                state.queue.remove(timer.queued);
            }
        }
        drop(state);
        for id in ids {
            if let TimerId::Created(number) = id {
                processes.with(|table| table.forget_timer(pid, number));
            }
        }
    }

    fn clock_of(&self, pid: Pid, id: TimerId) -> Result<Clock> {
        Ok(match id {
            TimerId::Real => Clock::Monotonic,
            TimerId::Virtual | TimerId::Profiling => Clock::ProcessTime(pid),
            TimerId::Created(_) => self.state.lock().timers.get(&(pid, id)).ok_or(Error::EINVAL)?.clock,
        })
    }

    /// Sends the signals of timers that have expired, of a bounded number of them, and returns when
    /// the next timer expires (which may have passed).
    pub fn expire(&self, environment: &dyn Environment, processes: &Processes) -> Option<Duration> {
        for _ in 0..Timers::TURN {
            let monotonic = environment.monotonic();
            let mut state = self.state.lock();
            let due = state.queue.first()?;
            if due > monotonic {
                return Some(due);
            }
            let key = state.queue.take_first()?;
            let Some(clock) = state.timers.get_mut(&key).map(|timer| {
                timer.queued = None;
                timer.clock
            }) else {
                continue;
            };
            drop(state);
            // A process that has ended has no processor time any more. Its timers will be deleted
            // soon.
            let Ok(now) = clock.now(environment, processes) else { continue };
            let mut guard = self.state.lock();
            let state = &mut *guard;
            let Some(timer) = state.timers.get_mut(&key) else { continue };
            let expirations = timer.expirations(now);
            if let Some(expiry) = timer.expiry.filter(|_| timer.queued.is_none()) {
                let wait = expiry.saturating_sub(now);
                let grain = if clock.is_real() { Timers::GRAIN } else { Timers::PROCESSOR_TIME_GRAIN };
                let wait = if expirations > 0 || !clock.is_real() { wait.max(grain) } else { wait };
                timer.queued = Some(state.queue.insert(monotonic.saturating_add(wait), key));
            }
            let notification = timer.notification;
            drop(guard);
            notify(processes, key, notification, expirations);
        }
        self.state.lock().queue.first()
    }

    /// Drives the timers without end. One async task of the server runs this.
    pub async fn drive(
        &self,
        environment: &dyn Environment,
        processes: &Processes,
    ) -> core::convert::Infallible {
        loop {
            let next = self.expire(environment, processes);
            let mut sleep = pin!(async {
                match next {
                    Some(deadline) if deadline <= environment.monotonic() => give_turn().await,
                    Some(deadline) => environment.sleep_until(deadline).await,
                    None => core::future::pending().await,
                }
            });
            poll_fn(|cx| {
                // Register first: a deadline that is set after the check wakes this task.
                let mut state = self.state.lock();
                if is_earlier(state.queue.first(), next) {
                    return Poll::Ready(());
                }
                state.driver = Some(Driver { waker: cx.waker().clone(), until: next });
                drop(state);
                sleep.as_mut().poll(cx)
            })
            .await;
        }
    }
}

impl Timer {
    fn setting(&self, now: Duration) -> Setting {
        let value = match self.expiry {
            None => Duration::ZERO,
            // A timer that is due at this moment must not return zero, which would mean that it is
            // not set.
            Some(expiry) => expiry.saturating_sub(now).max(Duration::from_nanos(1)),
        };
        Setting { value, interval: self.interval }
    }

    /// How often the timer has expired by `now`; sets it to the next expiration.
    fn expirations(&mut self, now: Duration) -> u64 {
        let Some(expiry) = self.expiry.filter(|expiry| *expiry <= now) else { return 0 };
        if self.interval.is_zero() {
            self.expiry = None;
            return 1;
        }
        let interval = self.interval.as_nanos();
        let count = (now - expiry).as_nanos() / interval + 1;
        let ahead = interval - (now - expiry).as_nanos() % interval;
        self.expiry =
            Some(now.saturating_add(Duration::from_nanos(u64::try_from(ahead).unwrap_or(u64::MAX))));
        u64::try_from(count).unwrap_or(u64::MAX)
    }
}

fn interval_signal(id: TimerId) -> Signal {
    match id {
        TimerId::Virtual => Signal::VTALRM,
        TimerId::Profiling => Signal::PROF,
        TimerId::Real | TimerId::Created(_) => Signal::ALRM,
    }
}

fn notify(processes: &Processes, (pid, id): (Pid, TimerId), notification: Notification, expirations: u64) {
    let Notification::Signal { signal, value, thread } = notification else { return };
    if expirations == 0 {
        return;
    }
    processes.with(|table| match id {
        TimerId::Created(timer) => {
            let expirations = u32::try_from(expirations).unwrap_or(u32::MAX).min(i32::MAX as u32);
            table.expire_timer(pid, thread, expirations, (timer, signal, value));
        }
        _ => table.generate_for_process(pid, SignalInformation::system(signal)),
    });
}

#[cfg(test)]
mod tests;
