//! Measures the cost of system calls of Linux programs: the same program and image under the Unix
//! server, in each mode, and under Debian's kernel.

use super::report::{self, number_or, without_place};
use super::series::{self, Measurement};
use super::{Report, empty_report};
use anyhow::{Context, Result, bail};
use mac_build::guests;
use mac_guest::Kernel;
use mac_machine::suites::{Mode, Overrides, Suite};

/// The counter of Debian's kernel. Those of the Unix server have the names of its modes.
const LINUX: &str = "linux";

/// How often Debian's kernel runs each program: what a line costs there differs from boot to boot,
/// some by half. The costs of the Unix server repeat to within some per cent.
const LINUX_BOOTS: usize = 5;

/// Boots the programs of `benchmark.guest` on each kernel and collects what they print: of several
/// boots, the median of each line.
pub(super) fn measure(benchmark: &Suite) -> Result<Report> {
    let runs = benchmark.runs(&Overrides::default())?;
    let first = runs.first().context("a benchmark without a machine")?.clone();
    let request = request(benchmark)?;
    let boots = runs
        .into_iter()
        .map(|run| (run.mode.name(), Kernel::Macadamia, run.mode, run.machine))
        .chain([(LINUX, Kernel::Linux, Mode::Exception, first.machine)]);
    let mut measurements = Vec::new();
    for (counter, kernel, mode, machine) in boots {
        for program in &benchmark.guest {
            let command = [format!("/tests/bin/{program}")];
            let boots = if kernel == Kernel::Linux { LINUX_BOOTS } else { 1 };
            let mut found = Vec::new();
            for _ in 0..boots {
                let printed = mac_guest::output(&request, kernel, mode, machine.clone(), &command)
                    .with_context(|| format!("{program}, {counter}"))?;
                found.push(parse(&printed, counter)?);
            }
            let found = medians(found).with_context(|| format!("{program}, {counter}"))?;
            println!("{program}, {counter}: {} measurements in {boots} boots", found.len());
            measurements.extend(found);
        }
    }
    Ok(Report { series: series::collect(&numbered(measurements)), ..empty_report()? })
}

/// The median of what each boot has measured.
fn medians(boots: Vec<Vec<Measurement>>) -> Result<Vec<Measurement>> {
    let (first, others) = boots.split_first().context("no boot")?;
    let value = |found: &[Measurement], test: &str| {
        let found = found.iter().find(|found| found.test == test).map(|found| found.value);
        found.with_context(|| format!("{test:?} is not in every boot"))
    };
    let median = |measured: &Measurement| {
        let others = others.iter().map(|boot| value(boot, &measured.test));
        let mut values = others.chain([Ok(measured.value)]).collect::<Result<Vec<f64>>>()?;
        values.sort_by(f64::total_cmp);
        Ok(Measurement { value: values[values.len() / 2], ..measured.clone() })
    };
    first.iter().map(median).collect()
}

/// The image with the programs that measure.
pub(super) fn request(benchmark: &Suite) -> Result<mac_guest::Request> {
    let programs = guests::benchmarks()?.into_iter().map(|(name, file)| (format!("tests/bin/{name}"), file));
    let modules = mac_guest::linux::modules(benchmark)?;
    Ok(mac_guest::Request {
        name: benchmark.image.clone().unwrap_or_default(),
        packages: benchmark.packages.clone(),
        files: programs.chain(modules).collect(),
        ..mac_guest::Request::default()
    })
}

/// The measurements, with a number before each name by which they are sorted. The order is that of
/// Linux' measurements, because Linux has every call. Measurements that only Macadamia has follow.
fn numbered(mut measurements: Vec<Measurement>) -> Vec<Measurement> {
    let mut names: Vec<String> = Vec::new();
    let (linux, ours): (Vec<_>, Vec<_>) = measurements.iter().partition(|found| found.counter == LINUX);
    for measurement in linux.into_iter().chain(ours) {
        if !names.contains(&measurement.test) {
            names.push(measurement.test.clone());
        }
    }
    for measurement in &mut measurements {
        let index = names.iter().position(|name| *name == measurement.test).unwrap_or(names.len());
        measurement.test = format!("{index:03} {}", measurement.test);
    }
    measurements
}

/// Lines of a name, spaces, and a number.
pub(super) fn parse(printed: &str, counter: &str) -> Result<Vec<Measurement>> {
    let mut found = Vec::new();
    for line in printed.lines().filter(|line| !line.trim().is_empty()) {
        let (name, value) =
            line.trim().rsplit_once(' ').with_context(|| format!("{line:?} is no measurement"))?;
        let value: f64 = value.parse().with_context(|| format!("{line:?} is no measurement"))?;
        found.push(Measurement::single(name.trim_end().into(), counter, value));
    }
    if found.is_empty() {
        bail!("nothing was measured");
    }
    Ok(found)
}

/// The table of the costs of system calls, in Markdown.
pub(super) fn table(report: &Report) -> String {
    let rows = report.tests().into_iter().map(|test| {
        let value = |counter| report.value(test, counter);
        let shown = |counter| number_or(value(counter).map(f64::round), "-");
        let (exception, bounce) = (Mode::Exception.name(), Mode::Bounce.name());
        let ratio = value(exception).zip(value(LINUX)).map(|(ours, theirs)| format!("{:.1}", ours / theirs));
        let ratio = ratio.unwrap_or_else(|| "-".into());
        [without_place(test).into(), shown(exception), shown(bounce), shown(LINUX), ratio]
    });
    let headings = ["operation", "exception mode", "bounce mode", "Linux", "exception mode / Linux"];
    report::table(&headings, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_prints_becomes_the_table() {
        let parsed = |text, counter| parse(text, counter).unwrap();
        let mut measurements = parsed("getpid       1000\nstat /        8000\n", "exception");
        measurements.extend(parsed("getpid        500\nsemop      900\nstat /       16000\n", LINUX));
        let report = Report { series: series::collect(&numbered(measurements)), ..Report::default() };
        let table = table(&report);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        let semop = "| semop | - | - | 900 | - |";
        assert_eq!(
            rows,
            ["| getpid | 1000 | - | 500 | 2.0 |", semop, "| stat / | 8000 | - | 16 000 | 0.5 |"]
        );
        assert!(parse("", LINUX).is_err() && parse("oops", LINUX).is_err() && parse("a b", LINUX).is_err());
    }

    #[test]
    fn the_median_of_several_boots_is_published() {
        let boots = |printed: &[&str]| printed.iter().map(|it| parse(it, LINUX).unwrap()).collect();
        let found = medians(boots(&["a 1\nb 7", "b 9\na 3", "a 2\nb 8"])).unwrap();
        assert_eq!(found, parse("a 2\nb 8", LINUX).unwrap());
        assert!(medians(boots(&["a 1\nb 7", "a 3"])).is_err() && medians(Vec::new()).is_err());
    }
}
