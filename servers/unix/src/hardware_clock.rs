//! The hardware clock: the client of the server that drives it.

use direct::Error as Failure;
use interfaces::rtc;
use l4::direct::Direct;
use l4::extension;
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

/// Sends a request to the server. If that has ended meanwhile, the request is repeated to the one
/// that is started in its place: what a request does, it may do twice. Blocks until the server has
/// answered; overwrites the message registers.
fn ask<T>(request: impl Fn(&mut rtc::Client<'_, Direct>) -> core::result::Result<T, Failure>) -> Result<T> {
    loop {
        let to = names::lookup_wait(SERVER).map_err(|_| Error::EIO)?;
        return match request(&mut rtc::Client { transport: &mut Direct::default(), to }) {
            Ok(answer) => Ok(answer),
            Err(Failure::Ipc(_)) if extension::notify(to, 0).is_err() => continue,
            Err(Failure::Status(status)) if Status::from(status) != Status::UnknownRequest => {
                Err(Error::EINVAL)
            }
            Err(_) => Err(Error::EIO),
        };
    }
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
