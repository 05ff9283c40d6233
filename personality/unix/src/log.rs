//! The system's log: the last lines that were logged, for front ends to show them.

use crate::poll::{PollQueue, Readiness};
use crate::sync::SpinLock;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

/// How many bytes of the newest lines the log keeps.
const KEPT: usize = 64 << 10;
/// How many bytes of one line are kept.
pub const LINE_MAXIMUM: usize = 1024;
/// Bytes that are charged for each line in addition to its text.
const OVERHEAD: usize = 64;

/// The level of lines that the system logs (a warning), in the numbers of syslog(3).
const WARNING: u8 = 4;
/// Facility and level of lines that programs write.
const USER_NOTICE: u8 = 1 << 3 | 5;

/// A line of the system's log.
#[derive(Debug)]
pub struct Line {
    /// Facility and level, in the numbers of syslog(3).
    pub priority: u8,
    /// Monotonic time at which the line was logged.
    pub time: Duration,
    /// The text of the line, without the end of the line.
    pub text: String,
}

#[derive(Default)]
struct Lines {
    kept: VecDeque<Line>,
    bytes: usize,
    /// Number of the oldest line that the log has.
    first: u64,
}

/// A limit on how many lines programs can cause: a burst in each interval. Lines above it are
/// counted.
#[derive(Debug, Default)]
pub struct Rate {
    /// Monotonic time at which the present interval began.
    since: Option<Duration>,
    lines: u32,
    suppressed: u64,
}

impl Rate {
    const INTERVAL: Duration = Duration::from_secs(5);
    const BURST: u32 = 10;

    /// Whether a line may be logged at this time; if so, how many lines were not logged since the
    /// last one.
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

/// The recent lines of the log.
pub struct Log {
    lines: SpinLock<Lines>,
    readers: PollQueue,
}

impl Log {
    /// Makes a log without lines.
    pub fn new() -> Arc<Log> {
        Arc::new(Log { lines: SpinLock::default(), readers: PollQueue::new() })
    }

    /// Adds a line of the system. Without memory, the line is lost.
    pub fn add(&self, time: Duration, text: &str) {
        self.keep(WARNING, time, text);
    }

    /// Adds a line of a program. Without memory, the line is lost.
    pub fn add_of_program(&self, time: Duration, text: &str) {
        self.keep(USER_NOTICE, time, text);
    }

    fn keep(&self, priority: u8, time: Duration, text: &str) {
        let end = (0..=text.len().min(LINE_MAXIMUM)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
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

    /// Calls `look` with each line, the oldest first. `look` runs under a lock and must be short.
    pub fn for_each(&self, look: impl FnMut(&Line)) {
        self.lines.lock().kept.iter().for_each(look);
    }

    /// Calls `look` with the first line from number `from` on, if there is one, and with its
    /// number. Lines are numbered from 0 on. `look` runs under a lock and must be short.
    pub fn look_from<T>(&self, from: u64, look: impl FnOnce(u64, &Line) -> T) -> Option<T> {
        let lines = self.lines.lock();
        let number = from.max(lines.first);
        let line = lines.kept.get(usize::try_from(number - lines.first).ok()?)?;
        Some(look(number, line))
    }

    /// The queue of readers that wait for another line.
    pub fn readers(&self) -> &PollQueue {
        &self.readers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn lines_above_the_rate_are_counted_and_not_logged() {
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
    fn the_oldest_lines_are_dropped_for_new_ones() {
        let log = Log::new();
        (0..2000).for_each(|number| log.add(Duration::ZERO, &format!("{number} {}", "é".repeat(1000))));
        let (mut lines, mut bytes) = (0, 0);
        log.for_each(|line| (lines, bytes) = (lines + 1, bytes + line.text.len()));
        assert!(lines > 0 && bytes <= KEPT, "{lines} lines of {bytes} bytes");
        let (first, text) = log.look_from(0, |number, line| (number, line.text.clone())).unwrap();
        assert!(
            first == 2000 - lines && text.starts_with(&format!("{first} é")) && text.len() <= LINE_MAXIMUM
        );
        assert!(log.look_from(2000, |_, _| ()).is_none());
    }
}
