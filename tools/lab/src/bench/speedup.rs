//! Measures how much several processors speed work up: the same work on machines with one, two and
//! four, under the Unix server and under Debian's own kernel, counted on each processor by the
//! plugin.
//!
//! These boots do not run under QEMU's instruction counting. Under instruction counting several
//! processors take turns, and so do not share work as real ones do (docs/src/measuring.md). Without
//! it times mean nothing, so instructions are compared: those of the busiest of several processors,
//! with those of a single processor that does all the work.

use super::guests::{self, parse};
use super::regions::{self, Region};
use super::report::{self, numbers, tenths, without_place};
use super::session::column;
use super::{Report, empty_report, plugin};
use anyhow::{Context, Result};
use mac_build::tree;
use mac_guest::Kernel;
use mac_machine::qemu;
use mac_machine::suites::{Overrides, Suite};
use std::collections::BTreeMap;
use std::fs;

/// How the values were counted, as reports say it.
const METHOD: &str =
    "QEMU TCG, no instruction counting: instructions that the plugin sees each processor execute";

/// Boots the programs of `benchmark.guest` on each kernel and each number of processors.
pub(super) fn measure(benchmark: &Suite) -> Result<Report> {
    let runs = benchmark.runs(&Overrides::default())?;
    let (request, plugin) = (guests::request(benchmark)?, plugin()?);
    // How often data are copied is of interest where they come from a disk. It slows the emulator.
    let bulk = if benchmark.has_disk() { ",bulk=on" } else { "" };
    let directory = tree::target().join("bench/counts");
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let out = directory.join(format!("{}.jsonl", benchmark.name));
    let mut report = Report { method: METHOD.into(), ..empty_report()? };
    for run in &runs {
        for kernel in [Kernel::Macadamia, Kernel::Linux] {
            for program in &benchmark.guest {
                let mut machine = run.machine.clone();
                let option = format!("{plugin},work=on{bulk},out={}", qemu::value(&out)?);
                machine.extra.extend(["-plugin".into(), option]);
                let (command, cpus) = ([format!("/tests/bin/{program}")], machine.cpus);
                let what = || format!("{program}, {}, {cpus} processors", column(kernel));
                let printed =
                    mac_guest::output(&request, kernel, run.mode, machine, &command).with_context(what)?;
                report.regions.extend(named(&printed, &tree::read(&out)?, kernel, cpus).with_context(what)?);
                println!("{}: counted", what());
            }
        }
    }
    // The names begin with a number for the order of the pieces of work.
    report.regions.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(report)
}

/// The plugin's counts for each piece of work. A region's name consists of the work, the kernel and
/// the number of processors.
fn named(printed: &str, counted: &str, kernel: Kernel, cpus: u32) -> Result<Vec<Region>> {
    let names: Vec<regions::Name> = parse(printed, "parts")?
        .into_iter()
        .enumerate()
        .map(|(index, part)| regions::Name {
            region: format!("{index:02} {}/{cpus}/{}", part.test, column(kernel)),
            operations: part.value as u64,
        })
        .collect();
    regions::join(&names, counted)
}

/// A piece of work on one machine, and what each processor did.
struct Run<'a> {
    work: &'a str,
    cpus: &'a str,
    kernel: &'a str,
    processors: Vec<&'a Region>,
}

impl Run<'_> {
    fn most(&self) -> u64 {
        self.processors.iter().map(|region| sum(region, "instructions")).max().unwrap_or(0)
    }
}

/// The sum of a count over kernel and user.
fn sum(region: &Region, counter: &str) -> u64 {
    let of = |mode: &BTreeMap<String, u64>| mode.get(counter).copied().unwrap_or(0);
    of(&region.user) + of(&region.kernel)
}

fn runs(report: &Report) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    let mut last = "";
    for region in &report.regions {
        let mut words = region.name.rsplitn(3, '/');
        let (Some(kernel), Some(cpus), Some(work)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if region.name != last {
            runs.push(Run { work, cpus, kernel, processors: Vec::new() });
            last = &region.name;
        }
        if let Some(run) = runs.last_mut() {
            run.processors.push(region);
        }
    }
    runs
}

/// The table in Markdown: for each piece of work and number of processors what each processor did,
/// and the speed-ups.
pub(super) fn table(report: &Report) -> String {
    let runs = runs(report);
    let find = |work: &str, cpus: &str, kernel: Kernel| {
        runs.iter().find(|run| run.work == work && run.cpus == cpus && run.kernel == column(kernel))
    };
    let ours = runs.iter().filter(|run| run.kernel == column(Kernel::Macadamia));
    let rows = ours.map(|run| {
        let cells = [Kernel::Macadamia, Kernel::Linux].map(|kernel| {
            let Some(here) = find(run.work, run.cpus, kernel) else { return ["-".into(), "-".into()] };
            // In millions.
            let each = here.processors.iter().map(|region| tenths(sum(region, "instructions") as f64 / 1e6));
            let speedup = find(run.work, "1", kernel)
                .map(|alone| format!("{:.2}", alone.most() as f64 / here.most().max(1) as f64));
            [numbers(each), speedup.unwrap_or_else(|| "-".into())]
        });
        let [[ours, our_speedup], [theirs, their_speedup]] = cells;
        let (work, cpus) = (without_place(run.work).into(), run.cpus.into());
        [work, cpus, ours, our_speedup, theirs, their_speedup]
    });
    let headings = ["work", "processors", "Macadamia, each", "speed-up", "Linux, each", "speed-up"];
    report::table(&headings, rows)
}

/// The table in Markdown of what an operation costs on all processors together.
pub(super) fn costs(report: &Report) -> String {
    let runs = runs(report);
    let cost = |run: &Run| {
        let all: u64 = run.processors.iter().map(|region| sum(region, "instructions")).sum();
        all as f64 / run.processors.first().map_or(1, |region| region.operations) as f64
    };
    let rows = runs.iter().filter(|run| run.kernel == column(Kernel::Macadamia)).map(|run| {
        let is_same = |other: &&Run| {
            (other.work, other.cpus, other.kernel) == (run.work, run.cpus, column(Kernel::Linux))
        };
        let (ours, theirs) = (cost(run), runs.iter().find(is_same).map(cost));
        let ratio = theirs.map_or_else(|| "-".into(), |theirs| format!("{:.1}", ours / theirs));
        let shown = |value: Option<f64>| report::number_or(value.map(f64::round), "-");
        [without_place(run.work).into(), run.cpus.into(), shown(Some(ours)), shown(theirs), ratio]
    });
    let headings = ["operation", "processors", "Macadamia", "Linux", "Macadamia / Linux"];
    report::table(&headings, rows)
}

/// The table in Markdown of how many bytes string instructions write for an operation: what is
/// copied and cleared.
pub(super) fn copied(report: &Report) -> String {
    let runs = runs(report);
    let bytes = |run: &Run| {
        let all: u64 = run.processors.iter().map(|region| sum(region, "bulk_bytes")).sum();
        (all / run.processors.first().map_or(1, |region| region.operations)) as f64
    };
    let rows = runs.iter().filter(|run| run.kernel == column(Kernel::Macadamia)).map(|run| {
        let theirs =
            runs.iter().find(|other| (other.work, other.kernel) == (run.work, column(Kernel::Linux)));
        let shown = |value: Option<f64>| report::number_or(value, "-");
        [without_place(run.work).into(), shown(Some(bytes(run))), shown(theirs.map(bytes))]
    });
    report::table(&["operation", "Macadamia: bytes copied and cleared", "Linux"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_processor_says_how_much_is_won() {
        let line = |processor, user, kernel| {
            format!(
                "{{\"region\":0,\"processor\":{processor},\"user\":{{\"instructions\":{user},\"polling\":9}},\
                 \"kernel\":{{\"instructions\":{kernel}}}}}\n"
            )
        };
        let mut report = Report::default();
        for (kernel, cpus, counted) in [
            (Kernel::Macadamia, 1, line(0, 5_000_000, 1_000_000)),
            (Kernel::Macadamia, 2, line(0, 2_500_000, 1_500_000) + &line(1, 2_000_000, 500_000)),
            (Kernel::Linux, 1, line(0, 8_000_000, 0)),
        ] {
            report.regions.extend(named("a sort, of 7 things 8\n", &counted, kernel, cpus).unwrap());
        }
        let rows: Vec<String> = table(&report).lines().skip(2).map(String::from).collect();
        assert_eq!(
            rows,
            [
                "| a sort, of 7 things | 1 | 6 | 1.00 | 8 | 1.00 |",
                "| a sort, of 7 things | 2 | 4 / 2.5 | 1.50 | - | - |"
            ]
        );
        let rows: Vec<String> = costs(&report).lines().skip(2).map(String::from).collect();
        assert_eq!(
            rows,
            [
                "| a sort, of 7 things | 1 | 750 000 | 1 000 000 | 0.8 |",
                "| a sort, of 7 things | 2 | 812 500 | - | - |"
            ]
        );
        let counted = "{\"processor\":0,\"user\":{\"bulk_bytes\":4096},\"kernel\":{\"bulk_bytes\":8}}\n";
        let report = Report {
            regions: named("read 2\n", counted, Kernel::Macadamia, 1).unwrap(),
            ..Report::default()
        };
        assert_eq!(copied(&report).lines().last(), Some("| read | 2052 | - |"));
        assert!(named("a 1\nb 2\n", &line(0, 1, 1), Kernel::Linux, 1).is_err());
    }
}
