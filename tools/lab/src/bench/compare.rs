//! Compares two reports: what has become cheaper or more expensive.

use super::regions::Region;
use super::report::Report;
use std::collections::BTreeMap;
use std::fmt;

/// By how much a count of a region may differ, whatever the threshold: by a few of a timer's ticks,
/// which count up to 4 each in every column but that of instructions, or by so much per operation.
/// Interrupts per operation may, too, where they are a result of their own.
const TICKS: f64 = 12.0;
const PER_OPERATION: f64 = 0.05;

/// A value that differs by more than the threshold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    /// The test and its parameter, or the region, and the mode (kernel or user).
    what: String,
    counter: String,
    before: f64,
    after: f64,
}

impl Difference {
    /// The difference in per cent; positive if the cost has grown, infinite if it was 0.
    pub(crate) fn change(&self) -> f64 {
        (self.after - self.before) / self.before.abs() * 100.0
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n    {} {:.1} -> {:.1}", self.what, self.counter, self.before, self.after)?;
        if self.before == 0.0 { Ok(()) } else { write!(f, " ({:+.1} %)", self.change()) }
    }
}

/// The result of a comparison.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Comparison {
    /// The values that differ by more than the threshold, largest difference first.
    pub(crate) differences: Vec<Difference>,
    /// Tests, values of their parameters and regions that only the first report has (`missing`),
    /// and that only the second has (`new`).
    pub missing: Vec<String>,
    pub new: Vec<String>,
    /// How many values were compared.
    pub points: usize,
}

/// Values by (test at a parameter, or region; counter), each with the difference that is always
/// allowed.
type Values = BTreeMap<(String, String), (f64, f64)>;

/// The values of a report. Of the counters of regions only those that are `wanted`.
fn values(report: &Report, wanted: &impl Fn(&Region, &str) -> bool) -> BTreeMap<String, Values> {
    let mut all: BTreeMap<String, Values> = BTreeMap::new();
    for series in &report.series {
        let points = all.entry(format!("{} ({})", series.test, series.counter)).or_default();
        for point in &series.points {
            let what = format!("{} at {}", series.test, point.parameter);
            let slack = if series.counter == "interrupts" { PER_OPERATION } else { 0.0 };
            points.insert((what, series.counter.clone()), (point.value, slack));
        }
    }
    for region in &report.regions {
        let counts = all.entry(format!("{} (region)", region.name)).or_default();
        for (mode, counters) in [("kernel", &region.kernel), ("user", &region.user)] {
            let what = format!("{}, {mode} of processor {}", region.name, region.processor);
            let slack = (TICKS / region.operations as f64).max(PER_OPERATION);
            for counter in counters.keys().filter(|counter| wanted(region, counter)) {
                let value = region.of(counters, counter);
                counts.insert((what.clone(), counter.clone()), (value, slack));
            }
        }
    }
    all
}

/// Compares what both reports have, of regions the counters that are `wanted`. `threshold` is in
/// per cent. A counter that a region of one report lacks was zero there.
pub(crate) fn compare(
    before: &Report,
    after: &Report,
    threshold: f64,
    wanted: impl Fn(&Region, &str) -> bool,
) -> Comparison {
    let mut result = Comparison::default();
    let (before, mut after) = (values(before, &wanted), values(after, &wanted));
    for (name, old) in before {
        let Some(new) = after.remove(&name) else {
            result.missing.push(name);
            continue;
        };
        let is_region = name.ends_with("(region)");
        let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
        for key in keys {
            let (was, is) = (old.get(key), new.get(key));
            // A test may have another range of parameters.
            let zero = was.or(is).filter(|_| is_region).map(|(_, slack)| (0.0, *slack));
            let (Some((was, slack)), Some((is, _))) = (was.copied().or(zero), is.copied().or(zero)) else {
                let other = if is.is_none() { &mut result.missing } else { &mut result.new };
                other.push(format!("{} ({})", key.0, key.1));
                continue;
            };
            result.points += 1;
            let (what, counter) = key.clone();
            let difference = Difference { what, counter, before: was, after: is };
            if (is - was).abs() > slack && difference.change().abs() > threshold {
                result.differences.push(difference);
            }
        }
    }
    result.new.extend(after.into_keys());
    result.differences.sort_by(|a, b| b.change().abs().total_cmp(&a.change().abs()));
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::series::{Measurement, collect, measured};

    fn report(values: &[(&str, f64, f64)]) -> Report {
        let measurements: Vec<_> =
            values.iter().map(|&(test, parameter, value)| measured(test, parameter, value)).collect();
        Report { series: collect(&measurements), ..Report::default() }
    }

    fn region(kernel: &[(&str, u64)]) -> Report {
        let kernel = kernel.iter().map(|&(counter, count)| (counter.to_string(), count)).collect();
        let (name, user) = ("call".to_string(), BTreeMap::new());
        let region = Region { name, processor: 0, operations: 100, user, kernel };
        Report { regions: vec![region], ..Report::default() }
    }

    #[test]
    fn only_what_exceeds_the_threshold_is_a_difference() {
        let before = report(&[("a", 1.0, 100.0), ("a", 2.0, 200.0), ("a", 3.0, 1.0), ("gone", 1.0, 1.0)]);
        let after = report(&[("a", 1.0, 102.0), ("a", 2.0, 190.0), ("fresh", 1.0, 1.0)]);
        let result = compare(&before, &after, 2.0, |_, _| true);
        assert_eq!(result.points, 2);
        assert_eq!(result.differences.len(), 1);
        assert_eq!(result.differences[0].change(), -5.0);
        assert_eq!(result.missing, ["a at 3 (instructions)", "gone (instructions)"]);
        assert_eq!(result.new, ["fresh (instructions)"]);
    }

    #[test]
    fn another_column_that_rises_is_a_difference() {
        let before = region(&[("instructions", 5000), ("swapgs", 200), ("l1d_misses", 10)]);
        let after = region(&[("instructions", 4900), ("swapgs", 200), ("locked", 100), ("l1d_misses", 90)]);
        let result = compare(&before, &after, 3.0, |_, counter| counter != "l1d_misses");
        let shown: Vec<_> =
            result.differences.iter().map(|d| (d.counter.as_str(), d.before, d.after)).collect();
        assert_eq!(shown, [("locked", 0.0, 1.0)]);
        assert_eq!(result.differences[0].change(), f64::INFINITY);
        assert!(!result.differences[0].to_string().contains('%'));
        assert_eq!(result.points, 3);
        assert_eq!(compare(&before, &after, 3.0, |_, _| true).differences.len(), 2);
    }

    #[test]
    fn a_tick_among_many_messages_is_none() {
        let counted = |value| {
            let interrupts = Measurement { counter: "interrupts".into(), ..measured("one way", 48.0, value) };
            Report { series: collect(&[interrupts]), ..Report::default() }
        };
        assert_eq!(compare(&counted(1.0 / 128.0), &counted(2.0 / 128.0), 2.0, |_, _| true).differences, []);
        assert_eq!(compare(&counted(3.0), &counted(4.0), 2.0, |_, _| true).differences.len(), 1);
    }

    #[test]
    fn a_tick_in_one_of_two_regions_is_none() {
        let (before, after) = (region(&[("rdtsc", 0)]), region(&[("rdtsc", 9), ("iret", 3)]));
        assert_eq!(compare(&before, &after, 2.0, |_, _| true).differences, []);
    }
}
