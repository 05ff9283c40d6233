//! The cost of an interactive session at the shell, on Macadamia and under Debian's kernel: results
//! and table of `./mac measure`.

use super::report::{self, number_or, without_place};
use super::{Measurement, Report, empty_report, published, series};
use anyhow::Result;
use mac_guest::Kernel;

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

/// The table in Markdown. A test's name is its place in the table, what was measured, a comma and
/// the unit.
pub(super) fn table(report: &Report) -> String {
    let rows = report.tests().into_iter().map(|test| {
        let (what, unit) = without_place(test).rsplit_once(", ").unwrap_or((without_place(test), ""));
        let [ours, theirs] =
            [Kernel::Macadamia, Kernel::Linux].map(|kernel| report.value(test, column(kernel)));
        let both = ours.zip(theirs).filter(|_| !UNLIKE.iter().any(|unlike| what.starts_with(unlike)));
        let ratio = both.map_or_else(|| "-".into(), |(ours, theirs)| format!("{:.1}", ours / theirs));
        [what.into(), unit.into(), number_or(ours, "-"), number_or(theirs, "-"), ratio]
    });
    report::table(&["what", "unit", "Macadamia", "Linux", "Macadamia / Linux"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_become_a_table_of_both_kernels() {
        let measured = |test: &str, kernel, value| Measurement::single(test.into(), column(kernel), value);
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
