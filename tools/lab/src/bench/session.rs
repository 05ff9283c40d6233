//! What an interactive session at the shell costs, on Macadamia and under Debian's own kernel:
//! results and table of `./mac measure`.

use super::series;
use super::{Measurement, Report, empty_report, published, report::number};
use anyhow::Result;
use mac_guest::Kernel;
use std::fmt::Write;

/// The counter under which a kernel's figures are kept.
pub fn column(kernel: Kernel) -> &'static str {
    match kernel {
        Kernel::Macadamia => "macadamia",
        Kernel::Linux => "linux",
    }
}

/// The table of these measurements. With `publish` they become the results `name`, and the table is
/// put into the book.
pub fn session(name: &str, measurements: &[Measurement], publish: bool) -> Result<String> {
    let report = Report { series: series::collect(measurements), ..empty_report()? };
    if publish {
        published::write(name, &report)?;
        published::update_tables()?;
    }
    Ok(table(&report))
}

/// Tests that measure different things on the two kernels, so that a ratio would mean nothing. One
/// start looks for devices and the other does not; one image is compressed and the other has line
/// tables.
const UNLIKE: [&str; 2] = ["power-on to the prompt", "kernel and servers, as they are loaded"];

/// The table in Markdown. A test's name is its place, what was measured, a comma and the unit.
pub(super) fn table(report: &Report) -> String {
    let mut table =
        String::from("| what | unit | Macadamia | Linux | Macadamia / Linux |\n|---|---|---|---|---|\n");
    let value = |test: &str, kernel: Kernel| {
        let is = |series: &&series::Series| series.test == test && series.counter == column(kernel);
        report.series.iter().find(is).map(|series| series.smallest().value)
    };
    let mut tests: Vec<&str> = report.series.iter().map(|series| series.test.as_str()).collect();
    tests.dedup();
    for test in tests {
        let name = test.split_once(' ').map_or(test, |(_, name)| name);
        let (what, unit) = name.rsplit_once(", ").unwrap_or((name, ""));
        let (ours, theirs) = (value(test, Kernel::Macadamia), value(test, Kernel::Linux));
        let shown = |value: Option<f64>| value.map_or_else(|| "-".into(), number);
        let both = ours.zip(theirs).filter(|_| !UNLIKE.iter().any(|unlike| what.starts_with(unlike)));
        let ratio = both.map_or_else(|| "-".into(), |(ours, theirs)| format!("{:.1}", ours / theirs));
        // Writing to a string cannot fail.
        let _ = writeln!(table, "| {what} | {unit} | {} | {} | {ratio} |", shown(ours), shown(theirs));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_become_a_table_of_both_kernels() {
        let measured = |test: &str, kernel, value| Measurement {
            test: test.into(),
            parameter: 0.0,
            counter: column(kernel).into(),
            value,
        };
        let measurements = [
            measured("00 a thing, of two parts, KiB", Kernel::Macadamia, 1234567.0),
            measured("01 only here, seconds", Kernel::Macadamia, 1.5),
            measured("00 a thing, of two parts, KiB", Kernel::Linux, 617283.5),
            measured("02 power-on to the prompt, instructions", Kernel::Macadamia, 10.0),
            measured("02 power-on to the prompt, instructions", Kernel::Linux, 500.0),
        ];
        let report = Report { series: series::collect(&measurements), ..Report::default() };
        let rows: Vec<String> = table(&report).lines().skip(2).map(String::from).collect();
        assert_eq!(
            rows,
            [
                "| a thing, of two parts | KiB | 1 234 567 | 617 284 | 2.0 |",
                "| only here | seconds | 1.5 | - | - |",
                "| power-on to the prompt | instructions | 10 | 500 | - |"
            ]
        );
    }
}
