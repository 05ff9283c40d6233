//! `./mac test`: builds, lints, runs tests on the host and in booted machines, and prints one
//! closing line.

mod again;
mod selection;
mod times;

use crate::{book, check, host_tests, mutations};
use again::{Failed, Flaky};
use anyhow::{Result, bail};
use mac_build::build;
use mac_lab::bench::{self, Verified};
use mac_machine::boots::{Verdict, show};
use mac_machine::parallel::in_parallel;
use mac_machine::qemu::Accelerator;
use mac_machine::suites::{self, Overrides, Run};
use selection::{Filter, Selection};
use std::time::{Duration, Instant};
use times::Times;

/// Options of `./mac test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only host tests and booted suites whose name, module or test id contains this (and no
    /// lints); of a whole id, like FST0006, the suites that report this test
    filter: Option<String>,
    /// Boot every suite with this many processors instead of its own choices
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    cpus: Option<u32>,
    /// Memory of every machine, as QEMU writes it (128M, 2G)
    #[arg(long, value_name = "M")]
    memory: Option<String>,
    /// What executes the guest's instructions
    #[arg(long, value_enum, default_value = "tcg")]
    accel: Accelerator,
    /// Boot every suite through UEFI
    #[arg(long)]
    uefi: bool,
    /// Only the booted suites
    #[arg(long)]
    booted: bool,
    /// Only the tests on the host
    #[arg(long, conflicts_with = "booted")]
    host: bool,
    /// Run campaigns (fuzzing, kills, fork stress, hours of processes) in full, not only for a
    /// minute each
    #[arg(long)]
    all: bool,
    /// A suite that fails and passes when it is run again has failed
    #[arg(long)]
    strict: bool,
}

/// The score of everything that ran.
#[derive(Default)]
struct Score {
    passed: usize,
    failed: usize,
    skipped: usize,
    /// What each part took.
    times: Vec<(&'static str, Duration)>,
    /// What each booted suite took.
    suites: Times,
    /// What failed, and passed when it was run again.
    flaky: Vec<Flaky>,
}

/// Runs the tests. Prints what failed, why, and one closing line. Returns an error if a test
/// failed, or if there was none to run.
pub(crate) fn run(options: &Options) -> Result<()> {
    let everything = !options.booted && !options.host && options.filter.is_none();
    let filter = options.filter.as_deref().map(Filter::of);
    let mut score = Score::default();
    let mut selection = Selection::default();
    if !options.host {
        selection = Selection::of(filter.as_ref(), options.all)?;
        if selection.is_empty() && (options.booted || matches!(filter, Some(Filter::Id(_)))) {
            return score.close(options);
        }
        score.step("build", || match options.booted {
            true => suites::build(&selection.suites),
            false => build::everything(&build::Options::default()).map(drop),
        })?;
    }
    if everything {
        let clean = score.timed("lints", check::run);
        match clean {
            Ok(()) => score.passed += 1,
            Err(error) => {
                eprintln!("not ok - lints: {error:#}");
                score.failed += 1;
            }
        }
    }
    // Tests on the host have names and no ids.
    if !options.booted && !matches!(filter, Some(Filter::Id(_))) {
        let host = || host_tests::run(options.filter.as_deref(), options.all);
        let counts = score.timed("host tests", host)?;
        score.passed += counts.passed;
        score.failed += counts.failed;
        score.skipped += counts.ignored;
    }
    if !options.host {
        let started = Instant::now();
        score.booted(options, filter.as_ref(), &selection)?;
        score.times.push(("booted tests", started.elapsed()));
    }
    if everything {
        match score.timed("commands of the book", book::run_commands) {
            Ok(count) => score.passed += count,
            Err(error) => {
                println!("not ok - commands of the book: {error:#}");
                score.failed += 1;
            }
        }
        let counts = score.timed("mutations", mutations::sample)?;
        score.passed += counts.noticed;
        score.failed += counts.failed;
        match score.timed("published figures", bench::verify) {
            Ok(Verified::True(points)) => {
                println!("ok - published figures: {points} points are what they were");
                score.passed += 1;
            }
            Ok(Verified::Unknown(reason)) => {
                println!("# published figures are not measured again: {reason}");
                score.skipped += 1;
            }
            Err(error) => {
                println!("not ok - published figures: {error:#}");
                score.failed += 1;
            }
        }
    }
    score.close(options)
}

impl Score {
    fn timed<T>(&mut self, what: &'static str, part: impl FnOnce() -> T) -> T {
        println!("# {what}");
        let started = Instant::now();
        let result = part();
        self.times.push((what, started.elapsed()));
        result
    }

    /// A part without which nothing else makes sense: its failure is the verdict.
    fn step(&mut self, what: &'static str, part: impl FnOnce() -> Result<()>) -> Result<()> {
        let result = self.timed(what, part);
        if result.is_err() {
            println!("0 passed, 1 failed");
        }
        result
    }

    fn close(&self, options: &Options) -> Result<()> {
        for (what, time) in &self.times {
            println!("# {what}: {:.1} min", time.as_secs_f64() / 60.0);
        }
        self.suites.close()?;
        if !self.flaky.is_empty() {
            again::report(&self.flaky)?;
        }
        self.closing(options)
    }

    /// The closing line.
    fn closing(&self, options: &Options) -> Result<()> {
        let skipped = if self.skipped > 0 { format!(", {} skipped", self.skipped) } else { String::new() };
        println!("{} passed, {} failed{skipped}", self.passed, self.failed);
        if self.passed + self.failed + self.skipped == 0 {
            bail!("no test matches {:?}", options.filter.as_deref().unwrap_or_default());
        }
        if self.failed > 0 { bail!("{} failed", self.failed) } else { Ok(()) }
    }

    /// Boots what was selected, several machines at a time, then what has failed once more, each
    /// alone.
    fn booted(
        &mut self,
        options: &Options,
        filter: Option<&Filter<'_>>,
        selection: &Selection,
    ) -> Result<()> {
        println!("# booted tests");
        let overrides = Overrides {
            cpus: options.cpus,
            memory: options.memory.clone(),
            accelerator: Some(options.accel),
            uefi: options.uefi,
        };
        let (runs, excluded) = selection.runs(&overrides);
        let mut failed = Vec::new();
        let mut reported = Reported::new(filter);
        let times = Times::read();
        self.suites = Times::read();
        let report = |run: &Run, result: Result<Verdict>| {
            match &result {
                Ok(verdict) => show(run, verdict),
                Err(error) => println!("not ok - {}: {error:#}", run.name),
            }
            match result {
                Ok(verdict) if verdict.failed() == 0 => {
                    self.suites.add(&run.name, verdict.seconds);
                    reported.hear(&verdict);
                    self.add(&verdict);
                }
                result => failed.push(Failed { run: run.clone(), result }),
            }
        };
        in_parallel(runs, mac_guest::boot, |run| times.of(&run.name), report);
        if failed.len() > again::MANY {
            println!("# {} suites have failed: none is run again", failed.len());
        }
        let is_tried = failed.len() <= again::MANY;
        for failed in failed {
            self.again(failed, is_tried, options.strict, &mut reported)?;
        }
        for suite in excluded {
            println!("# {} is not run: {}", suite.name, suite.reason);
            self.skipped += 1;
        }
        if let Some(id) = reported.missing() {
            println!("not ok - {id} is in the sources, but no suite has reported it");
            self.failed += 1;
        }
        Ok(())
    }

    /// Counts a suite that has failed. If `is_tried` is set, runs it again first: if it passes
    /// then, it is flaky.
    fn again(
        &mut self,
        failed: Failed,
        is_tried: bool,
        strict: bool,
        reported: &mut Reported<'_>,
    ) -> Result<()> {
        let boot = |run: &Run| {
            println!("# again: {}", run.name);
            let result = mac_guest::boot(run);
            if let Ok(verdict) = &result {
                show(run, verdict);
            }
            result
        };
        let passed = if is_tried { again::again(&failed, boot)? } else { None };
        if let Ok(verdict) = &failed.result {
            reported.hear(verdict);
        }
        match (passed, failed.result) {
            (Some((verdict, flaky)), result) => {
                self.suites.add(&failed.run.name, verdict.seconds);
                self.flaky.push(flaky);
                match (strict, result) {
                    (false, _) => self.add(&verdict),
                    (true, Ok(first)) => self.add(&first),
                    (true, Err(_)) => self.failed += 1,
                }
            }
            (None, Ok(verdict)) => {
                self.suites.add(&failed.run.name, verdict.seconds);
                self.add(&verdict);
            }
            (None, Err(_)) => self.failed += 1,
        }
        Ok(())
    }

    fn add(&mut self, verdict: &Verdict) {
        self.passed += verdict.passed();
        self.failed += verdict.failed();
        self.skipped += verdict.tests.len() + verdict.failures.len() - verdict.passed() - verdict.failed();
    }
}

/// Whether the test that the filter names has been reported.
struct Reported<'a> {
    wanted: Option<&'a str>,
}

impl<'a> Reported<'a> {
    fn new(filter: Option<&Filter<'a>>) -> Self {
        let wanted = match filter {
            Some(Filter::Id(id)) => Some(*id),
            _ => None,
        };
        Reported { wanted }
    }

    fn hear(&mut self, verdict: &Verdict) {
        if self.wanted.is_some_and(|id| verdict.tests.iter().any(|test| test.id == id)) {
            self.wanted = None;
        }
    }

    fn missing(self) -> Option<&'a str> {
        self.wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use mac_machine::tap::{Outcome, Test};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(line: &[&str]) -> Options {
        Line::parse_from([&["test"], line].concat()).options
    }

    #[test]
    fn a_filter_that_means_no_test_is_an_error() {
        for line in [["--booted", "no-such-suite"], ["--booted", "FST9999"], ["--strict", "FST9999"]] {
            let error = run(&options(&line)).unwrap_err().to_string();
            assert_eq!(error, format!("no test matches {:?}", line[1]));
        }
    }

    #[test]
    fn what_is_only_skipped_has_been_matched() {
        let skipped = Score { skipped: 1, ..Score::default() };
        assert!(skipped.closing(&options(&["pending"])).is_ok());
        assert!(Score { failed: 1, ..Score::default() }.closing(&options(&[])).is_err());
    }

    #[test]
    fn a_named_test_must_have_been_reported() {
        let verdict = |id: &str| {
            let test = Test { id: id.into(), sentence: String::new(), outcome: Outcome::Passed };
            Verdict { tests: vec![test], ..Verdict::default() }
        };
        let filter = Filter::of("FST0006");
        let mut reported = Reported::new(Some(&filter));
        reported.hear(&verdict("FST0007"));
        assert_eq!(reported.wanted, Some("FST0006"));
        reported.hear(&verdict("FST0006"));
        assert_eq!(reported.missing(), None);
        assert_eq!(Reported::new(Some(&Filter::of("fast"))).missing(), None);
    }
}
