//! Two reports side by side: what has become cheaper or dearer.

use super::report::Report;
use super::series::Series;
use std::fmt;

/// A value that differs by more than the threshold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    test: String,
    counter: String,
    parameter: f64,
    before: f64,
    after: f64,
}

impl Difference {
    /// Per cent; positive: dearer.
    pub(crate) fn change(&self) -> f64 {
        (self.after - self.before) / self.before.abs().max(f64::MIN_POSITIVE) * 100.0
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = format!("{} at {}", self.test, self.parameter);
        write!(
            f,
            "{at:44} {:>10.1} -> {:>10.1} {} ({:+.1} %)",
            self.before,
            self.after,
            self.counter,
            self.change()
        )
    }
}

/// What a comparison found.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Comparison {
    /// Beyond the threshold, largest change first.
    pub(crate) differences: Vec<Difference>,
    /// Tests of the first report that the second lacks, and the other way round.
    pub(crate) missing: Vec<String>,
    pub(crate) new: Vec<String>,
    /// Points compared.
    pub(crate) points: usize,
}

/// Compares the points that both reports have. `threshold` is in per cent.
pub(crate) fn compare(before: &Report, after: &Report, threshold: f64) -> Comparison {
    let mut result = Comparison::default();
    let find = |report: &'_ Report, wanted: &Series| {
        let same = |series: &&Series| series.test == wanted.test && series.counter == wanted.counter;
        report.series.iter().find(same).cloned()
    };
    for old in &before.series {
        let Some(new) = find(after, old) else {
            result.missing.push(format!("{} ({})", old.test, old.counter));
            continue;
        };
        for point in &old.points {
            let Some(now) = new.points.iter().find(|now| now.parameter == point.parameter) else { continue };
            result.points += 1;
            let difference = Difference {
                test: old.test.clone(),
                counter: old.counter.clone(),
                parameter: point.parameter,
                before: point.value,
                after: now.value,
            };
            if difference.change().abs() > threshold {
                result.differences.push(difference);
            }
        }
    }
    for series in after.series.iter().filter(|series| find(before, series).is_none()) {
        result.new.push(format!("{} ({})", series.test, series.counter));
    }
    result.differences.sort_by(|a, b| b.change().abs().total_cmp(&a.change().abs()));
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::series::{collect, measured};

    fn report(values: &[(&str, f64, f64)]) -> Report {
        let measurements: Vec<_> =
            values.iter().map(|&(test, parameter, value)| measured(test, parameter, value)).collect();
        Report { series: collect(&measurements), ..Report::default() }
    }

    #[test]
    fn only_what_exceeds_the_threshold_is_a_difference() {
        let before = report(&[("a", 1.0, 100.0), ("a", 2.0, 200.0), ("gone", 1.0, 1.0)]);
        let after = report(&[("a", 1.0, 102.0), ("a", 2.0, 190.0), ("fresh", 1.0, 1.0)]);
        let result = compare(&before, &after, 2.0);
        assert_eq!(result.points, 2);
        assert_eq!(result.differences.len(), 1);
        assert_eq!(result.differences[0].change(), -5.0);
        assert_eq!(result.missing, ["gone (instructions)"]);
        assert_eq!(result.new, ["fresh (instructions)"]);
    }
}
