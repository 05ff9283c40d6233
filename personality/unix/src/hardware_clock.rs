//! The clock of the machine that runs while it is off, and its device (rtc(4)). It gives the system
//! the time at its start.

use crate::file::{DeviceDriver, FileObject, Io};
use crate::poll::{PollQueue, Readiness};
use crate::vfs::OpenContext;
use crate::{AttemptError, Environment, Error, Result, Timestamp, UserBuffer};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

/// What a clock shows. Month and day begin with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct CalendarTime {
    pub year: u32,
    pub month: u32,
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
}

/// How many days of a year, which is no leap year, are before each month.
const DAYS_BEFORE: [u32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// The leap years before this one.
fn leap_years_before(year: u32) -> u32 {
    let last = year - 1;
    last / 4 - last / 100 + last / 400
}

impl CalendarTime {
    /// Whether there is such a time: a year from 1970 on, and a day that the month has.
    pub fn is_valid(&self) -> bool {
        let days = match self.month {
            2 if is_leap(self.year) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        (1970..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second < 60
    }

    /// The day of the year, from 0. The time must be [valid](Self::is_valid).
    pub fn day_of_year(&self) -> u32 {
        let leap_day = u32::from(self.month > 2 && is_leap(self.year));
        DAYS_BEFORE[self.month as usize - 1] + leap_day + self.day - 1
    }

    /// The days since 1 January 1970. The time must be [valid](Self::is_valid).
    fn days(&self) -> u32 {
        let leap_days = leap_years_before(self.year) - leap_years_before(1970);
        (self.year - 1970) * 365 + leap_days + self.day_of_year()
    }

    /// The day of the week, from 0 for Sunday. The time must be [valid](Self::is_valid).
    pub fn day_of_week(&self) -> u32 {
        // 1 January 1970 was a Thursday.
        (self.days() + 4) % 7
    }

    /// The seconds since 1970, if the time is UTC. It must be [valid](Self::is_valid).
    pub fn seconds(&self) -> i64 {
        let seconds = self.hour * 3600 + self.minute * 60 + self.second;
        i64::from(self.days()) * 86400 + i64::from(seconds)
    }
}

/// The clock. A call may take some milliseconds.
pub trait HardwareClock: Send + Sync {
    /// What the clock shows, which is a [valid](CalendarTime::is_valid) time.
    ///
    /// # Errors
    /// `EINVAL`: the clock shows no valid time. `EIO`: the clock does not answer.
    fn read(&self) -> Result<CalendarTime>;

    /// Sets the clock to a valid time.
    ///
    /// # Errors
    /// `EINVAL`: the clock cannot show this time. `EIO`: the clock does not answer.
    fn set(&self, time: &CalendarTime) -> Result<()>;
}

/// Sets the wall clock to what the hardware clock shows, if there is one. Its time is taken as UTC.
///
/// # Errors
/// Those of [`HardwareClock::read`].
pub fn set_system_time(environment: &dyn Environment) -> Result<()> {
    if let Some(clock) = environment.hardware_clock() {
        environment.advance_to(Timestamp { seconds: clock.read()?.seconds(), nanoseconds: 0 });
    }
    Ok(())
}

/// The driver of the device.
pub(crate) struct ClockDriver {
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) is_open: Arc<AtomicBool>,
}

impl DeviceDriver for ClockDriver {
    fn open(&self, _context: &OpenContext<'_>) -> Result<Arc<dyn FileObject>> {
        if self.is_open.swap(true, Ordering::AcqRel) {
            return Err(Error::EBUSY);
        }
        let (environment, is_open) = (self.environment.clone(), self.is_open.clone());
        Ok(Arc::new(ClockFile { environment, is_open, queue: PollQueue::new() }))
    }
}

/// The open device. One program can have it at a time. It has no interrupts, so nothing is ever to
/// be read: a read waits until a signal comes.
pub struct ClockFile {
    environment: Arc<dyn Environment>,
    is_open: Arc<AtomicBool>,
    queue: PollQueue,
}

impl ClockFile {
    /// The clock.
    ///
    /// # Errors
    /// `ENODEV`: there is none any more.
    pub fn clock(&self) -> Result<&dyn HardwareClock> {
        self.environment.hardware_clock().ok_or(Error::ENODEV)
    }
}

impl Drop for ClockFile {
    fn drop(&mut self) {
        self.is_open.store(false, Ordering::Release);
    }
}

impl FileObject for ClockFile {
    fn readiness(&self) -> Readiness {
        Readiness::empty()
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.queue)
    }

    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        // A read gives an unsigned int or a long: what interrupted, and how often.
        if to.remaining() != size_of::<u32>() && to.remaining() < size_of::<u64>() {
            return Err(Error::EINVAL.into());
        }
        Err(AttemptError::WouldBlock)
    }

    fn try_write(&self, _io: &Io<'_>, _from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        Err(Error::EINVAL.into())
    }

    fn label(&self) -> &'static str {
        "rtc"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_days_are_those_of_the_calendar() {
        let at = |year, month, day| CalendarTime { year, month, day, hour: 0, minute: 0, second: 0 };
        // What date(1) says: +%s, +%w, +%j.
        for (time, seconds, day_of_week, day_of_year) in [
            (at(1970, 1, 1), 0, 4, 1),
            (at(1999, 12, 31), 946_598_400, 5, 365),
            (at(2000, 2, 29), 951_782_400, 2, 60),
            (at(2000, 3, 1), 951_868_800, 3, 61),
            (at(2026, 11, 27), 1_795_737_600, 5, 331),
            (at(2069, 12, 31), 3_155_673_600, 2, 365),
            (at(2100, 3, 1), 4_107_542_400, 1, 60),
        ] {
            assert!(time.is_valid(), "{time:?}");
            assert_eq!(
                (time.seconds(), time.day_of_week(), time.day_of_year() + 1),
                (seconds, day_of_week, day_of_year),
                "{time:?}"
            );
        }
        let late = CalendarTime { hour: 23, minute: 59, second: 58, ..at(1970, 1, 2) };
        assert_eq!(late.seconds(), 2 * 86400 - 2);
    }

    #[test]
    fn a_day_that_the_month_does_not_have_is_not_valid() {
        let at = |year, month, day| CalendarTime { year, month, day, hour: 0, minute: 0, second: 0 };
        let good = at(2024, 2, 29);
        for bad in [
            at(2026, 2, 29),
            at(2100, 2, 29),
            at(2026, 4, 31),
            at(2026, 1, 0),
            at(2026, 0, 1),
            at(2026, 13, 1),
            at(1969, 12, 31),
            CalendarTime { hour: 24, ..good },
            CalendarTime { minute: 60, ..good },
            CalendarTime { second: 60, ..good },
        ] {
            assert!(!bad.is_valid(), "{bad:?}");
        }
        assert!(good.is_valid());
    }
}
