//! The system's log as programs read it (/dev/kmsg, syslog(2)): the last lines that were logged.

use crate::file::{DeviceDriver, FileObject, Io, Positions};
use crate::poll::{PollQueue, Readiness};
use crate::sync::SpinLock;
use crate::user_buffer::copy_out_all;
use crate::vfs::{OpenContext, OpenFlags};
use crate::{Capability, Environment, Error, NotDone, Result, UserBuffer};
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::time::Duration;

/// How many bytes of the newest lines are kept.
const KEPT: usize = 64 << 10;
/// How many bytes of one line are kept.
const LINE: usize = 1024;
/// Bytes that are charged for each line in addition to its text.
const OVERHEAD: usize = 64;

/// Level of what the system logs (a warning), in the numbers of syslog(3).
const WARNING: u8 = 4;
/// Facility and level of what programs write.
const USER_NOTICE: u8 = 1 << 3 | 5;

struct Line {
    /// Facility and level.
    priority: u8,
    time: Duration,
    text: String,
}

#[derive(Default)]
struct Lines {
    kept: VecDeque<Line>,
    bytes: usize,
    /// Number of the oldest line that is kept.
    first: u64,
}

/// How many lines programs can cause: a burst in each interval. What is above that is counted.
#[derive(Debug, Default)]
pub struct Rate {
    /// Monotonic time at which the interval began.
    since: Option<Duration>,
    lines: u32,
    suppressed: u64,
}

impl Rate {
    const INTERVAL: Duration = Duration::from_secs(5);
    const BURST: u32 = 10;

    /// Whether a line may be logged at this time; if so, how many could not be since the last one.
    pub fn admit(&mut self, now: Duration) -> Option<u64> {
        if self.since.is_none_or(|since| now.saturating_sub(since) >= Rate::INTERVAL) {
            (self.since, self.lines) = (Some(now), 0);
        }
        if self.lines == Rate::BURST {
            self.suppressed += 1;
            return None;
        }
        self.lines += 1;
        Some(core::mem::take(&mut self.suppressed))
    }
}

/// The lines that were logged last.
pub struct Log {
    lines: SpinLock<Lines>,
    readers: PollQueue,
}

impl Log {
    /// An empty log.
    pub fn new() -> Arc<Log> {
        Arc::new(Log { lines: SpinLock::default(), readers: PollQueue::new() })
    }

    /// Keeps a line of the system's. If there is no memory, the line is lost.
    pub fn add(&self, time: Duration, text: &str) {
        self.keep(WARNING, time, text);
    }

    fn keep(&self, priority: u8, time: Duration, text: &str) {
        let end = (0..=text.len().min(LINE)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let mut line = Line { priority, time, text: String::new() };
        let mut lines = self.lines.lock();
        if line.text.try_reserve_exact(end).is_err() || lines.kept.try_reserve(1).is_err() {
            return;
        }
        line.text.push_str(&text[..end]);
        lines.bytes += end + OVERHEAD;
        lines.kept.push_back(line);
        while lines.bytes > KEPT
            && let Some(old) = lines.kept.pop_front()
        {
            lines.bytes -= old.text.len() + OVERHEAD;
            lines.first += 1;
        }
        drop(lines);
        self.readers.wake(Readiness::READ);
    }

    /// The text of all lines that are kept, as syslog(2) shows it.
    pub fn text(&self) -> Vec<u8> {
        let lines = self.lines.lock();
        let line = |line: &Line| {
            let (seconds, rest) = (line.time.as_secs(), line.time.subsec_micros());
            format!("<{}>[{seconds:5}.{rest:06}] {}\n", line.priority, line.text)
        };
        lines.kept.iter().map(line).collect::<String>().into_bytes()
    }

    /// The first kept line from number `from` on, and its number, as a record of /dev/kmsg.
    fn record(&self, from: u64) -> Option<(u64, String)> {
        let lines = self.lines.lock();
        let number = from.max(lines.first);
        let line = lines.kept.get(usize::try_from(number - lines.first).ok()?)?;
        Some((number, format!("{},{number},{},-;{}\n", line.priority, line.time.as_micros(), line.text)))
    }
}

/// Opens /dev/kmsg.
pub struct LogDriver {
    /// The log that the device shows.
    pub log: Arc<Log>,
    /// The clock for the time stamps of lines that programs write.
    pub environment: Arc<dyn Environment>,
}

impl DeviceDriver for LogDriver {
    /// `EPERM` for reading without privilege: the log shows what programs of other users did wrong.
    fn open(&self, context: &OpenContext<'_>) -> Result<Arc<dyn FileObject>> {
        if context.flags.contains(OpenFlags::READ) && !context.identity.has(Capability::Administrator) {
            return Err(Error::EPERM);
        }
        let next = SpinLock::new(0);
        Ok(Arc::new(LogFile { log: self.log.clone(), environment: self.environment.clone(), next }))
    }
}

/// /dev/kmsg, open: each read gives one line, each write makes one.
struct LogFile {
    log: Arc<Log>,
    environment: Arc<dyn Environment>,
    /// Number of the line that is read next.
    next: SpinLock<u64>,
}

impl FileObject for LogFile {
    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, NotDone> {
        let mut next = self.next.lock();
        let (number, record) = self.log.record(*next).ok_or(NotDone::NotReady)?;
        // Lines were lost before they could be read: say so once.
        if number != *next && *next != 0 {
            *next = number;
            return Err(Error::EPIPE.into());
        }
        copy_out_all(to, record.as_bytes())?;
        *next = number + 1;
        Ok(record.len())
    }

    fn try_write(&self, _io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, NotDone> {
        let mut bytes = [0; LINE];
        let count = from.remaining().min(LINE);
        let copied = from.copy_in(&mut bytes[..count])?;
        let text = String::from_utf8_lossy(&bytes[..copied]);
        self.log.keep(USER_NOTICE, self.environment.monotonic(), text.trim_end_matches('\n'));
        Ok(copied)
    }

    fn readiness(&self) -> Readiness {
        let has_more = self.log.record(*self.next.lock()).is_some();
        if has_more { Readiness::READ | Readiness::WRITE } else { Readiness::WRITE }
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.log.readers)
    }

    fn positions(&self) -> Positions {
        Positions::Ignored
    }

    fn label(&self) -> &'static str {
        "kmsg"
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use crate::vfs::{At, DeviceNumber, FileType, Mode};

    const NUMBER: DeviceNumber = DeviceNumber { major: 1, minor: 11 };

    fn world() -> (World, Arc<Log>) {
        let (world, log) = (World::new(), Log::new());
        let driver = LogDriver { log: log.clone(), environment: world.environment.clone() };
        world.vfs.register_device(false, NUMBER, Arc::new(driver));
        let mode = Mode::new(0o666);
        {
            let caller = world.caller();
            let made = caller.make_node(&At::Current, b"/kmsg", FileType::CharacterDevice, mode, NUMBER);
            crate::testing::now(made).unwrap();
        }
        (world, log)
    }

    #[test]
    fn programs_cause_so_many_lines_and_no_more() {
        let mut rate = Rate::default();
        let mut count = |from: u64, lines: usize| {
            let time = |index: usize| Duration::from_millis(from + index as u64);
            (0..lines).map(|index| rate.admit(time(index))).collect::<Vec<_>>()
        };
        let first = count(7000, 25);
        assert_eq!(first, [[Some(0); 10].as_slice(), &[None; 15]].concat());
        assert_eq!(count(11_999, 1), [None]);
        assert_eq!(count(12_000, 11), [[Some(16)].as_slice(), &[Some(0); 9], &[None]].concat());
        assert_eq!(count(60_000, 2), [Some(1), Some(0)]);
    }

    #[test]
    fn each_read_gives_a_line_and_each_write_makes_one() {
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
        assert!(log.text().starts_with(b"<4>[    1.000002] first\n<13>["));
        world.become_user(1000, 1000);
        assert_eq!(world.open("/kmsg", OpenFlags::READ).map(drop), Err(Error::EPERM));
    }

    #[test]
    fn old_lines_give_way_and_a_reader_is_told() {
        let (world, log) = world();
        let file = world.open("/kmsg", OpenFlags::READ).unwrap();
        log.add(Duration::ZERO, "0");
        world.read(&file, 100).unwrap();
        (1..2000).for_each(|number| log.add(Duration::ZERO, &format!("{number} {}", "é".repeat(1000))));
        assert!(log.text().len() < 2 * KEPT);
        assert_eq!(world.read(&file, 100), Err(Error::EPIPE));
        assert!(world.read(&file, 4096).unwrap().starts_with(b"4,1"));
    }
}
