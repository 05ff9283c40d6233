//! The hardware clock: the client of the server that drives it.

use direct::Error as Failure;
use interfaces::rtc;
use l4::direct::Direct;
use rt::root::{Status, names};
use unix::hardware_clock::{CalendarTime, HardwareClock};
use unix::{Error, Result};

/// The name of the server that drives the clock.
const SERVER: &str = "rtc";

/// The clock that the server drives.
pub(crate) struct Clock(());

impl Clock {
    /// Finds the clock, if there is one. Blocks until the driver has started.
    pub(crate) fn find() -> Option<Clock> {
        names::lookup_wait(SERVER).ok().map(|_| Clock(()))
    }
}

/// Sends a request to the server that is registered now: it may have been started again.
fn ask<T>(
    request: impl FnOnce(&mut rtc::Client<'_, Direct>) -> core::result::Result<T, Failure>,
) -> Result<T> {
    let to = names::lookup(SERVER).map_err(|_| Error::EIO)?;
    request(&mut rtc::Client { transport: &mut Direct::default(), to }).map_err(|failure| match failure {
        Failure::Status(status) if Status::from(status) == Status::UnknownRequest => Error::EIO,
        Failure::Status(_) => Error::EINVAL,
        Failure::Ipc(_) | Failure::Malformed => Error::EIO,
    })
}

impl HardwareClock for Clock {
    fn read(&self) -> Result<CalendarTime> {
        let (year, month, day, hour, minute, second) = ask(|clock| clock.rtc_read())?;
        let time = CalendarTime { year, month, day, hour, minute, second };
        if time.is_valid() { Ok(time) } else { Err(Error::EINVAL) }
    }

    fn set(&self, time: &CalendarTime) -> Result<()> {
        let &CalendarTime { year, month, day, hour, minute, second } = time;
        ask(|clock| clock.rtc_set(year, month, day, hour, minute, second))
    }
}
