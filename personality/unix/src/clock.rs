//! Clocks (clock_gettime(2)) and sleeping (clock_nanosleep(2)).

use crate::process::{Pid, Processes};
use crate::{Environment, Error, Result};
use core::time::Duration;

/// A clock of clock_gettime(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Wall-clock time since 1970 (CLOCK_REALTIME).
    Realtime,
    /// Time since boot, which never steps (CLOCK_MONOTONIC).
    Monotonic,
    /// Processor time that a process has used (CLOCK_PROCESS_CPUTIME_ID).
    ProcessTime(Pid),
    /// Processor time that a thread has used (CLOCK_THREAD_CPUTIME_ID).
    ThreadTime(Pid),
}

/// A time to wait for, relative or absolute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// A time relative to the present: when this duration has passed.
    After(Duration),
    /// An absolute time: when the clock has this value.
    At(Duration),
}

impl Clock {
    /// The present value of the clock. `EINVAL` if its process or thread does not exist.
    pub fn now(self, environment: &dyn Environment, processes: &Processes) -> Result<Duration> {
        match self {
            Clock::Monotonic => Ok(environment.monotonic()),
            Clock::Realtime => {
                let now = environment.realtime();
                Ok(Duration::new(u64::try_from(now.seconds).unwrap_or(0), now.nanoseconds))
            }
            Clock::ProcessTime(pid) => processes.with(|table| {
                let process = table.process(pid).map_err(|_| Error::EINVAL)?;
                let usage = table.usage(process);
                Ok(usage.user_time + usage.system_time)
            }),
            Clock::ThreadTime(tid) => processes.with(|table| {
                let usage = table.thread(tid).map_err(|_| Error::EINVAL)?.usage();
                Ok(usage.user_time + usage.system_time)
            }),
        }
    }

    /// The resolution of the clock.
    pub fn resolution(self) -> Duration {
        Duration::from_nanos(1)
    }

    /// Whether the clock advances with time rather than with a process's work.
    pub fn is_real(self) -> bool {
        matches!(self, Clock::Realtime | Clock::Monotonic)
    }

    /// The monotonic time at which a clock of real time reaches `when` (in the past, if it has
    /// already).
    pub fn deadline(
        self,
        environment: &dyn Environment,
        processes: &Processes,
        when: When,
    ) -> Result<Duration> {
        let monotonic = environment.monotonic();
        Ok(match (when, self) {
            (When::After(time), _) => monotonic.saturating_add(time),
            (When::At(time), Clock::Monotonic) => time,
            (When::At(time), _) => {
                monotonic.saturating_add(time.saturating_sub(self.now(environment, processes)?))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestEnvironment, capacity};

    #[test]
    fn deadlines_of_clocks_are_on_the_monotonic_clock() {
        let environment = TestEnvironment::new();
        let processes = Processes::new(capacity(1));
        let seconds = Duration::from_secs;
        let deadline = |clock: Clock, when| clock.deadline(&*environment, &processes, when);
        assert_eq!(deadline(Clock::Monotonic, When::After(seconds(5))), Ok(seconds(6)));
        assert_eq!(deadline(Clock::Monotonic, When::At(seconds(5))), Ok(seconds(5)));
        assert_eq!(deadline(Clock::Realtime, When::At(seconds(1_000_000_011))), Ok(seconds(11)));
        assert_eq!(
            deadline(Clock::Realtime, When::At(seconds(3))),
            Ok(seconds(1)),
            "in the past: the deadline has passed"
        );
        assert_eq!(deadline(Clock::Realtime, When::After(Duration::MAX)), Ok(Duration::MAX));
        let init = Clock::ProcessTime(Pid::INIT);
        assert_eq!(init.now(&*environment, &processes), Err(Error::EINVAL));
    }
}
