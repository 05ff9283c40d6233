//! How fast a connection sends: round trip times (RFC 6298), and the congestion window of NewReno
//! (RFC 5681, RFC 6582) with selective acknowledgements (RFC 6675).

use core::time::Duration;

use super::sequence::{Ranges, Seq};

/// The shortest retransmission timeout, as Linux has it.
const SHORTEST: Duration = Duration::from_millis(200);
/// The longest.
const LONGEST: Duration = Duration::from_secs(120);
/// The timeout before there is a measurement.
const FIRST: Duration = Duration::from_secs(1);

/// Round trip times, in microseconds.
#[derive(Default)]
pub(crate) struct RoundTrip {
    pub(crate) smoothed: u64,
    pub(crate) variation: u64,
    measured: bool,
}

impl RoundTrip {
    pub(crate) fn add(&mut self, sample: Duration) {
        let sample = sample.as_micros().min(u128::from(u32::MAX)) as u64;
        if self.measured {
            self.variation = (3 * self.variation + self.smoothed.abs_diff(sample)) / 4;
            self.smoothed = (7 * self.smoothed + sample) / 8;
        } else {
            self.measured = true;
            self.smoothed = sample;
            self.variation = sample / 2;
        }
    }

    /// The time after which a segment is sent again for the `backoff`-th time.
    pub(crate) fn timeout(&self, backoff: u32) -> Duration {
        let base = if self.measured {
            Duration::from_micros(self.smoothed + (4 * self.variation).max(1000)).max(SHORTEST)
        } else {
            FIRST
        };
        base.saturating_mul(1 << backoff.min(16)).min(LONGEST)
    }
}

/// Sending lost data again.
pub(crate) struct Recovery {
    /// Data before this has been sent again.
    pub(crate) next: Seq,
    /// What had been sent when the loss was noticed: recovery ends when it is acknowledged.
    pub(crate) end: Seq,
    /// The retransmission timer noticed the loss: all that is not known to have arrived is lost.
    timeout: bool,
    /// The first segment is sent again whatever the window.
    pub(crate) urgent: bool,
}

/// The congestion window and what is known of data in flight.
pub(crate) struct Congestion {
    pub(crate) window: usize,
    pub(crate) threshold: usize,
    /// What the peer has told that it has, of the data in flight.
    pub(crate) sacked: Ranges,
    pub(crate) recovery: Option<Recovery>,
    /// Acknowledgements that repeat the last one.
    pub(crate) duplicates: usize,
    /// Data before this does not start a fast retransmission again.
    recovered: Seq,
    /// Bytes that were acknowledged since the window last grew, in congestion avoidance.
    credit: usize,
}

impl Congestion {
    pub(crate) fn new(first: Seq) -> Congestion {
        Congestion {
            window: 10 * 1460,
            threshold: usize::MAX / 4,
            sacked: Ranges::default(),
            recovery: None,
            duplicates: 0,
            recovered: first,
            credit: 0,
        }
    }

    /// The window at the beginning (RFC 6928).
    pub(crate) fn start(&mut self, mss: usize) {
        self.window = 10 * mss;
    }

    /// Where data stops being lost, as far as is known.
    fn lost_end(&self, una: Seq, mss: usize) -> Seq {
        match &self.recovery {
            None => una,
            Some(recovery) if recovery.timeout => recovery.end,
            Some(recovery) => self.sacked.end().unwrap_or(una + mss).min(recovery.end),
        }
    }

    /// Bytes that are thought to be in the network.
    pub(crate) fn pipe(&self, una: Seq, nxt: Seq, mss: usize) -> usize {
        let flight = nxt.since(una);
        let Some(recovery) = &self.recovery else {
            return flight.saturating_sub(self.sacked.count(una, nxt));
        };
        let lost_end = self.lost_end(una, mss);
        let lost = lost_end.since(recovery.next) - self.sacked.count(recovery.next, lost_end);
        let known = self.sacked.count(una, nxt);
        // Without selective acknowledgements each duplicate stands for a segment that arrived.
        let arrived = if known > 0 { known } else { self.duplicates * mss };
        flight.saturating_sub(arrived + lost)
    }

    /// The next data that is to be sent again.
    pub(crate) fn lost(&self, una: Seq, mss: usize) -> Option<(Seq, Seq)> {
        let recovery = self.recovery.as_ref()?;
        self.sacked.gap(recovery.next.max(una), self.lost_end(una, mss))
    }

    /// The peer acknowledged data up to `una`. `acked` bytes are new.
    pub(crate) fn acknowledged(&mut self, una: Seq, acked: usize, mss: usize, limited: bool) {
        self.sacked.trim(una);
        self.duplicates = 0;
        self.recovered = self.recovered.max(una);
        if let Some(recovery) = &mut self.recovery {
            if !una.before(recovery.end) {
                self.window = self.window.min(self.threshold.max(2 * mss));
                self.recovered = recovery.end;
                self.recovery = None;
            } else if !recovery.timeout {
                if self.sacked.is_empty() {
                    // A partial acknowledgement: the segment after it is lost, too.
                    recovery.next = una;
                    recovery.urgent = true;
                }
                return;
            }
        }
        if !limited {
            // A window that is not used says nothing about the network.
            return;
        }
        if self.window < self.threshold {
            self.window += acked.min(2 * mss);
        } else {
            self.credit += acked;
            if self.credit >= self.window {
                self.credit -= self.window;
                self.window += mss;
            }
        }
        self.window = self.window.min(1 << 30);
    }

    /// The peer has told that it has `start..end`.
    pub(crate) fn selective(&mut self, start: Seq, end: Seq, una: Seq, nxt: Seq) {
        if start.before(end) && !start.before(una) && !end.after(nxt) {
            self.sacked.insert(start, end);
        }
    }

    /// Begins a fast retransmission if what the peer told means that data is lost.
    pub(crate) fn check(&mut self, una: Seq, nxt: Seq, mss: usize) {
        let known = self.sacked.count(una, nxt);
        let lost = self.duplicates >= 3 || known > 3 * mss;
        if !lost || self.recovery.is_some() || una.before(self.recovered) {
            return;
        }
        self.threshold = (nxt.since(una) / 2).max(2 * mss);
        self.window = self.threshold;
        self.recovery = Some(Recovery { next: una, end: nxt, timeout: false, urgent: true });
    }

    /// The retransmission timer has run out.
    pub(crate) fn timed_out(&mut self, una: Seq, nxt: Seq, mss: usize, again: bool) {
        if again {
            // The peer may have dropped what it told that it has.
            self.sacked.clear();
        } else {
            self.threshold = (nxt.since(una) / 2).max(2 * mss);
        }
        self.window = mss;
        self.credit = 0;
        self.duplicates = 0;
        self.recovery = Some(Recovery { next: una, end: nxt, timeout: true, urgent: true });
    }

    /// The connection was idle for longer than a timeout: the window starts again (RFC 5681).
    pub(crate) fn idle(&mut self, mss: usize) {
        self.threshold = self.threshold.max(self.window / 2);
        self.window = self.window.min(10 * mss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_follow_measurements() {
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.timeout(0), FIRST);
        assert_eq!(round_trip.timeout(2), FIRST * 4);
        round_trip.add(Duration::from_millis(300));
        assert_eq!(round_trip.timeout(0), Duration::from_millis(900));
        for _ in 0..100 {
            round_trip.add(Duration::from_millis(10));
        }
        assert_eq!(round_trip.timeout(0), SHORTEST);
        assert_eq!(round_trip.timeout(40), LONGEST);
    }

    #[test]
    fn three_duplicates_halve_the_window_and_send_again() {
        let (una, nxt) = (Seq(1000), Seq(1000) + 10_000);
        let mut congestion = Congestion::new(una);
        congestion.start(1000);
        congestion.duplicates = 2;
        congestion.check(una, nxt, 1000);
        assert!(congestion.lost(una, 1000).is_none());
        congestion.duplicates = 3;
        congestion.check(una, nxt, 1000);
        assert_eq!(congestion.lost(una, 1000), Some((una, una + 1000)));
        assert_eq!(congestion.window, 5000);
        assert_eq!(congestion.pipe(una, nxt, 1000), 6000);
        congestion.acknowledged(nxt, 10_000, 1000, true);
        assert!(congestion.recovery.is_none());
        assert!(congestion.window <= 6000);
    }

    #[test]
    fn an_old_recovery_forbids_no_new_one() {
        let mut una = Seq(0);
        let mut congestion = Congestion::new(una);
        for _ in 0..3 {
            una = una + (1 << 30);
            congestion.acknowledged(una, 1 << 30, 1000, true);
        }
        congestion.duplicates = 3;
        congestion.check(una, una + 10_000, 1000);
        assert!(congestion.recovery.is_some());
    }

    #[test]
    fn only_gaps_are_sent_again() {
        let (una, nxt) = (Seq(u32::MAX - 2000), Seq(u32::MAX - 2000) + 10_000);
        let mut congestion = Congestion::new(una);
        congestion.selective(una + 1000, una + 3000, una, nxt);
        congestion.selective(una + 4000, una + 7000, una, nxt);
        congestion.selective(una, nxt + 1, una, nxt);
        congestion.check(una, nxt, 1000);
        assert_eq!(congestion.lost(una, 1000), Some((una, una + 1000)));
        assert_eq!(congestion.pipe(una, nxt, 1000), 3000);
        if let Some(recovery) = &mut congestion.recovery {
            recovery.next = una + 1000;
        }
        assert_eq!(congestion.lost(una, 1000), Some((una + 3000, una + 4000)));
        assert_eq!(congestion.pipe(una, nxt, 1000), 4000);
    }
}
