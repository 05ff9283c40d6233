//! The report of a run: as JSON, as Markdown, and as a page with charts.

use super::references::{Operation, References};
use super::regions::Region;
use super::series::{Point, Series};
use anyhow::Result;
use pulldown_cmark::{Event, Options, Parser, TagEnd, html};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How the values were counted, as reports say it.
pub(crate) const METHOD: &str = "QEMU TCG, -icount shift=0: instructions from user level to user level";

/// The results of a run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Report {
    pub(crate) method: String,
    /// The compiler and the emulator that were used: figures change with the compiler.
    pub compiler: String,
    pub emulator: String,
    /// The model of caches whose misses are counted, if any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    pub(crate) series: Vec<Series>,
    pub regions: Vec<Region>,
}

impl Report {
    /// Adds the results of the benchmark `name`. A test whose name another benchmark has, too, gets
    /// the benchmark's name added to its own.
    pub(crate) fn add(&mut self, name: &str, other: Report) {
        let same = |ours: &[Series], theirs: &Series| {
            ours.iter().any(|series| series.test == theirs.test && series.counter == theirs.counter)
        };
        let known = self.series.len();
        for mut series in other.series {
            if same(&self.series[..known], &series) {
                series.test = format!("{} ({name})", series.test);
            }
            self.series.push(series);
        }
        let known = self.regions.len();
        for mut region in other.regions {
            if self.regions[..known].iter().any(|ours| ours.name == region.name) {
                region.name = format!("{} ({name})", region.name);
            }
            self.regions.push(region);
        }
        if self.model.is_empty() {
            self.model = other.model;
        }
    }

    /// What a test costs at its smallest parameter by this counter, if that was measured.
    pub(super) fn value(&self, test: &str, counter: &str) -> Option<f64> {
        let is = |series: &&Series| series.test == test && series.counter == counter;
        self.series.iter().find(is).map(|series| series.smallest().value)
    }

    /// The names of the tests, each once.
    pub(super) fn tests(&self) -> Vec<&str> {
        let mut tests: Vec<&str> = self.series.iter().map(|series| series.test.as_str()).collect();
        tests.dedup();
        tests
    }
}

/// A table in Markdown.
pub(super) fn table<R: AsRef<[String]>>(headings: &[&str], rows: impl IntoIterator<Item = R>) -> String {
    let mut table = format!("| {} |\n|{}\n", headings.join(" | "), "---|".repeat(headings.len()));
    for row in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(table, "| {} |", row.as_ref().join(" | "));
    }
    table
}

/// A name without the number before it, by which results are sorted.
pub(super) fn without_place(name: &str) -> &str {
    name.split_once(' ').map_or(name, |(_, name)| name)
}

/// Formats a number: without decimals from 100 on.
pub(crate) fn number(value: f64) -> String {
    if value.fract() != 0.0 && value < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let gap = if digits.len() > 4 { " " } else { "" };
    let mut grouped = if value < 0.0 { "-".to_string() } else { String::new() };
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push_str(gap);
        }
        grouped.push(digit);
    }
    grouped
}

/// A number, or `without` where there is none.
pub(super) fn number_or(value: Option<f64>, without: &str) -> String {
    value.map_or_else(|| without.into(), number)
}

/// Several numbers in one cell.
pub(super) fn numbers(values: impl IntoIterator<Item = f64>) -> String {
    values.into_iter().map(number).collect::<Vec<_>>().join(" / ")
}

/// The table of operations that were measured.
pub(crate) fn operations_table(report: &Report, references: &References) -> String {
    let measured =
        references.operations.iter().map(|operation| (operation, operation.values(&report.series)));
    let measured: Vec<_> = measured.filter(|(_, values)| values.iter().any(Option::is_some)).collect();
    let of_mach = measured.iter().any(|(operation, _)| operation.gnu_mach.is_some());
    let relative = if of_mach { "GNU Mach" } else { "Pistachio" };
    let rows = measured.iter().map(|(operation, values)| {
        let values: Vec<String> = values.iter().map(|value| number_or(*value, "-")).collect();
        let relative = operation.pistachio.or(operation.gnu_mach);
        [operation.name.clone(), values.join(" / "), number_or(operation.target, ""), number_or(relative, "")]
    });
    table(&["operation", "instructions", "to reach", relative], rows)
}

/// What was counted of the marked regions: columns that are zero everywhere are left out.
pub(crate) fn regions_table(report: &Report, references: &References) -> String {
    let counts = |mode: &BTreeMap<String, u64>, counter: &str| mode.get(counter).is_some_and(|&n| n > 0);
    let is_shown = |(counter, _): &&(String, String)| {
        report.regions.iter().any(|region| counts(&region.user, counter) || counts(&region.kernel, counter))
    };
    let columns: Vec<_> = references.counters.iter().filter(is_shown).collect();
    if columns.is_empty() {
        return String::new();
    }
    let names = columns.iter().map(|(_, name)| name.as_str());
    let headings: Vec<&str> = ["operation", "mode"].into_iter().chain(names).collect();
    let modes = |region| [(region, "kernel"), (region, "user")];
    let rows = report.regions.iter().flat_map(modes).map(|(region, mode)| {
        let counts = if mode == "kernel" { &region.kernel } else { &region.user };
        let processor = Some(region.processor).filter(|processor| *processor > 0);
        let processor = processor.map(|processor| format!(" ({processor})")).unwrap_or_default();
        let cells = columns.iter().map(|(counter, _)| number(tenths(region.of(counts, counter))));
        [format!("{}{processor}", region.name), mode.into()].into_iter().chain(cells).collect::<Vec<_>>()
    });
    table(&headings, rows)
}

/// The longest stretches without a look for interrupts in each region, in Markdown, the longest
/// first.
pub(crate) fn stretches_table(report: &Report) -> String {
    let count = |region: &Region, counter: &str| region.kernel.get(counter).copied().unwrap_or(0);
    let mut regions: Vec<_> = report.regions.iter().filter(|region| region.processor == 0).collect();
    regions.sort_by_key(|region| std::cmp::Reverse(count(region, "longest_stretch")));
    let rows = regions.into_iter().map(|region| {
        let cell = |counter| number(count(region, counter) as f64);
        [region.name.clone(), cell("longest_stretch"), cell("stretches"), cell("instructions")]
    });
    table(&["operation", "longest stretch", "stretches", "kernel instructions"], rows)
}

/// Rounds to one decimal. More would mean nothing, because a region contains the loop around its
/// operations and sometimes an interrupt of a timer.
pub(super) fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// How many points of a series a row shows: if it has more, as many, evenly spread.
const SHOWN: usize = 8;

fn shown(points: &[Point]) -> Vec<Point> {
    if points.len() <= SHOWN {
        return points.to_vec();
    }
    (0..SHOWN).map(|index| points[index * (points.len() - 1) / (SHOWN - 1)]).collect()
}

/// How costs grow: a row for each series, with its values along the parameter and the cost of one
/// more.
pub(crate) fn growth_table(report: &Report) -> String {
    let rows = report.series.iter().map(|series| {
        let points = shown(&series.points);
        let [at, values] = [|point: &Point| point.parameter, |point: &Point| point.value]
            .map(|show| numbers(points.iter().map(show)));
        let unit = series.fit.map(|fit| (fit.unit * 100.0).round() / 100.0);
        [series.test.clone(), series.counter.clone(), at, values, number_or(unit, "")]
    });
    table(&["what", "unit", "at", "value", "each further"], rows)
}

/// The table of all series.
fn series_table(report: &Report) -> String {
    let rows = report.series.iter().map(|series| {
        let at = |point: Point| format!("{} at {}", number(point.value), point.parameter);
        let [fixed, unit, residual] = series.fit.map_or_else(Default::default, |fit| {
            [format!("{:.1}", fit.fixed), format!("{:.3}", fit.unit), format!("{:.1}", fit.residual)]
        });
        let repeats = if series.repeats { "yes" } else { "NO" }.into();
        let (smallest, largest) = (at(series.smallest()), at(series.largest()));
        [series.test.clone(), series.counter.clone(), smallest, largest, fixed, unit, residual, repeats]
    });
    table(&["test", "counter", "smallest", "largest", "fixed", "per unit", "residual", "repeats"], rows)
}

/// The lines through our costs with those of a paper.
pub(crate) fn fits_table(report: &Report, references: &References) -> String {
    let rows = references.fits.iter().filter_map(|unit| {
        let fit = unit.fit(&report.series)?;
        let (ours, residual) =
            (format!("{:.1} + {:.2} n", fit.fixed, fit.unit), format!("{:.1}", fit.residual));
        let [pistachio, pork] = [&unit.pistachio, &unit.pork].map(|line| line.clone().unwrap_or_default());
        Some([unit.name.clone(), ours, residual, pistachio, pork])
    });
    let headings = ["cost of n, in instructions", "ours", "residual", "Pistachio, cycles", "pork, cycles"];
    table(&headings, rows)
}

/// The figures of the papers, with what we measure that is most like them.
pub(crate) fn papers_table(report: &Report, references: &References) -> String {
    let ours = |operation: &Operation| {
        let values: Option<Vec<f64>> = operation.values(&report.series).into_iter().collect();
        let values = numbers(values?.into_iter().map(tenths));
        Some(format!("{}: {values} {}", operation.name, operation.unit()))
    };
    let rows = references.papers.iter().map(|paper| {
        let page = paper.page.map(|page| format!(", page {page}")).unwrap_or_default();
        let note = paper.erratum.as_ref().map(|erratum| format!(" (erratum: {erratum})")).unwrap_or_default();
        let ours: Vec<String> = paper.ours.iter().filter_map(ours).collect();
        let [figure, value, hardware] = [&paper.figure, &paper.value, &paper.hardware].map(Clone::clone);
        [figure, value, hardware, format!("{}{page}{note}", paper.source), ours.join("; ")]
    });
    table(&["figure", "value", "hardware", "where", "ours"], rows)
}

/// A note on the meaning of the counters in the region table.
const REGIONS_NOTE: &str = "Per operation, but cache lines (of 64 bytes), which operations share: those are of the whole \
    region. Counted by the plugin for kernel and user apart; misses are those of its model.";
/// What the lines of the papers are.
const FITS_NOTE: &str = "Lines by least squares, with the largest distance of a point from ours. Those of Pistachio and \
    pork are pork's (slides, Performance Tuning Opportunities?), on an Atom N270 with 1.6 GHz.";
/// What the figures of the papers mean.
const PAPERS_NOTE: &str =
    "Other hardware, other units, often another operation: for orientation only, and never a ratio.";

/// The whole report as Markdown.
pub(crate) fn markdown(report: &Report, references: &References) -> String {
    let model = if report.model.is_empty() { String::new() } else { format!(" Model: {}.", report.model) };
    let mut text = format!(
        "# Macadamia: benchmarks\n\n{}. Compiler: `{}`. Emulator: `{}`.\n",
        report.method, report.compiler, report.emulator
    );
    for (title, note, table) in [
        ("Operations", "", operations_table(report, references)),
        ("What instructions hide", &*format!("{REGIONS_NOTE}{model}"), regions_table(report, references)),
        ("Unit costs", FITS_NOTE, fits_table(report, references)),
        ("The papers", PAPERS_NOTE, papers_table(report, references)),
        ("All series", "Each with the line through it, by least squares.", series_table(report)),
    ] {
        if !table.is_empty() {
            let _ = write!(text, "\n## {title}\n\n{note}\n\n{table}");
        }
    }
    text
}

/// The whole report as a page that needs nothing else: Markdown, and charts after the first table.
pub(crate) fn html(report: &Report, references: &References) -> Result<String> {
    let mut page = include_str!("report.html").to_string();
    let markdown = markdown(report, references);
    let mut charts = String::new();
    for chart in &references.charts {
        if let Some(picture) = chart.draw(&report.series)? {
            let _ = write!(charts, "<h2>{}</h2>\n{picture}", chart.title);
        }
    }
    let mut events: Vec<Event<'_>> = Parser::new_ext(&markdown, Options::ENABLE_TABLES).collect();
    let first_table = events.iter().position(|event| *event == Event::End(TagEnd::Table));
    events.insert(first_table.map_or(0, |end| end + 1), Event::Html(charts.into()));
    html::push_html(&mut page, events.into_iter());
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::references;
    use crate::bench::regions::is_shared;
    use crate::bench::series::{collect, measured};

    fn report() -> Report {
        let series = collect(&[
            measured("thread-switch-nil", 32.0, 3200.0),
            measured("thread-switch-nil", 64.0, 6400.0),
            measured("thread-switch-nil", 128.0, 12800.0),
            measured("ipc-one-way-across-spaces", 0.0, 100.0),
            measured("ipc-one-way-across-spaces", 63.0, 163.0),
        ]);
        let counts =
            |pairs: &[(&str, u64)]| pairs.iter().map(|&(name, count)| (name.into(), count)).collect();
        let region = Region {
            name: "thread-switch-nil".into(),
            processor: 0,
            operations: 64,
            user: counts(&[("instructions", 640)]),
            kernel: counts(&[("instructions", 6400), ("swapgs", 128), ("data_lines", 9)]),
        };
        Report { method: METHOD.into(), series, regions: vec![region], ..Report::default() }
    }

    #[test]
    fn tables_have_the_values_beside_target_and_relative() {
        let table = operations_table(&report(), &references::read().unwrap());
        assert!(table.contains("| ThreadSwitch(nil) | 100 | 60 | 122 |"), "{table}");
        assert!(table.contains("| 100 / - / 163 |"), "{table}");
    }

    #[test]
    fn regions_are_per_operation_but_for_shared_lines() {
        let table = regions_table(&report(), &references::read().unwrap());
        assert!(table.contains("| thread-switch-nil | kernel | 100 | 2 | 9 |"), "{table}");
        assert!(table.contains("| thread-switch-nil | user | 10 | 0 | 0 |"), "{table}");
        assert!(is_shared("data_lines") && !is_shared("swapgs"));
    }

    #[test]
    fn the_papers_stand_beside_ours() {
        let table = papers_table(&report(), &references::read().unwrap());
        let find = |text: &str| table.lines().find(|row| row.contains(text)).unwrap();
        assert!(find("1240.67").contains("Atom N270") && find("1240.67").ends_with("|  |"), "not measured");
        assert!(find("null call").ends_with("ThreadSwitch(nil): 100 instructions |"), "{table}");
        assert!(find("mach_msg(0)").contains("tables 6.1 and 6.2, page 31"), "{table}");
        let words =
            |words: u8| measured("ipc-bare-across-spaces", words.into(), 10.0 + 2.0 * f64::from(words));
        let bare = Report { series: collect(&(0..=63).map(words).collect::<Vec<_>>()), ..Report::default() };
        let table = fits_table(&bare, &references::read().unwrap());
        let row = table.lines().find(|row| row.contains("two spaces")).unwrap();
        assert!(row.ends_with("| 10.0 + 2.00 n | 0.0 | 1274.66 + 2.27 n | 1512.57 + 6 n |"), "{row}");
    }

    #[test]
    fn two_benchmarks_with_the_same_tests_stay_apart() {
        let mut whole = Report::default();
        whole.add("kernel", report());
        whole.add("uniprocessor", report());
        assert_eq!((whole.series.len(), whole.regions.len()), (4, 2));
        assert_eq!(whole.series[2].test, "ipc-one-way-across-spaces (uniprocessor)");
        assert_eq!(whole.regions[1].name, "thread-switch-nil (uniprocessor)");
    }

    #[test]
    fn the_page_is_complete_and_escapes_what_it_shows() {
        let mut report = report();
        report.compiler = "<b>".into();
        let page = html(&report, &references::read().unwrap()).unwrap();
        assert!(page.contains("<svg") && page.starts_with("<!doctype html>\n"), "{page}");
        assert!(
            page.contains("Compiler: <code>&lt;b&gt;</code>") && page.contains("<td>ThreadSwitch(nil)</td>")
        );
    }

    #[test]
    fn growth_has_every_point_and_the_slope() {
        let table = growth_table(&Report {
            series: collect(&[measured("t", 1.0, 12.0), measured("t", 2.0, 14.0), measured("t", 3.0, 16.0)]),
            ..Report::default()
        });
        assert!(table.contains("| t | instructions | 1 / 2 / 3 | 12 / 14 / 16 | 2 |"), "{table}");
        let many: Vec<_> = (0..=63).map(|words| measured("t", words.into(), 5.0)).collect();
        let table = growth_table(&Report { series: collect(&many), ..Report::default() });
        assert!(table.contains("| 0 / 9 / 18 / 27 / 36 / 45 / 54 / 63 |"), "{table}");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(number(14612.4), "14 612");
        assert_eq!(number(1335.0), "1335");
        assert_eq!(number(80.25), "80.2");
    }
}
