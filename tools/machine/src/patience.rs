//! Limits how long a process is waited for. Time in which the host's other work kept it from
//! running does not count, so that no limit depends on how busy the host is.

use std::cell::Cell;
use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The shortest wait between two readings of the clock.
const QUANTUM: Duration = Duration::from_millis(10);

/// The clock of a process and its descendants. It shows wall-clock time, minus the time that one of
/// their threads has waited for a processor of the host: the thread that has waited most. So the
/// clock stands still while the processes wait for a processor. Where the host does not say how
/// long threads wait, it is the wall clock.
pub struct Clock {
    process: u32,
    started: Instant,
    /// The longest wait of a thread so far. Threads that have ended are not counted any more.
    waited: Cell<Duration>,
}

impl Clock {
    /// The clock of a process that has just been started.
    pub fn of(process: u32) -> Clock {
        Clock { process, started: Instant::now(), waited: Cell::default() }
    }

    /// The time that has passed for the process.
    pub fn elapsed(&self) -> Duration {
        self.waited.set(self.waited.get().max(waited(self.process)));
        self.started.elapsed().saturating_sub(self.waited.get())
    }

    /// Receives the next value, and waits for it for `patience` on this clock.
    pub fn receive<T>(&self, from: &Receiver<T>, patience: Duration) -> Result<T, RecvTimeoutError> {
        if let Ok(received) = from.try_recv() {
            return Ok(received);
        }
        let until = self.elapsed() + patience;
        loop {
            let left = until.saturating_sub(self.elapsed());
            match from.recv_timeout(left.max(QUANTUM.min(patience))) {
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
                received => return received,
            }
        }
    }
}

/// How long the thread of these processes that waited longest was ready without a processor.
fn waited(process: u32) -> Duration {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Duration::ZERO };
    let of_thread = |thread: fs::DirEntry| {
        let read = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let own = ready(&read("schedstat"));
        let children = read("children");
        let children = children.split_whitespace().filter_map(|child| child.parse().ok()).map(waited);
        children.fold(own, Duration::max)
    };
    threads.flatten().map(of_thread).max().unwrap_or_default()
}

/// The second figure of a thread's `schedstat`: nanoseconds in a queue of the scheduler.
fn ready(statistics: &str) -> Duration {
    let figure = statistics.split_whitespace().nth(1).and_then(|figure| figure.parse().ok());
    Duration::from_nanos(figure.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn what_a_thread_waited_is_read() {
        assert_eq!(ready("784996 12350308 4\n"), Duration::from_nanos(12_350_308));
        assert_eq!((ready(""), ready("1")), (Duration::ZERO, Duration::ZERO));
    }

    #[test]
    fn a_clock_stands_still_while_its_process_waits() {
        let hour = Duration::from_secs(3600);
        let clock = Clock { process: 0, started: Instant::now(), waited: Cell::new(hour) };
        assert_eq!(clock.elapsed(), Duration::ZERO, "all of the time was waited");
    }

    #[test]
    fn what_comes_is_received_and_what_does_not_is_given_up() {
        let (sender, receiver) = channel();
        let clock = Clock::of(std::process::id());
        sender.send(1).unwrap();
        assert_eq!(clock.receive(&receiver, Duration::ZERO), Ok(1));
        assert_eq!(clock.receive(&receiver, QUANTUM), Err(RecvTimeoutError::Timeout));
        drop(sender);
        assert_eq!(clock.receive(&receiver, QUANTUM), Err(RecvTimeoutError::Disconnected));
    }
}
