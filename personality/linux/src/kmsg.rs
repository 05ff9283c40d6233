//! The system's log as programs read it: /dev/kmsg and syslog(2).

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use unix::file::{DeviceDriver, FileObject, Io, Positions};
use unix::log::{LINE_MAXIMUM, Log};
use unix::poll::{PollQueue, Readiness};
use unix::sync::SpinLock;
use unix::vfs::{OpenContext, OpenFlags};
use unix::{AttemptError, Environment, Error, Privilege, Result, UserBuffer, copy_out_all};

/// The text of all lines of the log, as syslog(2) returns it.
pub(crate) fn text(log: &Log) -> Vec<u8> {
    let mut text = String::new();
    log.for_each(|line| {
        let (seconds, rest) = (line.time.as_secs(), line.time.subsec_micros());
        text += &format!("<{}>[{seconds:5}.{rest:06}] {}\n", line.priority, line.text);
    });
    text.into_bytes()
}

/// The first line of the log from number `from` on, as a record of /dev/kmsg, with its number.
fn record(log: &Log, from: u64) -> Option<(u64, String)> {
    log.look_from(from, |number, line| {
        (number, format!("{},{number},{},-;{}\n", line.priority, line.time.as_micros(), line.text))
    })
}

/// The driver of /dev/kmsg.
pub(crate) struct LogDriver {
    /// The log that the device shows.
    pub(crate) log: Arc<Log>,
    /// The clock for the time stamps of lines that programs write.
    pub(crate) environment: Arc<dyn Environment>,
}

impl DeviceDriver for LogDriver {
    /// `EPERM` for opening to read without privilege: the log has messages about programs of other
    /// users.
    fn open(&self, context: &OpenContext<'_>) -> Result<Arc<dyn FileObject>> {
        let mut needed = [Privilege::Log, Privilege::Administrator].into_iter();
        let is_permitted = needed.any(|privilege| context.identity.has(privilege));
        if context.flags.contains(OpenFlags::READ) && !is_permitted {
            return Err(Error::EPERM);
        }
        let next = SpinLock::new(0);
        Ok(Arc::new(LogFile { log: self.log.clone(), environment: self.environment.clone(), next }))
    }
}

/// /dev/kmsg as an open file: each read gives one line, each write adds one.
struct LogFile {
    log: Arc<Log>,
    environment: Arc<dyn Environment>,
    /// Number of the line that is read next.
    next: SpinLock<u64>,
}

impl FileObject for LogFile {
    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let mut next = self.next.lock();
        let (number, record) = record(&self.log, *next).ok_or(AttemptError::WouldBlock)?;
        // Lines were lost before they could be read: `EPIPE` reports that once.
        if number != *next && *next != 0 {
            *next = number;
            return Err(Error::EPIPE.into());
        }
        copy_out_all(to, record.as_bytes())?;
        *next = number + 1;
        Ok(record.len())
    }

    fn try_write(&self, _io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let mut bytes = [0; LINE_MAXIMUM];
        let count = from.remaining().min(LINE_MAXIMUM);
        let copied = from.copy_in(&mut bytes[..count])?;
        let text = String::from_utf8_lossy(&bytes[..copied]);
        self.log.add_of_program(self.environment.monotonic(), text.trim_end_matches('\n'));
        Ok(copied)
    }

    fn readiness(&self) -> Readiness {
        let has_more = record(&self.log, *self.next.lock()).is_some();
        if has_more { Readiness::READ | Readiness::WRITE } else { Readiness::WRITE }
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(self.log.readers())
    }

    fn positions(&self) -> Positions {
        Positions::Ignored
    }

    fn label(&self) -> &'static str {
        "kmsg"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use unix::testing::{World, now};
    use unix::vfs::{At, DeviceNumber, FileType, Mode};

    const NUMBER: DeviceNumber = DeviceNumber { major: 1, minor: 11 };

    fn world() -> (World, Arc<Log>) {
        let (world, log) = (World::new(), Log::new());
        let driver = LogDriver { log: log.clone(), environment: world.environment.clone() };
        world.vfs.register_device(false, NUMBER, Arc::new(driver));
        let mode = Mode::new(0o666);
        {
            let caller = world.caller();
            let made = caller.make_node(&At::Current, b"/kmsg", FileType::CharacterDevice, mode, NUMBER);
            now(made).unwrap();
        }
        (world, log)
    }

    #[test]
    fn each_read_gives_one_line_and_each_write_adds_one() {
        let (mut world, log) = world();
        log.add(Duration::from_micros(1_000_002), "first");
        let file = world.open("/kmsg", OpenFlags::READ_WRITE | OpenFlags::NONBLOCK).unwrap();
        assert_eq!(world.write(&file, b"second\n"), Ok(7));
        assert_eq!(world.read(&file, 3), Err(Error::EINVAL), "a line is read whole");
        assert_eq!(world.read(&file, 100).unwrap(), b"4,0,1000002,-;first\n");
        assert_eq!(file.readiness(), Readiness::READ | Readiness::WRITE);
        assert!(world.read(&file, 100).unwrap().ends_with(b"-;second\n"));
        assert_eq!(world.read(&file, 100), Err(Error::EAGAIN));
        assert_eq!(file.readiness(), Readiness::WRITE);
        assert!(text(&log).starts_with(b"<4>[    1.000002] first\n<13>["));
        world.become_user(1000, 1000);
        assert_eq!(world.open("/kmsg", OpenFlags::READ).map(drop), Err(Error::EPERM));
    }

    #[test]
    fn a_reader_learns_that_old_lines_were_dropped() {
        let (world, log) = world();
        let file = world.open("/kmsg", OpenFlags::READ).unwrap();
        log.add(Duration::ZERO, "0");
        world.read(&file, 100).unwrap();
        (1..2000).for_each(|number| log.add(Duration::ZERO, &format!("{number} {}", "é".repeat(1000))));
        assert_eq!(world.read(&file, 100), Err(Error::EPIPE));
        assert!(world.read(&file, 4096).unwrap().starts_with(b"4,1"));
    }
}
