//! The report of a run: as JSON, as Markdown, and as a page with charts.

use super::references::{Operation, References};
use super::regions::Region;
use super::series::{Point, Series};
use crate::chart::escape;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// How the values were counted.
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
}

/// The columns of the table of regions: counter, heading.
const COLUMNS: [(&str, &str); 30] = [
    ("instructions", "instructions"),
    ("swapgs", "SWAPGS"),
    ("cr3_load", "CR3 load"),
    ("control_register", "CR0, CR4"),
    ("wrmsr", "WRMSR"),
    ("rdmsr", "RDMSR"),
    ("other_serialising", "selectors etc."),
    ("fence", "fences"),
    ("fs_base", "FS base"),
    ("gs_base", "GS base"),
    ("syscall", "SYSCALL"),
    ("sysret", "SYSRET"),
    ("iret", "IRET"),
    ("save_state", "XSAVE"),
    ("restore_state", "XRSTOR"),
    ("invalidate", "INVLPG"),
    ("locked", "locked"),
    ("rdtsc", "RDTSC"),
    ("port_io", "ports"),
    ("device_accesses", "device"),
    ("interrupts_sent", "IPIs"),
    ("bulk_bytes", "bulk bytes"),
    ("instruction_lines", "I lines"),
    ("data_lines", "D lines"),
    ("data_pages", "D pages"),
    ("l1i_misses", "L1I misses"),
    ("l1d_misses", "L1D misses"),
    ("l2_misses", "L2 misses"),
    ("itlb_misses", "ITLB misses"),
    ("dtlb_misses", "DTLB misses"),
];

/// A number as it is printed: without decimals from 100 on.
pub(crate) fn number(value: f64) -> String {
    if value.fract() == 0.0 || value >= 100.0 {
        let digits = format!("{:.0}", value.abs());
        let groups: Vec<&str> = digits
            .as_bytes()
            .rchunks(3)
            .rev()
            .map(|group| std::str::from_utf8(group).unwrap_or(""))
            .collect();
        format!(
            "{}{}",
            if value < 0.0 { "-" } else { "" },
            groups.join(if digits.len() > 4 { " " } else { "" })
        )
    } else {
        format!("{value:.1}")
    }
}

fn optional(value: Option<f64>) -> String {
    value.map(number).unwrap_or_default()
}

/// The rows of the table of operations that were measured: name, values, target, Pistachio's
/// figure.
fn operations<'a>(
    report: &'a Report,
    references: &'a References,
) -> impl Iterator<Item = (&'a Operation, String)> + 'a {
    references.operations.iter().filter_map(|operation| {
        let values = operation.values(&report.series);
        let any = values.iter().any(Option::is_some);
        let value = |value: &Option<f64>| value.map_or_else(|| "-".into(), number);
        any.then(|| (operation, values.iter().map(value).collect::<Vec<_>>().join(" / ")))
    })
}

/// The table of operations in Markdown.
pub(crate) fn operations_table(report: &Report, references: &References) -> String {
    let operations: Vec<_> = operations(report, references).collect();
    let of_mach = operations.iter().any(|(operation, _)| operation.gnu_mach.is_some());
    let relative = if of_mach { "GNU Mach" } else { "Pistachio" };
    let mut table = format!("| operation | instructions | to reach | {relative} |\n|---|---|---|---|\n");
    for (operation, values) in operations {
        let _ = writeln!(
            table,
            "| {} | {values} | {} | {} |",
            operation.name,
            optional(operation.target),
            optional(operation.pistachio.or(operation.gnu_mach))
        );
    }
    table
}

/// What was counted of the marked regions, in Markdown: columns that are zero everywhere are left
/// out.
pub(crate) fn regions_table(report: &Report) -> String {
    let mut table = String::new();
    let columns: Vec<_> = COLUMNS
        .iter()
        .filter(|(counter, _)| {
            report.regions.iter().any(|region| {
                region.user.get(*counter).is_some_and(|&n| n > 0)
                    || region.kernel.get(*counter).is_some_and(|&n| n > 0)
            })
        })
        .collect();
    if columns.is_empty() {
        return table;
    }
    let headings: Vec<&str> = columns.iter().map(|(_, heading)| *heading).collect();
    let _ = writeln!(
        table,
        "| operation | | {} |\n|---|---|{}",
        headings.join(" | "),
        "---|".repeat(columns.len())
    );
    for region in &report.regions {
        for (mode, counts) in [("kernel", &region.kernel), ("user", &region.user)] {
            let cells: Vec<String> =
                columns.iter().map(|(counter, _)| number(round(region.of(counts, counter)))).collect();
            let processor =
                if region.processor == 0 { String::new() } else { format!(" ({})", region.processor) };
            let _ = writeln!(table, "| {}{processor} | {mode} | {} |", region.name, cells.join(" | "));
        }
    }
    table
}

/// For how long the kernel did not look for interrupts in each region, the longest first.
pub(crate) fn stretches_table(report: &Report) -> String {
    let mut table = String::from(
        "| operation | longest stretch | stretches | kernel instructions |\n|---|---|---|---|\n",
    );
    let count = |region: &Region, counter: &str| region.kernel.get(counter).copied().unwrap_or(0);
    let mut regions: Vec<_> = report.regions.iter().filter(|region| region.processor == 0).collect();
    regions.sort_by_key(|region| std::cmp::Reverse(count(region, "longest_stretch")));
    for region in regions {
        let cells = ["longest_stretch", "stretches", "instructions"];
        let cells = cells.map(|counter| number(count(region, counter) as f64));
        let _ = writeln!(table, "| {} | {} |", region.name, cells.join(" | "));
    }
    table
}

/// Rounds to one decimal. More would mean nothing, because a region contains the loop around its
/// operations and sometimes an interrupt of a timer.
fn round(value: f64) -> f64 {
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

/// How costs grow, in Markdown: a row for each series, with its values along the parameter and the
/// cost of one more.
pub(crate) fn growth_table(report: &Report) -> String {
    let mut table = String::from("| what | unit | at | value | each further |\n|---|---|---|---|---|\n");
    for series in &report.series {
        let points = shown(&series.points);
        let join = |show: fn(&Point) -> f64| {
            points.iter().map(|point| number(show(point))).collect::<Vec<_>>().join(" / ")
        };
        let unit = series.fit.map_or_else(String::new, |fit| number((fit.unit * 100.0).round() / 100.0));
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {unit} |",
            series.test,
            series.counter,
            join(|point| point.parameter),
            join(|point| point.value)
        );
    }
    table
}

/// The table of series in Markdown.
fn series_table(report: &Report) -> String {
    let mut table = String::from(
        "| test | counter | smallest | largest | fixed | per unit | residual | repeats |\n|---|---|---|---|---|---|---|---|\n",
    );
    for series in &report.series {
        let at = |point: Point| format!("{} at {}", number(point.value), point.parameter);
        let fit = series.fit.map_or_else(
            || " | | ".to_string(),
            |fit| format!("{:.1} | {:.3} | {:.1}", fit.fixed, fit.unit, fit.residual),
        );
        let repeats = if series.repeats { "yes" } else { "NO" };
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {fit} | {repeats} |",
            series.test,
            series.counter,
            at(series.smallest()),
            at(series.largest())
        );
    }
    table
}

/// The lines through our costs with those of a paper, in Markdown.
pub(crate) fn fits_table(report: &Report, references: &References) -> String {
    let mut table = String::from(
        "| cost of n, in instructions | ours | residual | Pistachio, cycles | pork, cycles |\n|---|---|---|---|---|\n",
    );
    for unit in &references.fits {
        let Some(fit) = unit.fit(&report.series) else { continue };
        let paper = |line: &Option<String>| line.clone().unwrap_or_default();
        let _ = writeln!(
            table,
            "| {} | {:.1} + {:.2} n | {:.1} | {} | {} |",
            unit.name,
            fit.fixed,
            fit.unit,
            fit.residual,
            paper(&unit.pistachio),
            paper(&unit.pork)
        );
    }
    table
}

/// The figures of the papers in Markdown, with what we measure that is most like them.
pub(crate) fn papers_table(report: &Report, references: &References) -> String {
    let mut table = String::from("| figure | value | hardware | where | ours |\n|---|---|---|---|---|\n");
    for paper in &references.papers {
        let page = paper.page.map(|page| format!(", page {page}")).unwrap_or_default();
        let note = paper.erratum.as_ref().map(|erratum| format!(" (erratum: {erratum})")).unwrap_or_default();
        let ours = |operation: &Operation| {
            let value = |value: Option<f64>| value.map(|value| number(round(value)));
            let values: Option<Vec<String>> =
                operation.values(&report.series).into_iter().map(value).collect();
            Some(format!("{}: {} {}", operation.name, values?.join(" / "), operation.unit()))
        };
        let ours: Vec<String> = paper.ours.iter().filter_map(ours).collect();
        let _ = writeln!(
            table,
            "| {} | {} | {} | {}{page}{note} | {} |",
            paper.figure,
            paper.value,
            paper.hardware,
            paper.source,
            ours.join("; ")
        );
    }
    table
}

/// What the counters of the region table mean.
const REGIONS_NOTE: &str = "Per operation, but cache lines (of 64 bytes), which operations share: those are of the whole \
    region. Counted by the plugin for kernel and user apart; misses are those of its model.";

/// Whose misses they are.
fn model_note(report: &Report) -> String {
    if report.model.is_empty() { String::new() } else { format!(" Model: {}.", report.model) }
}

/// The tables at the end of a report: title, what they mean, content.
fn closing_tables(report: &Report, references: &References) -> [(&'static str, &'static str, String); 3] {
    [
        (
            "Unit costs",
            "Lines by least squares, with the largest distance of a point from ours. Those of Pistachio and pork are pork's \
             (slides, Performance Tuning Opportunities?), on an Atom N270 with 1.6 GHz.",
            fits_table(report, references),
        ),
        (
            "The papers",
            "Other hardware, other units, often another operation: for orientation only, and never a ratio.",
            papers_table(report, references),
        ),
        ("All series", "Each with the line through it, by least squares.", series_table(report)),
    ]
}

/// The whole report as Markdown.
pub(crate) fn markdown(report: &Report, references: &References) -> String {
    let mut text = format!(
        "# Benchmark report\n\n{}. Compiler: {}. Emulator: {}.\n",
        report.method, report.compiler, report.emulator
    );
    let operations = operations_table(report, references);
    let _ = write!(text, "\n## Operations\n\n{operations}");
    if !report.regions.is_empty() {
        let _ = write!(
            text,
            "\n## What instructions hide\n\n{REGIONS_NOTE}{}\n\n{}",
            model_note(report),
            regions_table(report)
        );
    }
    for (title, note, table) in closing_tables(report, references) {
        let _ = write!(text, "\n## {title}\n\n{note}\n\n{table}");
    }
    text
}

/// The whole report as a page that needs nothing else.
pub(crate) fn html(report: &Report, references: &References) -> Result<String> {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Macadamia: benchmarks</title>\n<style>\
         body{{font:15px/1.5 sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}}\
         table{{border-collapse:collapse;font-size:13px}}td,th{{border-bottom:1px solid #ddd;padding:.2rem .6rem;text-align:right}}\
         td:first-child,th:first-child{{text-align:left}}svg{{max-width:44rem;display:block}}.wide{{overflow-x:auto}}</style></head>\n\
         <body><h1>Macadamia: benchmarks</h1>\n<p>{}. Compiler: {}. Emulator: {}.</p>\n",
        escape(&report.method),
        escape(&report.compiler),
        escape(&report.emulator)
    );
    let _ = write!(page, "<h2>Operations</h2>\n{}", table_html(&operations_table(report, references)));
    for chart in &references.charts {
        if let Some(picture) = chart.draw(&report.series)? {
            let _ = write!(page, "<h2>{}</h2>\n{picture}", escape(&chart.title));
        }
    }
    if !report.regions.is_empty() {
        let _ = write!(
            page,
            "<h2>What instructions hide</h2>\n<p>{}</p>\n{}",
            escape(&format!("{REGIONS_NOTE}{}", model_note(report))),
            table_html(&regions_table(report))
        );
    }
    for (title, note, table) in closing_tables(report, references) {
        let _ = write!(page, "<h2>{title}</h2>\n<p>{}</p>\n{}", escape(note), table_html(&table));
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

/// One of our Markdown tables as HTML.
fn table_html(markdown: &str) -> String {
    let mut table = String::from("<div class=\"wide\"><table>\n");
    for (index, line) in markdown.lines().enumerate() {
        if index == 1 {
            continue;
        }
        let tag = if index == 0 { "th" } else { "td" };
        let cells: Vec<String> = line
            .trim_matches('|')
            .split('|')
            .map(|cell| format!("<{tag}>{}</{tag}>", escape(cell.trim())))
            .collect();
        let _ = writeln!(table, "<tr>{}</tr>", cells.concat());
    }
    table.push_str("</table></div>\n");
    table
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
        let table = regions_table(&report());
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
        assert!(page.contains("<svg") && page.ends_with("</html>\n") && page.contains("Compiler: &lt;b&gt;"));
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
