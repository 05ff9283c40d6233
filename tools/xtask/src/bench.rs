//! `./mac bench`: boots the benchmarks under instruction counting, collects what they print and fits unit costs.

use crate::suites::{self, Overrides};
use crate::test::{in_parallel, show};
use crate::{build, tree};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Options of `./mac bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only benchmarks whose name or module contains this
    filter: Option<String>,
}

/// One measurement, as a benchmark prints it.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Measurement {
    /// What was measured.
    test: String,
    /// What was varied.
    parameter: f64,
    /// The unit of the value.
    counter: String,
    /// The whole cost at that parameter.
    value: f64,
}

/// All measurements of one test by one counter.
#[derive(Debug, Serialize, PartialEq)]
struct Row {
    test: String,
    counter: String,
    /// How many measurements there are.
    measurements: usize,
    /// Whether all repetitions at each parameter agree.
    repeats: bool,
    smallest: Point,
    largest: Point,
    /// The unit cost, if there are three parameters or more.
    fit: Option<Fit>,
}

/// A parameter and the mean cost there.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
struct Point {
    parameter: f64,
    value: f64,
}

/// `value = fixed + unit * parameter`, by least squares.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
struct Fit {
    fixed: f64,
    unit: f64,
    /// The largest distance of a point from the line.
    residual: f64,
}

/// The published result.
#[derive(Serialize)]
struct Report {
    /// How the values were counted.
    method: &'static str,
    rows: Vec<Row>,
    measurements: Vec<Measurement>,
}

/// Runs the benchmarks, prints the table and writes the report; publishes nothing if anything went wrong.
pub(crate) fn run(options: &Options) -> Result<()> {
    build::everything(&build::Options::default())?;
    let mut runs = Vec::new();
    for benchmark in suites::read(suites::BENCHMARKS)? {
        if options.filter.as_deref().is_none_or(|filter| benchmark.matches(filter)) {
            let chosen = benchmark.runs(&Overrides::default());
            runs.extend(
                chosen.map_err(|excluded| anyhow::anyhow!("{}: {}", excluded.name, excluded.reason))?,
            );
        }
    }
    if runs.is_empty() {
        bail!("no benchmark matches {:?}", options.filter.as_deref().unwrap_or_default());
    }
    let mut measurements = Vec::new();
    let mut disturbed = Vec::new();
    in_parallel(runs, |run, result| match result {
        Ok(verdict) => {
            show(run, &verdict);
            if verdict.failed() > 0 {
                disturbed.push(format!("{}: a test failed", run.name));
            }
            for record in &verdict.records {
                match Measurement::deserialize(record) {
                    Ok(measurement) => measurements.push(measurement),
                    Err(error) => {
                        disturbed.push(format!("{}: {record} is no measurement: {error}", run.name))
                    }
                }
            }
        }
        Err(error) => disturbed.push(format!("{}: {error:#}", run.name)),
    });
    if !disturbed.is_empty() {
        bail!("nothing is published, because the run was disturbed:\n  {}", disturbed.join("\n  "));
    }
    let report = Report { method: "QEMU TCG, -icount shift=0", rows: rows(&measurements), measurements };
    print_table(&report.rows);
    let path = tree::target().join("bench/report.json");
    build::write_if_changed(&path, serde_json::to_string_pretty(&report)?.as_bytes())
        .context("publishing the report")?;
    println!("{}", path.display());
    Ok(())
}

fn rows(measurements: &[Measurement]) -> Vec<Row> {
    let mut series: BTreeMap<(&str, &str), Vec<(f64, f64)>> = BTreeMap::new();
    for measurement in measurements {
        let key = (measurement.test.as_str(), measurement.counter.as_str());
        series.entry(key).or_default().push((measurement.parameter, measurement.value));
    }
    let row = |((test, counter), mut values): ((&str, &str), Vec<(f64, f64)>)| {
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let groups: Vec<&[(f64, f64)]> = values.chunk_by(|a, b| a.0 == b.0).collect();
        let mean = |group: &&[(f64, f64)]| Point {
            parameter: group[0].0,
            value: group.iter().map(|(_, value)| value).sum::<f64>() / group.len() as f64,
        };
        let points: Vec<Point> = groups.iter().map(mean).collect();
        Row {
            test: test.into(),
            counter: counter.into(),
            measurements: values.len(),
            repeats: groups.iter().all(|group| group.iter().all(|(_, value)| *value == group[0].1)),
            smallest: points[0],
            largest: points[points.len() - 1],
            fit: fit(&points),
        }
    };
    series.into_iter().map(row).collect()
}

/// The least-squares line through at least three points.
fn fit(points: &[Point]) -> Option<Fit> {
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

fn print_table(rows: &[Row]) {
    println!(
        "{:32} {:14} {:>22} {:>22} {:>12} {:>12} {:>9} repeats",
        "test", "counter", "smallest", "largest", "fixed", "unit", "residual"
    );
    for row in rows {
        let at = |point: Point| format!("{} at {}", point.value, point.parameter);
        let (fixed, unit, residual) = match row.fit {
            Some(fit) => {
                (format!("{:.1}", fit.fixed), format!("{:.3}", fit.unit), format!("{:.1}", fit.residual))
            }
            None => Default::default(),
        };
        println!(
            "{:32} {:14} {:>22} {:>22} {fixed:>12} {unit:>12} {residual:>9} {}",
            row.test,
            row.counter,
            at(row.smallest),
            at(row.largest),
            if row.repeats {
                format!("yes ({})", row.measurements)
            } else {
                format!("NO ({})", row.measurements)
            }
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(parameter: f64, value: f64) -> Measurement {
        Measurement { test: "t".into(), parameter, counter: "c".into(), value }
    }

    #[test]
    fn a_straight_line_is_fitted_exactly() {
        let rows =
            rows(&[measured(0.0, 5.0), measured(10.0, 25.0), measured(10.0, 25.0), measured(20.0, 45.0)]);
        assert_eq!(rows.len(), 1);
        assert!(rows[0].repeats);
        assert_eq!(rows[0].measurements, 4);
        assert_eq!(rows[0].fit, Some(Fit { fixed: 5.0, unit: 2.0, residual: 0.0 }));
        assert_eq!(rows[0].largest, Point { parameter: 20.0, value: 45.0 });
    }

    #[test]
    fn a_repetition_that_differs_is_noticed() {
        assert!(!rows(&[measured(1.0, 5.0), measured(1.0, 6.0)])[0].repeats);
    }

    #[test]
    fn two_points_make_no_fit() {
        assert_eq!(rows(&[measured(1.0, 5.0), measured(2.0, 6.0)])[0].fit, None);
    }
}
