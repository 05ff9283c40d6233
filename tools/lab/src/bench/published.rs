//! The results in the tree: `docs/results/NAME.json`, the tables of the book that come from them,
//! and the test that they are still true.
//!
//! A table stands in a chapter between `<!-- results: NAME operations -->` (or `regions`, `calls`,
//! `parts`, `growth`, `stretches`, `session`, `speedup`, `overhead`, `fits`) and `<!-- end -->`;
//! between `<!-- results: all papers -->` and that what comes from all results; between `<!--
//! results: all summary -->` and that, in the README, a few rows of the other tables.

use super::references::{self, References};
use super::report::{self, Report};
use super::{budget, compare, empty_report, guests, measure, overhead, parts, regions, session, speedup};
use anyhow::{Context, Result, bail};
use mac_build::{build, tree};
use mac_machine::suites;
use std::fs;
use std::path::{Path, PathBuf};

/// Per cent by which a published figure may differ from one measured again with the same compiler.
const TOLERANCE: f64 = 2.0;
/// The benchmark with which a table of `overhead` compares.
const SEVERAL: &str = "kernel";
/// The beginning of the mark before a table, which must begin a line.
const BEGIN: &str = "\n<!-- results: ";
const END: &str = "<!-- end -->";

fn file(name: &str) -> PathBuf {
    tree::root().join("docs/results").join(format!("{name}.json"))
}

pub(super) fn read(name: &str) -> Result<Report> {
    let path = file(name);
    serde_json::from_str(&tree::read(&path)?).with_context(|| format!("{} is no report", path.display()))
}

/// The results of all benchmarks, in the order of the table of benchmarks.
fn all() -> Result<Report> {
    let mut all = Report::default();
    for benchmark in
        suites::read(suites::BENCHMARKS)?.iter().filter(|benchmark| file(&benchmark.name).exists())
    {
        all.add(&benchmark.name, read(&benchmark.name)?);
    }
    Ok(all)
}

/// Puts the results of a benchmark into the tree.
pub(super) fn write(name: &str, report: &Report) -> Result<()> {
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    build::write_if_changed(&file(name), text.as_bytes())
}

/// Writes the tables of the book and its pictures of results again.
pub fn update_tables() -> Result<()> {
    for_each_part(|path, text, renewed| {
        if text != renewed {
            build::write_if_changed(path, renewed.as_bytes())?;
            println!("{}", path.display());
        }
        Ok(())
    })
}

/// Returns an error if a table or a picture of the book differs from the results in the tree.
pub fn check_tables() -> Result<()> {
    for_each_part(|path, text, renewed| {
        if text != renewed {
            bail!("{} does not show what docs/results has: ./mac bench --redraw", path.display());
        }
        Ok(())
    })
}

/// The book's pictures of results, as (file, content).
fn pictures(references: &References) -> Result<Vec<(String, String)>> {
    let mut pictures = vec![
        ("guests-parts.svg".to_string(), parts::svg(&read("guests-parts")?)?),
        ("crossing-phases.svg".to_string(), crate::trace::picture_of_phases()?),
    ];
    let all = all()?;
    for chart in &references.charts {
        if let Some(name) = &chart.picture {
            let content = chart.draw(&all.series)?;
            pictures.push((name.clone(), content.with_context(|| format!("{name} shows nothing"))?));
        }
    }
    Ok(pictures)
}

/// Returns an error if a published figure is above its target and `bench/references.toml` does not
/// say so, or if a region is above its budget.
pub fn check_budgets() -> Result<()> {
    let (all, references) = (all()?, references::read()?);
    let above = [budget::above_target(&all, &references), budget::exceeded(&all, &references)].concat();
    if !above.is_empty() {
        bail!("docs/results has figures that it must not have:\n  {}", above.join("\n  "));
    }
    Ok(())
}

/// Calls `action` for each chapter and picture with its file, its present content, and the content
/// by the results.
fn for_each_part(mut action: impl FnMut(&Path, &str, &str) -> Result<()>) -> Result<()> {
    let references = references::read()?;
    for (name, picture) in pictures(&references)? {
        let path = tree::root().join("docs/src/pictures").join(name);
        action(&path, &fs::read_to_string(&path).unwrap_or_default(), &picture)?;
    }
    let directory = tree::root().join("docs/src");
    let entries = fs::read_dir(&directory).with_context(|| format!("reading {}", directory.display()))?;
    let mut paths = vec![tree::root().join("README.md")];
    for entry in entries {
        paths.push(entry?.path());
    }
    for path in paths {
        if path.extension().is_some_and(|extension| extension == "md") {
            let text = tree::read(&path)?;
            let renewed = renew(&text, |name, what| match (name, what) {
                ("all", "papers") => Ok(report::papers_table(&all()?, &references)),
                ("all", "summary") => summary(&references),
                _ => table(&read(name)?, what, &references),
            })
            .with_context(|| path.display().to_string())?;
            action(&path, &text, &renewed)?;
        }
    }
    Ok(())
}

fn table(report: &Report, what: &str, references: &References) -> Result<String> {
    match what {
        "operations" => Ok(report::operations_table(report, references)),
        "regions" => Ok(report::regions_table(report)),
        "calls" => Ok(guests::table(report)),
        "parts" => Ok(parts::table(report)),
        "growth" => Ok(report::growth_table(report)),
        "stretches" => Ok(report::stretches_table(report)),
        "session" => Ok(session::table(report)),
        "speedup" => Ok(speedup::table(report)),
        "fits" => Ok(report::fits_table(report, references)),
        "overhead" => Ok(overhead::table(&read(SEVERAL)?, report, references)),
        _ => bail!(
            "there is no table of {what}: operations, regions, calls, parts, growth, stretches, session, speedup, overhead or fits"
        ),
    }
}

/// A row of the README's table: words for a reader without the book, and where its figures stand.
struct Summary {
    words: &'static str,
    /// The results, the kind of table and the row in it.
    row: (&'static str, &'static str, &'static str),
    /// The columns of ours and of the other system's figure.
    columns: (usize, usize),
    other: &'static str,
}

/// What the README shows, where it is good and where it is bad. Measurements that the two systems
/// make by different loops are left out.
const SUMMARY: [Summary; 6] = [
    Summary {
        words: "a page fault served by sigma0",
        row: ("mapping", "operations", "page fault served by sigma0, the page table present"),
        columns: (2, 4),
        other: PISTACHIO,
    },
    Summary {
        words: "a thread created and deleted",
        row: (
            "kernel",
            "operations",
            "ThreadControl, create and delete an active thread, whose UTCB shares a frame",
        ),
        columns: (2, 4),
        other: PISTACHIO,
    },
    Summary {
        words: "a first touch of a page by a Linux program",
        row: ("guests", "calls", "page fault, zeros"),
        columns: (2, 4),
        other: LINUX,
    },
    Summary {
        words: "fork, exit and wait",
        row: ("guests", "calls", "fork, exit, wait"),
        columns: (2, 4),
        other: LINUX,
    },
    Summary {
        words: "pread of 4 KiB",
        row: ("guests", "calls", "pread 4 KiB"),
        columns: (2, 4),
        other: LINUX,
    },
    Summary {
        words: "key press to echo, in bash",
        row: ("shell", "session", "key press to echo, bash on a pseudoterminal"),
        columns: (3, 4),
        other: LINUX,
    },
];
const PISTACHIO: &str = "L4Ka::Pistachio";
const LINUX: &str = "Linux 6.1";

fn summary(references: &References) -> Result<String> {
    let mut summary = String::from("| what | Macadamia | the other | which |\n|---|---|---|---|\n");
    for Summary { words, row: (name, kind, row), columns: (ours, theirs), other } in SUMMARY {
        let table = table(&read(name)?, kind, references)?;
        let mut rows = table.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
        let cells =
            rows.find(|cells| cells.get(1) == Some(&row)).with_context(|| format!("no row {row:?}"))?;
        let cell = |column: usize| cells.get(column).with_context(|| format!("{row:?}: no column {column}"));
        summary.push_str(&format!("| {words} | {} | {} | {other} |\n", cell(ours)?, cell(theirs)?));
    }
    Ok(summary)
}

/// The text with every table replaced by what `table` gives for its name and kind.
fn renew(text: &str, mut table: impl FnMut(&str, &str) -> Result<String>) -> Result<String> {
    let mut renewed = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        let (before, mark) = rest.split_at(at);
        let line_end = mark[1..].find('\n').map_or(mark.len(), |end| end + 1);
        let words = mark[BEGIN.len()..line_end].trim_end_matches("-->").trim();
        let (name, what) = words.split_once(' ').with_context(|| format!("{words:?} names no table"))?;
        let end = mark.find(END).with_context(|| format!("the table {words} has no {END}"))?;
        renewed.push_str(before);
        renewed.push_str(&mark[..line_end]);
        renewed.push_str("\n\n");
        renewed.push_str(&table(name, what)?);
        renewed.push('\n');
        rest = &mark[end..];
    }
    renewed.push_str(rest);
    Ok(renewed)
}

/// The result of measuring the published benchmarks again.
pub enum Verified {
    /// The published figures are true; so many points were compared.
    True(usize),
    /// No comparison is possible, for this reason.
    Unknown(String),
}

/// Measures those published benchmarks again for which the table of benchmarks asks it, and
/// compares. Figures of another compiler are not compared.
pub fn verify() -> Result<Verified> {
    if build::profile()? != build::RELEASE {
        return Ok(Verified::Unknown(format!("the profile is {}", build::profile()?)));
    }
    let mut points = 0;
    let mut wrong = Vec::new();
    for benchmark in suites::read(suites::BENCHMARKS)?.iter().filter(|benchmark| {
        benchmark.guest.is_empty() && !benchmark.latency && file(&benchmark.name).exists()
    }) {
        let published = read(&benchmark.name)?;
        let compiler = empty_report()?.compiler;
        if published.compiler != compiler {
            return Ok(Verified::Unknown(format!(
                "the figures were measured with {}, this is {compiler}",
                published.compiler
            )));
        }
        let result = compare::compare(&published, &measure(benchmark, &[])?, TOLERANCE, |region, counter| {
            !regions::is_of_layout(counter) && !regions::waits(region)
        });
        points += result.points;
        wrong.extend(result.differences.iter().map(ToString::to_string));
        wrong.extend(result.missing.iter().map(|test| format!("{test} is not measured any more")));
        wrong.extend(result.new.iter().map(|test| format!("{test} is not published")));
    }
    if points == 0 && wrong.is_empty() {
        return Ok(Verified::Unknown("nothing is published".into()));
    }
    if !wrong.is_empty() {
        bail!(
            "docs/results is not true any more beyond {TOLERANCE} % (./mac bench --publish, and say why):\n  {}",
            wrong.join("\n  ")
        );
    }
    Ok(Verified::True(points))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_replaced_and_the_rest_stays() {
        let text = "before\n<!-- results: kernel operations -->\n\nold\n<!-- end -->\nafter\n";
        let renewed = renew(text, |name, what| Ok(format!("| {name} {what} |\n"))).unwrap();
        assert_eq!(
            renewed,
            "before\n<!-- results: kernel operations -->\n\n| kernel operations |\n\n<!-- end -->\nafter\n"
        );
        assert_eq!(renew(&renewed, |name, what| Ok(format!("| {name} {what} |\n"))).unwrap(), renewed);
        assert!(renew("\n<!-- results: kernel operations -->\n", |_, _| Ok(String::new())).is_err());
    }

    #[test]
    fn the_books_tables_and_pictures_are_those_of_the_results() {
        check_tables().unwrap();
    }

    #[test]
    fn what_is_published_is_within_its_budget() {
        check_budgets().unwrap();
    }
}
