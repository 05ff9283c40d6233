//! `./mac bench`: boots the benchmarks under instruction counting with the counting plugin, collects what they print,
//! fits unit costs, and writes the report.
//!
//! | file | what |
//! |------|------|
//! | `series` | measurements and the lines through them |
//! | `regions` | what the plugin counted |
//! | `references` | targets, relatives and papers that results stand beside |
//! | `profile` | in which functions the regions' instructions are |
//! | `report`, `chart` | JSON, Markdown, a page with charts |
//! | `guests` | programs of Linux, under the Unix server and under Linux |
//! | `person` | a person's work at the shell, here and under Linux |
//! | `compare` | two reports side by side |
//! | `published` | the committed results, their tables in the book, and that they are still true |

mod chart;
mod compare;
mod guests;
mod person;
mod profile;
mod published;
mod references;
mod regions;
mod report;
mod series;

use self::report::Report;
use crate::suites::{self, Overrides, Run};
use crate::test::{in_parallel, show};
use crate::{build, command, qemu, toolchain, tree};
use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use self::person::{column, person};
pub(crate) use self::published::{Verified, check_tables, verify};
pub(crate) use self::series::Measurement;

/// Options of `./mac bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only benchmarks whose name or module contains this
    filter: Option<String>,
    /// Run nothing: show what differs between two reports (report.json)
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with_all = ["filter", "publish"])]
    compare: Option<Vec<PathBuf>>,
    /// Per cent by which a value may differ
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    threshold: f64,
    /// Put the results into docs/results and the tables of the book
    #[arg(long)]
    publish: bool,
    /// Show in which functions the instructions of each marked region are, and publish nothing
    #[arg(long, conflicts_with_all = ["publish", "compare"])]
    profile: bool,
}

/// Runs the benchmarks, prints the table and writes the report; publishes nothing if anything went wrong.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some([before, after]) = options.compare.as_deref() {
        return compare_files(before, after, options.threshold);
    }
    if build::profile()? != build::RELEASE {
        bail!("MAC_PROFILE is {}: only the release profile is measured", build::profile()?);
    }
    build::everything(&build::Options::default())?;
    let chosen = |name: &suites::Suite| options.filter.as_deref().is_none_or(|filter| name.matches(filter));
    let benchmarks: Vec<_> = suites::read(suites::BENCHMARKS)?.into_iter().filter(chosen).collect();
    if benchmarks.is_empty() {
        bail!("no benchmark matches {:?}", options.filter.as_deref().unwrap_or_default());
    }
    if options.profile {
        return benchmarks.iter().try_for_each(profile::run);
    }
    let mut whole = empty_report()?;
    for benchmark in &benchmarks {
        let report = measure(benchmark)?;
        if options.publish {
            published::write(&benchmark.name, &report)?;
        }
        whole.series.extend(report.series);
        whole.regions.extend(report.regions);
    }
    if options.publish {
        published::update_tables()?;
    }
    let references = references::read()?;
    print_table(&whole);
    let directory = tree::target().join("bench");
    for (name, content) in [
        ("report.json", serde_json::to_string_pretty(&whole)?),
        ("report.md", report::markdown(&whole, &references)),
        ("report.html", report::html(&whole, &references)),
    ] {
        let path = directory.join(name);
        build::write_if_changed(&path, content.as_bytes()).context("publishing the report")?;
        println!("{}", path.display());
    }
    Ok(())
}

fn empty_report() -> Result<Report> {
    Ok(Report {
        method: report::METHOD.into(),
        compiler: toolchain::find()?.version()?,
        emulator: qemu::version_line()?,
        ..Report::default()
    })
}

/// Boots one benchmark as often as it says, and collects everything. An error if anything disturbed it.
fn measure(benchmark: &suites::Suite) -> Result<Report> {
    if !benchmark.guest.is_empty() {
        return guests::measure(benchmark);
    }
    let mut report = empty_report()?;
    let runs = benchmark
        .runs(&Overrides::default())
        .map_err(|excluded| anyhow!("{}: {}", excluded.name, excluded.reason))?;
    if runs.iter().any(|run| !run.machine.icount) {
        bail!("{}: a benchmark must run under instruction counting (icount = true)", benchmark.name);
    }
    let plugin = plugin()?;
    let scratch = tree::target().join("bench/counts");
    fs::create_dir_all(&scratch).with_context(|| format!("making {}", scratch.display()))?;
    let counts = |run: &Run| scratch.join(format!("{}.jsonl", run.name.replace(['/', ' ', ','], "-")));
    let mut runs = runs;
    for run in &mut runs {
        let out = counts(run);
        let _ = fs::remove_file(&out);
        let latency = if benchmark.latency { ",latency=on" } else { "" };
        let plugin = format!("{},out={}{latency}", plugin.display(), out.display());
        run.machine.extra.extend(["-plugin".into(), plugin]);
    }
    let mut measurements = Vec::new();
    let mut disturbed = Vec::new();
    let mut regions: Option<Vec<regions::Region>> = None;
    in_parallel(runs, |run, result| match result {
        Ok(verdict) => {
            show(run, &verdict);
            if verdict.failed() > 0 {
                disturbed.push(format!("{}: a test failed", run.name));
            }
            let mut names = Vec::new();
            for record in &verdict.records {
                if let Ok(name) = regions::Name::deserialize(record) {
                    names.push(name);
                    continue;
                }
                match Measurement::deserialize(record) {
                    Ok(measurement) => measurements.push(measurement),
                    Err(error) => {
                        disturbed.push(format!("{}: {record} is no measurement: {error}", run.name))
                    }
                }
            }
            let output = fs::read_to_string(counts(run)).unwrap_or_default();
            match regions::join(&names, &output) {
                // All boots of a benchmark count the same: one is enough.
                Ok(counted) => _ = regions.get_or_insert(counted),
                Err(error) => disturbed.push(format!("{}: {error:#}", run.name)),
            }
        }
        Err(error) => disturbed.push(format!("{}: {error:#}", run.name)),
    });
    if !disturbed.is_empty() {
        bail!("nothing is published, because the run was disturbed:\n  {}", disturbed.join("\n  "));
    }
    report.series = series::collect(&measurements);
    report.regions = regions.unwrap_or_default();
    Ok(report)
}

/// Builds the counting plugin.
fn plugin() -> Result<PathBuf> {
    let mut cargo = command::clean(toolchain::host_cargo());
    cargo.args(["build", "--quiet", "--locked", "--release", "--package", "lab-counters", "--target-dir"]);
    cargo.arg(tree::target().join("plugin")).env("CARGO_PROFILE_RELEASE_LTO", "off");
    command::run(&mut cargo, "building the counting plugin")?;
    Ok(tree::target().join("plugin/release/liblab_counters.so"))
}

fn compare_files(before: &Path, after: &Path, threshold: f64) -> Result<()> {
    let read = |path: &Path| -> Result<Report> {
        let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no report", path.display()))
    };
    let (before, after) = (read(before)?, read(after)?);
    if before.compiler != after.compiler {
        println!("The compilers differ: {} and {}.", before.compiler, after.compiler);
    }
    let result = compare::compare(&before, &after, threshold);
    for difference in &result.differences {
        println!("{difference}");
    }
    for (what, tests) in [("only before", &result.missing), ("only after", &result.new)] {
        tests.iter().for_each(|test| println!("{what}: {test}"));
    }
    let dearer = result.differences.iter().filter(|difference| difference.change() > 0.0).count();
    println!(
        "{} points compared: {dearer} dearer and {} cheaper by more than {threshold} %",
        result.points,
        result.differences.len() - dearer
    );
    if dearer > 0 { bail!("{dearer} values have become dearer") } else { Ok(()) }
}

fn print_table(report: &Report) {
    println!(
        "{:38} {:>20} {:>20} {:>10} {:>10} repeats",
        "test", "smallest", "largest", "per unit", "residual"
    );
    for series in &report.series {
        let at = |point: series::Point| format!("{} at {}", report::number(point.value), point.parameter);
        let (unit, residual) = match series.fit {
            Some(fit) => (format!("{:.2}", fit.unit), format!("{:.1}", fit.residual)),
            None => Default::default(),
        };
        println!(
            "{:38} {:>20} {:>20} {unit:>10} {residual:>10} {}",
            series.test,
            at(series.smallest()),
            at(series.largest()),
            if series.repeats { "yes" } else { "NO" },
        );
    }
}
