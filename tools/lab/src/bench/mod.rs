//! `./mac bench`: boots the benchmarks under instruction counting with the counting plugin,
//! collects what they print, fits unit costs, and writes the report.
//!
//! | file | what |
//! |------|------|
//! | `series` | measurements and the lines through them |
//! | `regions` | what the plugin counted |
//! | `budget` | what operations may cost at most, in what instruction counts hide |
//! | `model` | the caches and TLBs that it models |
//! | `code_size` | how large functions are |
//! | `references` | targets, relatives and papers that results are compared with |
//! | `profile`, `parts` | in which functions the regions' instructions are, and in which parts of the system |
//! | `report` | JSON, Markdown, a page with charts |
//! | `guests` | programs of Linux, under the Unix server and under Linux |
//! | `speedup` | what several processors are good for |
//! | `overhead` | what they cost one |
//! | `session` | an interactive session at the shell, here and under Linux |
//! | `compare` | two reports side by side |
//! | `published` | the committed results, their tables in the book, and that they are still true |

mod budget;
mod code_size;
mod compare;
mod guests;
mod model;
mod overhead;
mod parts;
mod profile;
mod published;
mod references;
mod regions;
mod report;
mod series;
mod session;
mod speedup;

use self::report::Report;
use anyhow::{Context, Result, bail};
use mac_build::{build, command, toolchain, tree};
use mac_machine::boots::show;
use mac_machine::parallel::in_parallel;
use mac_machine::qemu::Accelerator;
use mac_machine::suites::{self, Overrides, Run};
use mac_machine::{boots, qemu};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

pub use self::published::{Verified, check_budgets, check_tables, update_tables, verify};
pub use self::series::Measurement;
pub(crate) use self::series::Point;
pub use self::session::{column, session};

/// Options of `./mac bench`.
#[derive(clap::Args)]
pub struct Options {
    /// Run only the benchmark of this name, or those whose name or module contains this
    filter: Option<String>,
    /// What executes the instructions: only `tcg` counts them
    #[arg(long, value_enum, default_value = "tcg")]
    accel: Accelerator,
    /// Run nothing: show what differs between two reports (report.json)
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with_all = ["filter", "publish"])]
    compare: Option<Vec<PathBuf>>,
    /// Run nothing: write the tables and pictures of the book again from docs/results
    #[arg(long, conflicts_with_all = ["filter", "publish", "compare", "profile"])]
    redraw: bool,
    /// Measure what `./mac test` measures again, and compare it with docs/results
    #[arg(long, conflicts_with_all = ["filter", "publish", "compare", "redraw", "profile"])]
    verify: bool,
    /// Per cent by which a value may differ
    #[arg(long, value_name = "PERCENT", default_value = "2", requires = "compare", value_parser = per_cent)]
    threshold: f64,
    /// Another model of caches and TLBs: l1i, l1d or l2=BYTES/WAYS, itlb or dtlb=ENTRIES/WAYS; as
    /// often as needed
    #[arg(long, value_name = "PART=SIZE/WAYS", value_parser = model::part, conflicts_with_all = ["compare", "publish", "profile"])]
    model: Vec<model::Part>,
    /// Put the results into docs/results and the tables of the book
    #[arg(long)]
    publish: bool,
    /// Show in which functions the instructions of each marked region are; with --publish, put the
    /// parts into the book
    #[arg(long, conflicts_with = "compare")]
    profile: bool,
}

/// Runs the benchmarks, prints the table and writes the report; publishes nothing if anything went
/// wrong.
pub fn run(options: &Options) -> Result<()> {
    if let Some([before, after]) = options.compare.as_deref() {
        return compare_files(before, after, options.threshold);
    }
    if options.redraw {
        return update_tables();
    }
    only_counting(options.accel)?;
    build::only_release()?;
    if options.verify {
        build(&published::verified()?)?;
        println!("{}", verify()?);
        return Ok(());
    }
    let benchmarks = chosen(suites::read(suites::BENCHMARKS)?, options.filter.as_deref().unwrap_or_default());
    if benchmarks.is_empty() {
        bail!("no benchmark matches {:?}", options.filter.as_deref().unwrap_or_default());
    }
    build(&benchmarks)?;
    if options.profile {
        benchmarks.iter().try_for_each(|benchmark| profile::run(benchmark, options.publish))?;
        return if options.publish { update_tables() } else { Ok(()) };
    }
    let mut whole = empty_report()?;
    for benchmark in &benchmarks {
        let report = measure(benchmark, &options.model)?;
        if options.publish {
            published::write(&benchmark.name, &report)?;
        }
        whole.add(&benchmark.name, report);
    }
    if options.publish {
        update_tables()?;
    }
    let references = references::read()?;
    print!("{}", table(&whole));
    let directory = tree::target().join("bench");
    for (name, content) in [
        ("report.json", serde_json::to_string_pretty(&whole)?),
        ("report.md", report::markdown(&whole, &references)),
        ("report.html", report::html(&whole, &references)?),
    ] {
        let path = directory.join(name);
        build::write_if_changed(&path, content.as_bytes()).context("publishing the report")?;
        println!("{}", path.display());
    }
    Ok(())
}

/// The benchmark of that name; if there is none, all whose names or modules contain it.
fn chosen(benchmarks: Vec<suites::Suite>, filter: &str) -> Vec<suites::Suite> {
    let named = benchmarks.iter().any(|benchmark| benchmark.name == filter);
    let is_chosen = |benchmark: &suites::Suite| {
        if named { benchmark.name == filter } else { benchmark.matches(filter) }
    };
    benchmarks.into_iter().filter(is_chosen).collect()
}

/// Builds the files that the benchmarks boot.
fn build(benchmarks: &[suites::Suite]) -> Result<()> {
    if benchmarks.iter().any(|benchmark| benchmark.image.is_some()) {
        return suites::build(benchmarks);
    }
    let programs: Vec<&str> = benchmarks.iter().flat_map(suites::Suite::programs).collect();
    build::kernel_and_programs(&programs)
}

fn empty_report() -> Result<Report> {
    Ok(Report {
        method: report::METHOD.into(),
        compiler: toolchain::find()?.version()?,
        emulator: qemu::version_line()?,
        ..Report::default()
    })
}

/// Boots one benchmark as often as it asks for, and collects all measurements. The usual model of
/// caches is used, except for the parts in `model`. Returns an error if anything disturbed a boot.
fn measure(benchmark: &suites::Suite, model: &[model::Part]) -> Result<Report> {
    if benchmark.speedup {
        return speedup::measure(benchmark);
    }
    if !benchmark.guest.is_empty() {
        return guests::measure(benchmark);
    }
    let mut report = empty_report()?;
    let runs = benchmark.runs(&Overrides::default())?;
    only_counted(&runs)?;
    let plugin = plugin()?;
    let scratch = tree::target().join("bench/counts");
    fs::create_dir_all(&scratch).with_context(|| format!("making {}", scratch.display()))?;
    let counts = |run: &Run| scratch.join(format!("{}.jsonl", run.name.replace(['/', ' ', ','], "-")));
    let kernel = benchmark.kernel.as_deref().map(build::kernel_with).transpose()?;
    let mut runs = runs;
    for run in &mut runs {
        run.machine.elsewhere.extend(kernel.clone().map(|file| ("kernel".into(), file)));
        let out = counts(run);
        let _ = fs::remove_file(&out);
        let what = match (benchmark.latency, benchmark.work) {
            (true, _) => ",latency=on",
            (_, true) => ",work=on",
            _ => "",
        };
        let option = format!("{plugin},out={}{what}{}", qemu::value(&out)?, model::arguments(model));
        run.machine.extra.extend(["-plugin".into(), option]);
    }
    let mut collected = Collected::default();
    in_parallel(
        runs,
        boots::run,
        |_| None,
        |run, result| match result {
            Ok(verdict) => {
                show(run, &verdict);
                let output = fs::read_to_string(counts(run)).unwrap_or_default();
                collected.take(&run.name, &verdict, &output);
            }
            Err(error) => collected.disturbed.push(format!("{}: {error:#}", run.name)),
        },
    );
    let (measurements, regions) = collected.undisturbed()?;
    if benchmark.work {
        report.series = series::collect(&regions::of_all_processors(&regions)?);
    } else {
        let program = benchmark.programs().last().unwrap_or_default();
        let sizes = code_size::measure(program, &benchmark.code)?;
        report.series = series::collect(&[measurements, sizes].concat());
        if !benchmark.latency && !regions.is_empty() {
            report.model = model::describe(model);
        }
        report.regions = regions;
    }
    budget::keep(&benchmark.name, &report, &references::read()?)?;
    Ok(report)
}

/// Parses a threshold in per cent.
fn per_cent(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => bail!("it is not a number of per cent, 0 or more"),
    }
}

/// Refuses accelerators that cannot count instructions.
fn only_counting(accelerator: Accelerator) -> Result<()> {
    match accelerator {
        Accelerator::Tcg => Ok(()),
        Accelerator::Kvm => bail!(
            "benchmarks count instructions, which KVM cannot; `./mac image --bench` measures cycles of real hardware"
        ),
    }
}

/// Refuses runs on machines that do not count instructions.
fn only_counted(runs: &[Run]) -> Result<()> {
    match runs.iter().find(|run| !run.machine.icount) {
        Some(run) => bail!("{}: a benchmark must run under instruction counting (icount = true)", run.name),
        None => Ok(()),
    }
}

/// The output of all boots of a benchmark, and what disturbed them.
#[derive(Default)]
struct Collected {
    measurements: Vec<Measurement>,
    regions: Option<Vec<regions::Region>>,
    disturbed: Vec<String>,
}

impl Collected {
    /// Adds the output of the boot called `name`, and that of the plugin.
    fn take(&mut self, name: &str, verdict: &boots::Verdict, output: &str) {
        if verdict.failed() > 0 {
            self.disturbed.push(format!("{name}: a test failed"));
        }
        let mut names = Vec::new();
        for record in &verdict.records {
            if let Ok(name) = regions::Name::deserialize(record) {
                names.push(name);
                continue;
            }
            match Measurement::deserialize(record) {
                Ok(measurement) => self.measurements.push(measurement),
                Err(error) => self.disturbed.push(format!("{name}: {record} is no measurement: {error}")),
            }
        }
        match regions::join(&names, output) {
            // All boots of a benchmark have the same counts, so those of one boot are enough.
            Ok(counted) => _ = self.regions.get_or_insert(counted),
            Err(error) => self.disturbed.push(format!("{name}: {error:#}")),
        }
    }

    /// The measurements and regions, if no boot was disturbed.
    fn undisturbed(self) -> Result<(Vec<Measurement>, Vec<regions::Region>)> {
        if !self.disturbed.is_empty() {
            bail!("nothing is published, because the run was disturbed:\n  {}", self.disturbed.join("\n  "));
        }
        Ok((self.measurements, self.regions.unwrap_or_default()))
    }
}

/// Builds the counting plugin. Returns its path as a value in QEMU's options.
fn plugin() -> Result<String> {
    let mut cargo = command::clean(toolchain::host_cargo());
    cargo.args(["build", "--quiet", "--locked", "--release", "--package", "lab-counters", "--target-dir"]);
    cargo.arg(tree::target().join("plugin")).env("CARGO_PROFILE_RELEASE_LTO", "off");
    command::run(&mut cargo, "building the counting plugin")?;
    qemu::value(&tree::target().join("plugin/release/liblab_counters.so"))
}

fn compare_files(before: &Path, after: &Path, threshold: f64) -> Result<()> {
    let read = |path: &Path| -> Result<Report> {
        serde_json::from_str(&tree::read(path)?).with_context(|| format!("{} is no report", path.display()))
    };
    let paths = [before, after];
    let (before, after) = (read(before)?, read(after)?);
    for (what, one, other) in [
        ("compilers", &before.compiler, &after.compiler),
        ("emulators", &before.emulator, &after.emulator),
        ("models of caches", &before.model, &after.model),
    ] {
        if one != other {
            println!("The {what} differ: {one:?} and {other:?}.");
        }
    }
    let result = compare::compare(&before, &after, threshold, |_, _| true);
    for difference in &result.differences {
        println!("{difference}");
    }
    for (what, tests) in [("only before", &result.missing), ("only after", &result.new)] {
        tests.iter().for_each(|test| println!("{what}: {test}"));
    }
    let dearer = result.differences.iter().filter(|difference| difference.change() > 0.0).count();
    println!(
        "{} values compared: {dearer} dearer and {} cheaper by more than {threshold} %",
        result.points,
        result.differences.len() - dearer
    );
    match (result.points, dearer, result.missing.len()) {
        (0, ..) => bail!("the two reports have nothing in common: were they made with the same filter?"),
        (_, 0, 0) => Ok(()),
        (_, 0, missing) => bail!("{missing} values or tests are only in {}", paths[0].display()),
        (_, dearer, _) => bail!("{dearer} values have become dearer"),
    }
}

/// The table for the terminal, 80 columns wide. A long name has a line to itself.
fn table(report: &Report) -> String {
    const NAME: usize = 27;
    let row = |cells: [&str; 4]| {
        let row = format!(" {:>15} {:>19} {:>8} {:>6}", cells[0], cells[1], cells[2], cells[3]);
        format!("{}\n", row.trim_end())
    };
    let mut table = format!("{:NAME$}{}", "test", row(["smallest", "largest", "per unit", "off"]));
    for series in &report.series {
        let at = |point: series::Point| format!("{} at {}", report::number(point.value), point.parameter);
        let (unit, residual) = match series.fit {
            Some(fit) => (format!("{:.2}", fit.unit), format!("{:.0}", fit.residual)),
            None => Default::default(),
        };
        let mark = if series.repeats { "" } else { " *" };
        let unit_of = if series.counter == "instructions" { "" } else { &series.counter };
        let name = [&series.test, unit_of].join(if unit_of.is_empty() { "" } else { ", " }) + mark;
        let break_line = if name.len() > NAME { format!("\n{:NAME$}", "") } else { String::new() };
        let cells = row([&at(series.smallest()), &at(series.largest()), &unit, &residual]);
        table.push_str(&format!("{name:NAME$}{break_line}{cells}"));
    }
    table.push_str("per unit: by linear regression; off: its largest residual; *: repetitions differ\n");
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn verdict(records: &[Value], failures: &[&str]) -> boots::Verdict {
        boots::Verdict {
            records: records.to_vec(),
            failures: failures.iter().map(ToString::to_string).collect(),
            ..boots::Verdict::default()
        }
    }

    fn collected(verdict: &boots::Verdict, output: &str) -> Result<(Vec<Measurement>, Vec<regions::Region>)> {
        let mut collected = Collected::default();
        collected.take("b", verdict, output);
        collected.undisturbed()
    }

    const COUNTED: &str = "{\"region\":0,\"processor\":0,\"user\":{},\"kernel\":{\"instructions\":5}}\n";

    fn measurement() -> Value {
        json!({ "test": "t", "parameter": 1, "counter": "instructions", "value": 9 })
    }

    fn region() -> Value {
        json!({ "region": "t", "operations": 1 })
    }

    #[test]
    fn a_whole_name_means_one_benchmark() {
        let names = |filter: &str| -> Vec<String> {
            let benchmarks = suites::read(suites::BENCHMARKS).unwrap();
            chosen(benchmarks, filter).into_iter().map(|benchmark| benchmark.name).collect()
        };
        assert_eq!(names("scaling"), ["scaling"]);
        assert_eq!(names("bench-scaling"), ["scaling", "latency"]);
        assert!(names("").len() > 5 && names("no such benchmark").is_empty());
    }

    #[test]
    fn the_table_fits_into_80_columns_and_marks_what_does_not_repeat() {
        let long = "one way across spaces, client on 1, targets sleep";
        let all = [
            series::measured("short", 1.0, 10.0),
            series::measured("short", 1.0, 11.0),
            series::measured(long, 1.0, 1_234_567.0),
            series::measured(long, 2.0, 2_234_567.0),
            series::measured(long, 10_000.0, 12_345_678.0),
        ];
        let text = table(&Report { series: series::collect(&all), ..Report::default() });
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.contains("short *") && text.contains("12 345 678 at 10000"), "{text}");
    }

    #[test]
    fn what_compares_nothing_or_hides_something_is_refused() {
        let directory = mac_build::scratch::Scratch::new("compare").unwrap();
        let write = |name: &str, values: &[(&str, f64)]| {
            let values: Vec<_> =
                values.iter().map(|&(test, value)| series::measured(test, 1.0, value)).collect();
            let report = Report { series: series::collect(&values), ..Report::default() };
            let path = directory.0.join(name);
            fs::write(&path, serde_json::to_string(&report).unwrap()).unwrap();
            path
        };
        let (both, one) = (write("both", &[("a", 1.0), ("b", 2.0)]), write("one", &[("a", 1.0)]));
        let (dearer, other) = (write("dearer", &[("a", 2.0)]), write("other", &[("c", 1.0)]));
        assert!(compare_files(&one, &both, 2.0).is_ok() && compare_files(&dearer, &one, 2.0).is_ok());
        for (before, after, reason) in [
            (&one, &dearer, "1 values have become dearer"),
            (&both, &one, "1 values or tests are only in"),
            (&one, &other, "nothing in common"),
        ] {
            let said = compare_files(before, after, 2.0).unwrap_err().to_string();
            assert!(said.contains(reason), "{said}");
        }
        let refused = |text| per_cent(text).is_err();
        assert!(["nan", "-1", "inf", "2 %"].into_iter().all(refused) && per_cent("0.5").is_ok());
    }

    #[test]
    fn an_undisturbed_run_is_taken() {
        let (measurements, regions) = collected(&verdict(&[measurement(), region()], &[]), COUNTED).unwrap();
        assert_eq!((measurements.len(), regions.len()), (1, 1));
    }

    #[test]
    fn a_disturbed_run_is_refused_and_the_reason_is_said() {
        for (verdict, output, reason) in [
            (verdict(&[measurement()], &["hung: nothing on the console for 60 s"]), "", "a test failed"),
            (verdict(&[json!({ "test": "t" })], &[]), "", "is no measurement"),
            (verdict(&[measurement(), region()], &[]), "", "the plugin counted 0"),
            (verdict(&[measurement()], &[]), COUNTED, "more regions"),
            (verdict(&[measurement(), region()], &[]), "half a li", "a line of the counting plugin"),
        ] {
            let said = collected(&verdict, output).unwrap_err().to_string();
            assert!(said.starts_with("nothing is published") && said.contains(reason), "{said}");
        }
    }

    #[test]
    fn one_disturbed_boot_of_several_is_enough() {
        let mut collected = Collected::default();
        collected.take("first", &verdict(&[measurement()], &[]), "");
        collected.take("second", &verdict(&[], &["the machine stopped early"]), "");
        assert!(collected.undisturbed().is_err());
    }

    #[test]
    fn without_instruction_counting_nothing_is_measured() {
        let benchmarks = suites::read(suites::BENCHMARKS).unwrap();
        let mut runs = benchmarks[0].runs(&Overrides::default()).unwrap();
        assert!(only_counted(&runs).is_ok() && only_counting(Accelerator::Tcg).is_ok());
        assert!(only_counting(Accelerator::Kvm).unwrap_err().to_string().contains("KVM"));
        runs[0].machine.icount = false;
        assert!(only_counted(&runs).unwrap_err().to_string().contains("instruction counting"));
    }
}
