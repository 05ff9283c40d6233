//! The figures with which results are compared: `bench/references.toml`.

use super::series::{self, Fit, Point, Series};
use crate::chart::{self, Line};
use anyhow::{Context, Result};
use mac_build::tree;
use serde::Deserialize;
use std::collections::BTreeMap;

const FILE: &str = "bench/references.toml";

/// The content of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct References {
    /// The counters of the regions, in the order of the table's columns, with their headings.
    #[serde(default)]
    pub counters: Vec<(String, String)>,
    #[serde(default, rename = "operation")]
    pub(crate) operations: Vec<Operation>,
    #[serde(default, rename = "chart")]
    pub(crate) charts: Vec<Chart>,
    #[serde(default, rename = "budget")]
    pub budgets: Vec<Budget>,
    #[serde(default, rename = "fit")]
    pub fits: Vec<UnitCost>,
    #[serde(default, rename = "paper")]
    pub(crate) papers: Vec<Paper>,
    #[serde(default)]
    pub summary: Vec<Summary>,
}

/// A row of the README's table: its text, and where the figures come from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Summary {
    pub words: String,
    /// Name and kind of a table of the results.
    pub table: String,
    /// The row's first cell.
    pub row: String,
    /// The columns of our figure and of the other system's.
    pub columns: [usize; 2],
    /// The other system.
    pub other: String,
}

/// A row of the table of operations.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Operation {
    pub name: String,
    /// The benchmark's names of the tests, one for each value.
    tests: Vec<String>,
    /// The parameter at which the value is taken, for tests whose parameter is not a number of
    /// rounds.
    #[serde(default)]
    at: Vec<f64>,
    /// If given, each value is the cost of one more of the parameter, between this parameter and
    /// `at`.
    #[serde(default)]
    from: Vec<f64>,
    /// The unit of the values.
    #[serde(default = "instructions")]
    counter: String,
    /// The target: what the operation should cost at most.
    pub target: Option<f64>,
    /// Whether the operation is known to cost more than the target.
    #[serde(default)]
    pub(crate) missed: bool,
    /// The cost with L4Ka::Pistachio's AMD64 kernel and its fast path, measured in the same
    /// emulator by the same method.
    pub(crate) pistachio: Option<f64>,
    /// How much more the operation costs with Pistachio's multiprocessor kernel than with its
    /// uniprocessor kernel, in the same emulator.
    pub(crate) pistachio_processors: Option<f64>,
    /// How much more the operation costs with seL4's multiprocessor kernel than with its
    /// uniprocessor kernel.
    pub(crate) sel4_processors: Option<f64>,
    /// The cost with GNU Mach, in the same emulator.
    pub(crate) gnu_mach: Option<f64>,
}

fn instructions() -> String {
    "instructions".into()
}

/// A chart of the report.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chart {
    pub title: String,
    pub across: String,
    /// The unit of the values.
    #[serde(default = "instructions")]
    pub(crate) counter: String,
    #[serde(default)]
    pub(crate) axes: chart::Axes,
    pub tests: Vec<String>,
    /// The file of the chart in the book, if the book has it.
    pub(crate) picture: Option<String>,
}

impl Chart {
    /// Draws the chart; `None` if none of its tests was measured.
    pub(crate) fn draw(&self, all: &[Series]) -> Result<Option<String>> {
        let series =
            |test: &String| all.iter().find(|series| series.test == *test && series.counter == self.counter);
        let series = self.tests.iter().filter_map(series).filter(|series| series.points.len() > 1);
        let lines: Vec<Line<'_>> =
            series.map(|series| Line { name: &series.test, points: &series.points }).collect();
        if lines.is_empty() {
            return Ok(None);
        }
        chart::lines(&lines, self.axes, &self.across, &self.counter).map(Some)
    }
}

/// Budgets: how many events of some kinds, which an instruction count hides, each operation of some
/// regions may cause, kernel and user together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Budget {
    /// The benchmark that must have all the regions.
    pub benchmark: String,
    pub regions: Vec<String>,
    pub(crate) at_most: BTreeMap<String, f64>,
}

/// A row of the table of unit costs: the linear function that fits the costs of a test, with those
/// of a paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnitCost {
    pub name: String,
    test: String,
    /// The range of the parameter to which the function is fitted.
    from: f64,
    to: f64,
    /// The linear functions of the paper, if it has them.
    pub(crate) pistachio: Option<String>,
    pub(crate) pork: Option<String>,
}

impl UnitCost {
    /// The linear function that fits our measurements.
    pub(crate) fn fit(&self, all: &[Series]) -> Option<Fit> {
        let series =
            all.iter().find(|series| series.test == self.test && series.counter == instructions())?;
        let within = |point: &&Point| (self.from..=self.to).contains(&point.parameter);
        series::fit(&series.points.iter().filter(within).copied().collect::<Vec<_>>())
    }
}

/// A figure of a paper, as the paper has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paper {
    pub figure: String,
    pub value: String,
    pub hardware: String,
    pub source: String,
    /// The page of the paper, if its text has page numbers.
    pub page: Option<u32>,
    pub(crate) erratum: Option<String>,
    /// Our most similar measurement.
    #[serde(default)]
    pub ours: Vec<Operation>,
}

impl Operation {
    /// The counter of the values.
    pub(crate) fn counter(&self) -> &str {
        &self.counter
    }

    /// The unit of the values, as it is printed.
    pub(crate) fn unit(&self) -> &str {
        match self.counter.as_str() {
            "exception" | "bounce" | "linux" => "instructions",
            counter => counter,
        }
    }

    /// The values in `series`; `None` for a test that was not measured.
    pub(crate) fn values(&self, series: &[Series]) -> Vec<Option<f64>> {
        let value = |(index, test): (usize, &String)| {
            let series =
                series.iter().find(|series| series.test == *test && series.counter == self.counter)?;
            let value_at = |at: f64| Some(series.points.iter().find(|point| point.parameter == at)?.value);
            Some(match (self.at.get(index), self.from.get(index)) {
                (Some(&at), Some(&from)) => (value_at(at)? - value_at(from)?) / (at - from),
                (Some(&at), None) => value_at(at)?,
                // Either the cost of an operation at a parameter of its own, or the cost per round.
                (None, _) => series.fit.map_or(series.smallest().value, |fit| fit.unit),
            })
        };
        self.tests.iter().enumerate().map(value).collect()
    }
}

/// Reads `bench/references.toml`.
pub(crate) fn read() -> Result<References> {
    let path = tree::root().join(FILE);
    toml::from_str(&tree::read(&path)?).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::series::{collect, measured};

    #[test]
    fn the_file_of_the_tree_is_well_formed() {
        let references = read().unwrap();
        assert!(references.operations.len() > 10 && references.papers.len() > 10);
        let ours = references.papers.iter().flat_map(|paper| &paper.ours);
        for operation in references.operations.iter().chain(ours) {
            assert!(
                operation.at.is_empty() || operation.at.len() == operation.tests.len(),
                "{}",
                operation.name
            );
            assert!(
                operation.from.is_empty() || operation.from.len() == operation.at.len(),
                "{}",
                operation.name
            );
        }
    }

    #[test]
    fn a_unit_cost_is_that_of_its_range() {
        let unit: UnitCost =
            toml::from_str("name = \"x\"\ntest = \"t\"\nfrom = 1\nto = 3\npork = \"1 + n\"").unwrap();
        let values = [(0.0, 90.0), (1.0, 10.0), (2.0, 12.0), (3.0, 14.0), (4.0, 90.0)];
        let all = collect(&values.map(|(parameter, value)| measured("t", parameter, value)));
        assert_eq!(unit.fit(&all), Some(Fit { fixed: 8.0, unit: 2.0, residual: 0.0 }));
    }

    #[test]
    fn a_value_is_the_cost_per_round_or_at_a_parameter() {
        let series = collect(&[
            measured("rounds", 1.0, 30.0),
            measured("rounds", 2.0, 50.0),
            measured("rounds", 3.0, 70.0),
            measured("words", 0.0, 7.0),
            measured("words", 9.0, 8.0),
        ]);
        let mut operation: Operation = toml::from_str("name = \"x\"\ntests = [\"rounds\"]").unwrap();
        assert_eq!(operation.values(&series), [Some(20.0)]);
        (operation.tests, operation.at) = (vec!["words".into(), "words".into()], vec![9.0, 1.0]);
        assert_eq!(operation.values(&series), [Some(8.0), None]);
        (operation.at, operation.from) = (vec![9.0, 9.0], vec![0.0, 1.0]);
        assert_eq!(operation.values(&series), [Some(1.0 / 9.0), None]);
    }
}
