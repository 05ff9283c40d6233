//! Layouts of timespec, timeval, itimerspec, itimerval.

use super::{Fields, Writer};
use core::time::Duration;
use unix::hardware_clock::CalendarTime;
use unix::timer::Setting;
use unix::{Error, Result};

/// A timespec as a duration: `EINVAL` if it is negative or its nanoseconds are not below one
/// second.
pub fn timespec(bytes: &[u8]) -> Result<Duration> {
    let (seconds, nanoseconds) = (bytes.i64_at(0)?, bytes.i64_at(8)?);
    let seconds = u64::try_from(seconds).map_err(|_| Error::EINVAL)?;
    let nanoseconds = u32::try_from(nanoseconds).map_err(|_| Error::EINVAL)?;
    if nanoseconds >= 1_000_000_000 { Err(Error::EINVAL) } else { Ok(Duration::new(seconds, nanoseconds)) }
}

/// A timeval as a duration: `EINVAL` if it is negative or its microseconds are not below one
/// second.
pub fn timeval(bytes: &[u8]) -> Result<Duration> {
    let (seconds, microseconds) = (bytes.i64_at(0)?, bytes.i64_at(8)?);
    let seconds = u64::try_from(seconds).map_err(|_| Error::EINVAL)?;
    let microseconds = u32::try_from(microseconds).map_err(|_| Error::EINVAL)?;
    if microseconds >= 1_000_000 {
        Err(Error::EINVAL)
    } else {
        Ok(Duration::new(seconds, microseconds * 1000))
    }
}

/// Writes the time as a timespec.
pub fn to_timespec(time: Duration) -> [u8; 16] {
    Writer::new().u64(0, time.as_secs()).u64(8, time.subsec_nanos().into()).done()
}

/// Writes the time as a timeval.
pub fn to_timeval(time: Duration) -> [u8; 16] {
    Writer::new().u64(0, time.as_secs()).u64(8, time.subsec_micros().into()).done()
}

/// A struct rtc_time: `EINVAL` if it is no valid time. Its months begin with 0, its years with
/// 1900.
pub fn calendar_time(bytes: &[u8; 36]) -> Result<CalendarTime> {
    let field = |at, first| bytes.u32_at(at)?.checked_add(first).ok_or(Error::EINVAL);
    let time = CalendarTime {
        second: field(0, 0)?,
        minute: field(4, 0)?,
        hour: field(8, 0)?,
        day: field(12, 0)?,
        month: field(16, 1)?,
        year: field(20, 1900)?,
    };
    if time.is_valid() { Ok(time) } else { Err(Error::EINVAL) }
}

/// Writes a valid time as a struct rtc_time.
pub fn to_calendar_time(time: &CalendarTime) -> [u8; 36] {
    Writer::new()
        .u32(0, time.second)
        .u32(4, time.minute)
        .u32(8, time.hour)
        .u32(12, time.day)
        .u32(16, time.month - 1)
        .u32(20, time.year - 1900)
        .u32(24, time.day_of_week())
        .u32(28, time.day_of_year())
        .done()
}

/// Writes a timex of a clock that nothing synchronises, at this time.
pub fn to_timex(modes: u32, time: Duration, tick: i64) -> [u8; 208] {
    /// Microseconds by which the clock may be wrong at most, for all that is known.
    const UNKNOWN_ERROR: u64 = 16_000_000;
    const UNSYNCHRONISED: u32 = 0x40;
    /// The greatest adjustment of the rate, in parts of 2^-16 of a millionth.
    const TOLERANCE: u64 = 500 << 16;
    Writer::new()
        .u32(0, modes)
        .u64(24, UNKNOWN_ERROR)
        .u64(32, UNKNOWN_ERROR)
        .u32(40, UNSYNCHRONISED)
        .u64(48, 2)
        .u64(56, 1)
        .u64(64, TOLERANCE)
        .bytes(72, &to_timeval(time))
        .u64(88, tick as u64)
        .done()
}

/// Reads an itimerspec: the time until the expiration and the interval.
pub fn itimerspec(bytes: &[u8; 32]) -> Result<Setting> {
    Ok(Setting { interval: timespec(&bytes[..16])?, value: timespec(&bytes[16..])? })
}

/// Writes the setting as an itimerspec.
pub fn to_itimerspec(setting: Setting) -> [u8; 32] {
    Writer::new().bytes(0, &to_timespec(setting.interval)).bytes(16, &to_timespec(setting.value)).done()
}

/// Reads an itimerval: the time until the expiration and the interval.
pub fn itimerval(bytes: &[u8; 32]) -> Result<Setting> {
    Ok(Setting { interval: timeval(&bytes[..16])?, value: timeval(&bytes[16..])? })
}

/// Writes the setting as an itimerval. A part of a microsecond counts as one, so that a timer that
/// is set is never written as zero.
pub fn to_itimerval(setting: Setting) -> [u8; 32] {
    let value = setting.value.saturating_add(Duration::from_nanos(999));
    Writer::new().bytes(0, &to_timeval(setting.interval)).bytes(16, &to_timeval(value)).done()
}

/// Time in clock ticks of 1/100 s, the unit of times(2) and /proc.
pub fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_millis() / 10).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_conversion_and_bad_ones_are_refused() {
        let time = Duration::new(3, 5000);
        assert_eq!(timespec(&to_timespec(time)), Ok(time));
        assert_eq!(timeval(&to_timeval(time)), Ok(time));
        let bad = |seconds: i64, rest: i64| Writer::<16>::new().i64(0, seconds).i64(8, rest).done();
        assert_eq!(timespec(&bad(0, 1_000_000_000)), Err(Error::EINVAL));
        assert_eq!(timespec(&bad(-1, 0)), Err(Error::EINVAL));
        assert_eq!(timeval(&bad(0, 1_000_000)), Err(Error::EINVAL));
        let setting = Setting { value: time, interval: Duration::from_secs(1) };
        assert_eq!(itimerspec(&to_itimerspec(setting)), Ok(setting));
        assert_eq!(ticks(Duration::from_millis(1234)), 123);
    }
}
