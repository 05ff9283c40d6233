//! Series: the measurements of a test at several values of its parameter, and the linear function
//! that fits them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One measurement, as a benchmark prints it.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The name of the test.
    pub test: String,
    /// The value of the parameter that was varied.
    pub(crate) parameter: f64,
    /// The unit of the value.
    pub(crate) counter: String,
    /// The cost of all operations at that parameter.
    pub value: f64,
}

impl Measurement {
    /// A measurement for which nothing was varied.
    pub(crate) fn single(test: String, counter: &str, value: f64) -> Measurement {
        Measurement { test, parameter: 0.0, counter: counter.into(), value }
    }
}

/// All measurements of one test with one counter.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub(crate) struct Series {
    pub test: String,
    pub(crate) counter: String,
    /// How many measurements there are.
    pub(crate) measurements: usize,
    /// Whether all repetitions at each parameter agree.
    pub repeats: bool,
    /// The mean cost at each parameter, ascending; at least one.
    pub points: Vec<Point>,
    /// The unit cost, if there are three parameters or more.
    pub fit: Option<Fit>,
}

/// A value of the parameter and the mean cost there.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
pub(crate) struct Point {
    pub(crate) parameter: f64,
    pub value: f64,
}

/// The function `value = fixed + unit * parameter` that fits a series, by least squares.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
pub(crate) struct Fit {
    pub fixed: f64,
    pub unit: f64,
    /// The largest distance of a point from the function.
    pub(crate) residual: f64,
}

impl Series {
    /// The cost at the smallest parameter.
    pub(crate) fn smallest(&self) -> Point {
        self.points[0]
    }

    /// The cost at the largest parameter.
    pub(crate) fn largest(&self) -> Point {
        self.points[self.points.len() - 1]
    }
}

/// Sorts measurements into series, by test and counter.
pub(crate) fn collect(measurements: &[Measurement]) -> Vec<Series> {
    let mut series: BTreeMap<(&str, &str), Vec<(f64, f64)>> = BTreeMap::new();
    for measurement in measurements {
        let key = (measurement.test.as_str(), measurement.counter.as_str());
        series.entry(key).or_default().push((measurement.parameter, measurement.value));
    }
    let one = |((test, counter), mut values): ((&str, &str), Vec<(f64, f64)>)| {
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let groups: Vec<&[(f64, f64)]> = values.chunk_by(|a, b| a.0 == b.0).collect();
        let mean = |group: &&[(f64, f64)]| Point {
            parameter: group[0].0,
            value: group.iter().map(|(_, value)| value).sum::<f64>() / group.len() as f64,
        };
        let points: Vec<Point> = groups.iter().map(mean).collect();
        Series {
            test: test.into(),
            counter: counter.into(),
            measurements: values.len(),
            repeats: groups.iter().all(|group| group.iter().all(|(_, value)| *value == group[0].1)),
            fit: fit(&points),
            points,
        }
    };
    series.into_iter().map(one).collect()
}

/// Fits a linear function to the points by least squares, if there are at least three.
pub(super) fn fit(points: &[Point]) -> Option<Fit> {
    if points.len() < 3 {
        return None;
    }
    let count = points.len() as f64;
    let mean_x = points.iter().map(|point| point.parameter).sum::<f64>() / count;
    let mean_y = points.iter().map(|point| point.value).sum::<f64>() / count;
    let spread = points.iter().map(|point| (point.parameter - mean_x).powi(2)).sum::<f64>();
    let product = points.iter().map(|point| (point.parameter - mean_x) * (point.value - mean_y)).sum::<f64>();
    let unit = product / spread;
    let fixed = mean_y - unit * mean_x;
    let distance = |point: &Point| (point.value - fixed - unit * point.parameter).abs();
    Some(Fit { fixed, unit, residual: points.iter().map(distance).fold(0.0, f64::max) })
}

/// A measurement in instructions, for tests.
#[cfg(test)]
pub(crate) fn measured(test: &str, parameter: f64, value: f64) -> Measurement {
    Measurement { test: test.into(), parameter, counter: "instructions".into(), value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(parameter: f64, value: f64) -> Measurement {
        super::measured("t", parameter, value)
    }

    #[test]
    fn a_straight_line_is_fitted_exactly() {
        let all = [measured(0.0, 5.0), measured(10.0, 25.0), measured(10.0, 25.0), measured(20.0, 45.0)];
        let series = collect(&all);
        assert_eq!(series.len(), 1);
        assert!(series[0].repeats);
        assert_eq!(series[0].measurements, 4);
        assert_eq!(series[0].fit, Some(Fit { fixed: 5.0, unit: 2.0, residual: 0.0 }));
        assert_eq!(series[0].largest(), Point { parameter: 20.0, value: 45.0 });
    }

    #[test]
    fn a_repetition_that_differs_is_noticed() {
        assert!(!collect(&[measured(1.0, 5.0), measured(1.0, 6.0)])[0].repeats);
    }

    #[test]
    fn two_points_make_no_fit() {
        assert_eq!(collect(&[measured(1.0, 5.0), measured(2.0, 6.0)])[0].fit, None);
    }
}
