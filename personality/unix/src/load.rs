//! The load average: how many threads run or could run, as averages over one, five and fifteen
//! minutes (getloadavg(3)).

use core::time::Duration;

/// How many bits of a fixed-point number are its fraction.
const SHIFT: u32 = 16;
/// One thread as a fixed-point number.
const ONE: u64 = 1 << SHIFT;
/// The interval at which running threads are counted for the load average.
const STEP: Duration = Duration::from_secs(5);
/// The part of an average that is left after one interval, in 1/65536: exp(-5/60), exp(-5/300),
/// exp(-5/900).
const KEPT: [u64; 3] = [60_296, 64_453, 65_173];
/// A limit on the number of threads that keeps the calculation from overflowing.
const MOST: u64 = 1 << 24;
/// A longer gap is cut to this many intervals, after which the old averages no longer matter. How
/// many threads ran in the gap is not known anyway.
const FORGOTTEN: u64 = 1000;

/// The load averages of a system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    averages: [u64; 3],
    /// When running threads are counted next, as time since boot.
    next: Duration,
}

impl Load {
    /// Records that `running` threads run or could run at the time `now` since boot. It has to be
    /// called every five seconds or more often; calls within an interval change nothing.
    pub fn note(&mut self, now: Duration, running: usize) {
        if now < self.next {
            return;
        }
        let late = (now - self.next).as_secs() / STEP.as_secs();
        let running = (running as u64).min(MOST) * ONE;
        for _ in 0..(late + 1).min(FORGOTTEN) {
            for (average, kept) in self.averages.iter_mut().zip(KEPT) {
                *average = (*average * kept + running * (ONE - kept) + ONE / 2) >> SHIFT;
            }
        }
        self.next = now + STEP;
    }

    /// The load averages, in 1/65536 of a thread.
    pub fn averages(&self) -> [u64; 3] {
        self.averages
    }

    /// The load averages as whole threads and hundredths.
    pub fn hundredths(&self) -> [(u64, u64); 3] {
        self.averages.map(|average| {
            let rounded = (average * 100 + ONE / 2) >> SHIFT;
            (rounded / 100, rounded % 100)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: u64, running: usize, load: &mut Load, from: u64) {
        (from..from + seconds).for_each(|second| load.note(Duration::from_secs(second), running));
    }

    #[test]
    fn load_averages_approach_the_number_of_running_threads() {
        let mut load = Load::default();
        after(60, 2, &mut load, 0);
        let [one, five, fifteen] = load.averages().map(|average| average as f64 / ONE as f64);
        // The load is 2 * (1 - exp(-t/T)) after t = 60 s.
        assert!((one - 1.264).abs() < 0.01, "{one}");
        assert!((five - 0.363).abs() < 0.01, "{five}");
        assert!((fifteen - 0.129).abs() < 0.01, "{fifteen}");
        after(3600, 2, &mut load, 60);
        assert_eq!(load.hundredths()[0], (2, 0));
        after(600, 0, &mut load, 3660);
        assert_eq!(load.hundredths()[0], (0, 0));
        assert!(load.averages()[2] > ONE / 2);
    }

    #[test]
    fn late_or_frequent_counting_changes_nothing() {
        let (mut often, mut seldom) = (Load::default(), Load::default());
        (0..600).for_each(|tenth| often.note(Duration::from_millis(tenth * 100), 3));
        (0..12).for_each(|step| seldom.note(Duration::from_secs(step * 5), 3));
        assert_eq!(often.averages(), seldom.averages());
        let mut late = Load::default();
        late.note(Duration::from_secs(3600), 1);
        assert_eq!(late.hundredths()[0], (1, 0));
        late.note(Duration::MAX - STEP, usize::MAX);
    }
}
