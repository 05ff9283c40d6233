//! The published results, `docs/results/NAME.json`, the tables of the book that are made from them,
//! and the test that they are still true.
//!
//! A table stands in a chapter between `<!-- results: NAME operations -->` (or `regions`, `calls`,
//! `parts`, `growth`, `stretches`, `session`, `speedup`, `costs`, `overhead`, `fits`) and
//! `<!-- end -->`; a table of all results stands between `<!-- results: all papers -->` and the end
//! mark. In the README a few rows of the other tables stand between `<!-- results: all summary -->`
//! and the end mark.

use super::references::{self, References, Summary};
use super::report::{self, Report};
use super::{budget, compare, empty_report, guests, measure, overhead, parts, regions, session, speedup};
use anyhow::{Context, Result, bail};
use mac_build::{build, tree};
use mac_machine::suites::{self, Suite};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

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

/// Writes the results of a benchmark into the tree.
pub(super) fn write(name: &str, report: &Report) -> Result<()> {
    build::write_if_changed(&file(name), (serde_json::to_string_pretty(report)? + "\n").as_bytes())
}

/// Writes the book's tables and pictures of results again.
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
    let mut chapters = tree::files(&tree::root().join("docs/src"), &[".md"])?;
    chapters.push(tree::root().join("README.md"));
    chapters.iter().try_for_each(|path| {
        let text = tree::read(path)?;
        let renewed = renew(&text, |name| named_table(name, &references));
        action(path, &text, &renewed.with_context(|| path.display().to_string())?)
    })
}

/// The table that a chapter names: the results, and the kind of table.
fn named_table(name: &str, references: &References) -> Result<String> {
    let (name, kind) = name.split_once(' ').with_context(|| format!("{name:?} names no table"))?;
    match (name, kind) {
        ("all", "papers") => return Ok(report::papers_table(&all()?, references)),
        ("all", "summary") => return summary(references),
        _ => {}
    }
    let report = &read(name)?;
    Ok(match kind {
        "operations" => report::operations_table(report, references),
        "regions" => report::regions_table(report, references),
        "calls" => guests::table(report),
        "parts" => parts::table(report),
        "growth" => report::growth_table(report),
        "stretches" => report::stretches_table(report),
        "session" => session::table(report),
        "speedup" => speedup::table(report),
        "costs" => speedup::costs(report),
        "copied" => speedup::copied(report),
        "fits" => report::fits_table(report, references),
        "overhead" => overhead::table(&read(SEVERAL)?, report, references),
        _ => bail!("there is no table of {kind}: docs/src/measuring.md lists them"),
    })
}

/// The README's table.
fn summary(references: &References) -> Result<String> {
    let row = |summary: &Summary| {
        let Summary { words, table, row, columns, other } = summary;
        let table = named_table(table, references)?;
        let mut rows = table.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
        let cells =
            rows.find(|cells| cells.get(1) == Some(&&**row)).with_context(|| format!("no row {row:?}"))?;
        let cell = |column: usize| cells.get(column).with_context(|| format!("{row:?}: no column {column}"));
        let (ours, theirs) = (cell(columns[0])?.to_string(), cell(columns[1])?.to_string());
        Ok([words.clone(), ours, theirs, other.clone()])
    };
    let rows = references.summary.iter().map(row).collect::<Result<Vec<_>>>()?;
    Ok(report::table(&["what", "Macadamia", "the other", "which"], rows))
}

/// The text with every table replaced by what `table` gives for its name.
fn renew(text: &str, table: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut renewed = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        let (before, mark) = rest.split_at(at);
        let line_end = mark[1..].find('\n').map_or(mark.len(), |end| end + 1);
        let name = mark[BEGIN.len()..line_end].trim_end_matches("-->").trim();
        let end = mark.find(END).with_context(|| format!("the table {name} has no {END}"))?;
        renewed += &format!("{before}{}\n\n{}\n", &mark[..line_end], table(name)?);
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

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verified::True(points) => write!(f, "ok - published figures: {points} points are what they were"),
            Verified::Unknown(reason) => write!(f, "# published figures are not measured again: {reason}"),
        }
    }
}

/// The benchmarks whose published figures are measured again.
pub(super) fn verified() -> Result<Vec<Suite>> {
    let mut benchmarks = suites::read(suites::BENCHMARKS)?;
    benchmarks.retain(|benchmark| {
        benchmark.guest.is_empty() && !benchmark.latency && file(&benchmark.name).exists()
    });
    Ok(benchmarks)
}

/// Measures the benchmarks of [`verified`] again, and compares. Figures of another compiler are not
/// compared.
pub fn verify() -> Result<Verified> {
    if build::profile()? != build::RELEASE {
        return Ok(Verified::Unknown(format!("the profile is {}", build::profile()?)));
    }
    let mut points = 0;
    let mut wrong = Vec::new();
    for benchmark in &verified()? {
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
        let renewed = renew(text, |name| Ok(format!("| {name} |\n"))).unwrap();
        assert_eq!(
            renewed,
            "before\n<!-- results: kernel operations -->\n\n| kernel operations |\n\n<!-- end -->\nafter\n"
        );
        assert_eq!(renew(&renewed, |name| Ok(format!("| {name} |\n"))).unwrap(), renewed);
        assert!(renew("\n<!-- results: kernel operations -->\n", |_| Ok(String::new())).is_err());
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
