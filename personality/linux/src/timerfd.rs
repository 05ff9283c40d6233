//! Timers that are files (timerfd_create(2)).

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use unix::file::{FileObject, Io, OpenFile};
use unix::poll::{PollQueue, Readiness};
use unix::sync::SpinLock;
use unix::vfs::OpenFlags;
use unix::{AttemptError, Environment, Error, Result, UserBuffer, copy_out_all};

/// The times at which the clock of the day was set, and the timers of that clock.
#[derive(Default)]
pub(crate) struct ClockChanges {
    count: AtomicU64,
    timers: SpinLock<Vec<Weak<TimerFile>>>,
}

impl ClockChanges {
    /// Tells the timers that the clock has been set: their times come earlier or later, and those
    /// that are to be cancelled are.
    pub(crate) fn announce(&self) {
        // Relaxed ordering: a timer looks again after it is woken, which orders this before that.
        self.count.fetch_add(1, Ordering::Relaxed);
        let timers: Vec<_> = self.timers.lock().iter().filter_map(Weak::upgrade).collect();
        timers.iter().for_each(|timer| timer.queue.wake(Readiness::READ));
    }

    fn add(&self, timer: &Arc<TimerFile>) {
        let mut timers = self.timers.lock();
        if timers.len() == timers.capacity() {
            timers.retain(|timer| timer.strong_count() > 0);
        }
        timers.push(Arc::downgrade(timer));
    }
}

/// A timer that can be read and waited for. Expirations are computed from the clock, so no code
/// runs when the timer expires.
pub(crate) struct TimerFile {
    environment: Arc<dyn Environment>,
    clock: Clock,
    changes: Arc<ClockChanges>,
    armed: SpinLock<Armed>,
    queue: PollQueue,
}

/// The clocks of timers. Those that wake a sleeping machine are the same here, but programs see
/// what they asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    Realtime = 0,
    Monotonic = 1,
    Boottime = 7,
    RealtimeAlarm = 8,
    BoottimeAlarm = 9,
}

impl Clock {
    /// The clock with a number of clock_gettime(2). `EINVAL` if no timer can have it.
    pub(crate) fn new(number: i32) -> Result<Clock> {
        let known =
            [Clock::Realtime, Clock::Monotonic, Clock::Boottime, Clock::RealtimeAlarm, Clock::BoottimeAlarm];
        known.into_iter().find(|clock| *clock as i32 == number).ok_or(Error::EINVAL)
    }

    /// Whether times are those of the wall clock.
    fn is_real(self) -> bool {
        matches!(self, Clock::Realtime | Clock::RealtimeAlarm)
    }
}

/// What a program can see of a timer.
pub(crate) struct TimerStatus {
    pub(crate) clock: Clock,
    /// Expirations that were not read.
    pub(crate) expirations: u64,
    /// How the timer was set: to a time of its clock, and so that it is cancelled when that is set.
    pub(crate) absolute: bool,
    pub(crate) cancels: bool,
    /// The time until the next expiration; zero if the timer is disarmed.
    pub(crate) value: Duration,
    pub(crate) interval: Duration,
}

#[derive(Clone, Copy, Default)]
struct Armed {
    /// The next expiration that was not read, on the timer's clock; `None` if the timer is not
    /// armed.
    next: Option<Duration>,
    interval: Duration,
    absolute: bool,
    /// Whether the timer is cancelled when the clock is set (TFD_TIMER_CANCEL_ON_SET).
    cancels: bool,
    /// The changes of the clock that the program knows.
    known: u64,
}

impl TimerFile {
    /// Makes a timer, as an open file.
    pub(crate) fn create(
        environment: Arc<dyn Environment>,
        changes: &Arc<ClockChanges>,
        clock: Clock,
        flags: OpenFlags,
    ) -> Arc<OpenFile> {
        let known = changes.count.load(Ordering::Relaxed);
        let armed = SpinLock::new(Armed { known, ..Armed::default() });
        let queue = PollQueue::new();
        let timer = Arc::new(TimerFile { environment, clock, changes: changes.clone(), armed, queue });
        if clock.is_real() {
            changes.add(&timer);
        }
        OpenFile::of_object(timer, flags | OpenFlags::READ_WRITE)
    }

    /// Whether the clock was set since the program learned of that the last time, and this timer is
    /// one that is then cancelled. The program learns of it now.
    fn is_cancelled(&self, armed: &mut Armed) -> bool {
        let count = self.changes.count.load(Ordering::Relaxed);
        armed.cancels && core::mem::replace(&mut armed.known, count) != count
    }

    fn now(&self) -> Duration {
        if self.clock.is_real() {
            let now = self.environment.realtime();
            Duration::new(u64::try_from(now.seconds).unwrap_or(0), now.nanoseconds)
        } else {
            self.environment.monotonic()
        }
    }

    /// Sets the timer. `first` is the time until it expires, or with `absolute` the time at which
    /// it expires; zero disarms the timer. `interval` is the time between later expirations, or
    /// zero for none. With `cancels`, an absolute timer of the wall clock is cancelled when that is
    /// set. Returns the old setting, as [`TimerFile::setting`] does, and whether the clock was set
    /// since the program learned of that.
    pub(crate) fn set(
        &self,
        first: Duration,
        interval: Duration,
        absolute: bool,
        cancels: bool,
    ) -> ((Duration, Duration), bool) {
        let now = self.now();
        let next = match first {
            Duration::ZERO => None,
            first if absolute => Some(first),
            first => Some(now.saturating_add(first)),
        };
        let mut armed = self.armed.lock();
        let old = armed.setting(now);
        let is_cancelable = cancels && absolute && self.clock.is_real();
        *armed = Armed { next, interval, absolute, cancels: is_cancelable, known: armed.known };
        let is_cancelled = self.is_cancelled(&mut armed);
        drop(armed);
        // A thread that sleeps until the old expiration has to look again.
        self.queue.wake(Readiness::READ);
        (old, is_cancelled)
    }

    /// The time until the next expiration (zero if the timer is disarmed) and the interval.
    pub(crate) fn setting(&self) -> (Duration, Duration) {
        let now = self.now();
        self.armed.lock().setting(now)
    }

    /// What a program can see of the timer.
    pub(crate) fn status(&self) -> TimerStatus {
        let (now, armed) = (self.now(), *self.armed.lock());
        let (value, interval) = armed.setting(now);
        TimerStatus {
            clock: self.clock,
            expirations: armed.expired(now).0,
            absolute: armed.absolute,
            cancels: armed.cancels,
            value,
            interval,
        }
    }
}

impl Armed {
    /// How many expirations up to `now` were not read, and the next one after them.
    fn expired(&self, now: Duration) -> (u64, Option<Duration>) {
        let Some(next) = self.next.filter(|next| *next <= now) else { return (0, self.next) };
        if self.interval.is_zero() {
            return (1, None);
        }
        let count = (now - next).as_nanos() / self.interval.as_nanos() + 1;
        let passed = self.interval.as_nanos().saturating_mul(count);
        let passed = Duration::from_nanos(u64::try_from(passed).unwrap_or(u64::MAX));
        (u64::try_from(count).unwrap_or(u64::MAX), Some(next.saturating_add(passed)))
    }

    fn setting(&self, now: Duration) -> (Duration, Duration) {
        let (_, next) = self.expired(now);
        (next.map_or(Duration::ZERO, |next| next - now), self.interval)
    }
}

impl FileObject for TimerFile {
    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        if to.remaining() < 8 {
            return Err(Error::EINVAL.into());
        }
        let now = self.now();
        let mut armed = self.armed.lock();
        let (count, next) = armed.expired(now);
        if self.is_cancelled(&mut armed) {
            armed.next = next;
            return Err(Error::ECANCELED.into());
        }
        if count == 0 {
            return Err(AttemptError::WouldBlock);
        }
        copy_out_all(to, &count.to_ne_bytes())?;
        armed.next = next;
        Ok(8)
    }

    fn readiness(&self) -> Readiness {
        let now = self.now();
        let armed = self.armed.lock();
        let is_cancelled = armed.cancels && armed.known != self.changes.count.load(Ordering::Relaxed);
        if armed.expired(now).0 > 0 || is_cancelled { Readiness::READ } else { Readiness::empty() }
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.queue)
    }

    fn deadline(&self, _io: &Io<'_>, _write: bool) -> Option<Duration> {
        self.next_change()
    }

    fn next_change(&self) -> Option<Duration> {
        let now = self.now();
        let next = self.armed.lock().next?;
        // The timer is ready already. Only a read changes that, so there is no time at which it
        // changes without a call.
        let until = next.checked_sub(now).filter(|until| !until.is_zero())?;
        Some(self.environment.monotonic().saturating_add(until))
    }

    fn changes_by_itself(&self) -> bool {
        true
    }

    fn label(&self) -> &'static str {
        "anon_inode:[timerfd]"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoll::{Epoll, EpollSettings};
    use unix::poll::{Watch, poll};
    use unix::testing::{Task, World, account};

    const SECOND: Duration = Duration::from_secs(1);

    fn epoll(file: &OpenFile) -> Arc<Epoll> {
        file.object_as().unwrap()
    }

    fn settings(interest: Readiness, data: u64) -> EpollSettings {
        EpollSettings { interest, data, ..Default::default() }
    }

    #[test]
    fn a_read_returns_the_number_of_expirations() {
        let w: &World = Box::leak(Box::new(World::new()));
        let changes = Arc::new(ClockChanges::default());
        let file = TimerFile::create(w.environment.clone(), &changes, Clock::Monotonic, OpenFlags::NONBLOCK);
        let timer: Arc<TimerFile> = file.object_as().unwrap();
        assert_eq!(w.read(&file, 8), Err(Error::EAGAIN));
        timer.set(SECOND, SECOND / 2, false, false);
        assert_eq!(timer.setting(), (SECOND, SECOND / 2));
        w.environment.advance(SECOND * 2);
        assert_eq!(file.readiness(), Readiness::READ);
        assert_eq!(timer.setting().0, SECOND / 2);
        assert_eq!(w.read(&file, 8), Ok(3u64.to_ne_bytes().to_vec()));
        assert_eq!(w.read(&file, 8), Err(Error::EAGAIN));
        let first = w.environment.monotonic() + SECOND;
        assert_eq!(timer.set(first, Duration::ZERO, true, false).0.1, SECOND / 2);
        // Poll, a blocking read and epoll all notice the expiration although no other thread wakes
        // them.
        let polled = file.clone();
        let mut polling = Task::new(async move {
            poll(&*w.environment, &mut [Watch::new(polled, Readiness::READ)], None).await
        });
        polling.waits();
        let instance = Epoll::create(account());
        epoll(&instance).add(3, &file, settings(Readiness::READ, 9)).unwrap();
        let outer = Epoll::create(account());
        epoll(&outer).add(4, &instance, settings(Readiness::READ, 10)).unwrap();
        let (inner_epoll, outer_epoll) = (epoll(&instance), epoll(&outer));
        let mut waiting = Task::new(async move { inner_epoll.wait(&*w.environment, 10, None).await });
        let mut nested = Task::new(async move { outer_epoll.wait(&*w.environment, 10, None).await });
        file.set_flag(OpenFlags::NONBLOCK, false);
        let read = file.clone();
        let mut reading = Task::new(async move {
            let mut to = unix::Bytes::empty(8);
            read.read(&w.caller(), &mut to).await
        });
        reading.waits();
        waiting.waits();
        nested.waits();
        w.environment.advance(SECOND);
        assert_eq!(polling.finish(), 1);
        assert_eq!(waiting.finish()[0].data, 9);
        assert_eq!(nested.finish()[0].data, 10);
        assert_eq!(reading.finish(), Ok(8));
        timer.set(Duration::ZERO, Duration::ZERO, false, false);
        assert_eq!(timer.setting(), (Duration::ZERO, Duration::ZERO));
    }
    #[test]
    fn a_timer_may_be_cancelled_when_the_clock_is_set() {
        let w = World::new();
        let changes = Arc::new(ClockChanges::default());
        let make = |clock| TimerFile::create(w.environment.clone(), &changes, clock, OpenFlags::NONBLOCK);
        let far = Duration::from_secs(1 << 32);
        let (cancelled, plain, monotonic) =
            (make(Clock::Realtime), make(Clock::RealtimeAlarm), make(Clock::Monotonic));
        for (file, cancels) in [(&cancelled, true), (&plain, false), (&monotonic, true)] {
            let timer: Arc<TimerFile> = file.object_as().unwrap();
            assert_eq!(timer.set(far, Duration::ZERO, true, cancels), (Default::default(), false));
        }
        let queue_was_woken = {
            let polled = cancelled.clone();
            let environment = w.environment.clone();
            let mut polling = Task::new(async move {
                poll(&*environment, &mut [Watch::new(polled, Readiness::READ)], None).await
            });
            polling.waits();
            changes.announce();
            polling.finish()
        };
        assert_eq!(queue_was_woken, 1);
        assert_eq!(w.read(&cancelled, 8), Err(Error::ECANCELED));
        assert_eq!(w.read(&cancelled, 8), Err(Error::EAGAIN), "once for each time");
        for file in [&plain, &monotonic] {
            assert_eq!(file.readiness(), Readiness::empty());
            assert_eq!(w.read(file, 8), Err(Error::EAGAIN));
        }
        let timer: Arc<TimerFile> = cancelled.object_as().unwrap();
        assert_ne!(timer.setting().0, Duration::ZERO, "it goes on");
        // A program that sets the timer after the clock was set learns of it by that call.
        changes.announce();
        assert!(timer.set(far, Duration::ZERO, true, true).1);
        assert!(!timer.set(far, Duration::ZERO, true, true).1);
        assert_eq!(cancelled.readiness(), Readiness::empty());
    }
}
