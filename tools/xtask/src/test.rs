//! `./mac test`: builds, lints, runs tests on the host and in booted machines, and prints one
//! closing line.

mod again;
mod selection;
mod times;

use crate::host_tests::{self, Counts};
use crate::{book, check, mutations};
use again::{Failed, Flaky};
use anyhow::{Result, bail};
use mac_build::build;
use mac_lab::bench::{self, Verified};
use mac_machine::boots::{Verdict, show};
use mac_machine::parallel::in_parallel;
use mac_machine::suites::{self, Overrides, Run};
use selection::{Filter, Selection};
use std::collections::HashSet;
use std::time::{Duration, Instant};
use times::Times;

/// Options of `./mac test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only host tests and booted suites whose name, module or test id contains this (and no
    /// lints); of a whole id, like FST0006, the suites that report this test
    filter: Option<String>,
    #[command(flatten)]
    overrides: Overrides,
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

/// The counts of everything that ran.
#[derive(Default)]
struct Score {
    counts: Counts,
    /// The duration of each part.
    times: Vec<(&'static str, Duration)>,
    /// The duration of each booted suite.
    suites: Times,
    /// The ids of the tests that suites have reported.
    reported: HashSet<String>,
    /// Runs that failed, and passed when they were repeated.
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
        score.part("lints", || check::run().map(|()| Counts::of_passed(1)));
    }
    // Only booted tests have ids.
    if !options.booted && !matches!(filter, Some(Filter::Id(_))) {
        score.part("host tests", || host_tests::run(options.filter.as_deref(), options.all));
    }
    if !options.host {
        let started = Instant::now();
        score.booted(options, filter.as_ref(), &selection)?;
        score.times.push(("booted tests", started.elapsed()));
    }
    if everything {
        score.part("commands of the book", || book::run_commands().map(Counts::of_passed));
        score.part("mutations", mutations::sample);
        score.part("published figures", || {
            let verified = bench::verify()?;
            println!("{verified}");
            Ok(match verified {
                Verified::True(_) => Counts::of_passed(1),
                Verified::Unknown(_) => Counts { skipped: 1, ..Counts::default() },
            })
        });
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

    /// A part with tests of its own. That it could not be run is a failure.
    fn part(&mut self, what: &'static str, part: impl FnOnce() -> Result<Counts>) {
        let counts = self.timed(what, part).unwrap_or_else(|error| {
            println!("not ok - {what}: {error:#}");
            Counts { failed: 1, ..Counts::default() }
        });
        self.counts += counts;
    }

    /// Runs a part without which the others make no sense: its error is the result.
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

    /// Prints the closing line.
    fn closing(&self, options: &Options) -> Result<()> {
        let Counts { passed, failed, skipped } = self.counts;
        let also = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
        println!("{passed} passed, {failed} failed{also}");
        if passed + failed + skipped == 0 {
            bail!("no test matches {:?}", options.filter.as_deref().unwrap_or_default());
        }
        if failed > 0 { bail!("{failed} failed") } else { Ok(()) }
    }

    /// Boots the selected suites, several machines at a time; then those that have failed again,
    /// each alone.
    fn booted(
        &mut self,
        options: &Options,
        filter: Option<&Filter<'_>>,
        selection: &Selection,
    ) -> Result<()> {
        println!("# booted tests");
        let (runs, excluded) = selection.runs(&options.overrides);
        let mut failed = Vec::new();
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
            self.again(failed, is_tried, options.strict)?;
        }
        for suite in excluded {
            println!("# {suite}");
            self.counts.skipped += 1;
        }
        if let Some(Filter::Id(id)) = filter {
            self.require(id);
        }
        Ok(())
    }

    /// Counts a suite that has failed. If `is_tried` is set, runs it again first: if it passes
    /// then, it is flaky.
    fn again(&mut self, failed: Failed, is_tried: bool, strict: bool) -> Result<()> {
        let boot = |run: &Run| {
            println!("# again: {}", run.name);
            let result = mac_guest::boot(run);
            if let Ok(verdict) = &result {
                show(run, verdict);
            }
            result
        };
        let passed = if is_tried { again::again(&failed, boot)? } else { None };
        match (passed, failed.result) {
            (Some((verdict, flaky)), result) => {
                self.suites.add(&failed.run.name, verdict.seconds);
                self.flaky.push(flaky);
                match (strict, result) {
                    (false, _) => self.add(&verdict),
                    (true, Ok(first)) => self.add(&first),
                    (true, Err(_)) => self.counts.failed += 1,
                }
            }
            (None, Ok(verdict)) => {
                self.suites.add(&failed.run.name, verdict.seconds);
                self.add(&verdict);
            }
            (None, Err(_)) => self.counts.failed += 1,
        }
        Ok(())
    }

    /// Counts a failure if no suite has reported this test.
    fn require(&mut self, id: &str) {
        if !self.reported.contains(id) {
            println!("not ok - {id} is in the sources, but no suite has reported it");
            self.counts.failed += 1;
        }
    }

    fn add(&mut self, verdict: &Verdict) {
        self.reported.extend(verdict.tests.iter().map(|test| test.id.clone()));
        self.counts.passed += verdict.passed();
        self.counts.failed += verdict.failed();
        self.counts.skipped +=
            verdict.tests.len() + verdict.failures.len() - verdict.passed() - verdict.failed();
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
        let skipped = Score { counts: Counts { skipped: 1, ..Counts::default() }, ..Score::default() };
        assert!(skipped.closing(&options(&["pending"])).is_ok());
        assert!(
            Score { counts: Counts { failed: 1, ..Counts::default() }, ..Score::default() }
                .closing(&options(&[]))
                .is_err()
        );
    }

    #[test]
    fn a_named_test_must_have_been_reported() {
        let test = Test { id: "FST0007".into(), sentence: String::new(), outcome: Outcome::Passed };
        let mut score = Score::default();
        score.add(&Verdict { tests: vec![test], ..Verdict::default() });
        score.require("FST0007");
        assert_eq!((score.counts.passed, score.counts.failed), (1, 0));
        score.require("FST0006");
        assert_eq!((score.counts.passed, score.counts.failed), (1, 1));
    }
}
