//! `./mac test`: builds, lints, tests on the host and in booted machines, and one closing line.

use crate::bench::{self, Verified};
use crate::boots::{self, Verdict};
use crate::qemu::Accelerator;
use crate::suites::{self, Excluded, Overrides, Run, Suite};
use crate::tap::Outcome;
use crate::{build, check, host_tests, mutations};
use anyhow::{Result, bail};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Options of `./mac test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only host tests and booted suites whose name, module or test id contains this (and no lints)
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
}

/// The score of everything that ran.
#[derive(Default)]
struct Score {
    passed: usize,
    failed: usize,
    skipped: usize,
    /// What each part took.
    times: Vec<(&'static str, Duration)>,
}

/// Runs the tests. Prints what failed, why, and one closing line; an error if anything failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let all = !options.booted && !options.host;
    let mut score = Score::default();
    if !options.host {
        let suites = chosen(options.filter.as_deref())?;
        if options.booted && suites.is_empty() {
            return score.close(options);
        }
        score.step("build", || match options.booted {
            true => build::for_suites(&suites),
            false => build::everything(&build::Options::default()).map(drop),
        })?;
    }
    if all && options.filter.is_none() {
        let clean = score.timed("lints", check::run);
        match clean {
            Ok(()) => score.passed += 1,
            Err(error) => {
                eprintln!("not ok - lints: {error:#}");
                score.failed += 1;
            }
        }
    }
    if !options.booted {
        let counts = score.timed("host tests", || host_tests::run(options.filter.as_deref()))?;
        score.passed += counts.passed;
        score.failed += counts.failed;
        score.skipped += counts.ignored;
    }
    if !options.host {
        let started = Instant::now();
        booted(options, &mut score)?;
        score.times.push(("booted tests", started.elapsed()));
    }
    if all && options.filter.is_none() {
        let counts = score.timed("mutations", mutations::sample)?;
        score.passed += counts.noticed;
        score.failed += counts.failed;
        match score.timed("published figures", bench::verify) {
            Ok(Verified::True(points)) => {
                println!("ok - published figures: {points} points are what they were");
                score.passed += 1;
            }
            Ok(Verified::Unknown(reason)) => {
                println!("# published figures are not measured anew: {reason}");
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
        if self.passed + self.failed == 0 {
            println!("0 passed, 0 failed");
            bail!("no test matches {:?}", options.filter.as_deref().unwrap_or_default());
        }
        let skipped = if self.skipped > 0 { format!(", {} skipped", self.skipped) } else { String::new() };
        println!("{} passed, {} failed{skipped}", self.passed, self.failed);
        if self.failed > 0 { bail!("{} failed", self.failed) } else { Ok(()) }
    }
}

/// Boots what the filter chose, several machines at a time, and adds to the score.
fn booted(options: &Options, score: &mut Score) -> Result<()> {
    println!("# booted tests");
    let overrides = Overrides {
        cpus: options.cpus,
        memory: options.memory.clone(),
        accelerator: Some(options.accel),
        uefi: options.uefi,
    };
    let (runs, excluded) = choose(options.filter.as_deref(), &overrides)?;
    let report = |run: &Run, result: Result<Verdict>| match result {
        Ok(verdict) => {
            score.passed += verdict.passed();
            score.failed += verdict.failed();
            score.skipped +=
                verdict.tests.len() + verdict.failures.len() - verdict.passed() - verdict.failed();
            show(run, &verdict);
        }
        Err(error) => {
            println!("not ok - {}: {error:#}", run.name);
            score.failed += 1;
        }
    };
    in_parallel(runs, report);
    for suite in excluded {
        println!("# {} is not run: {}", suite.name, suite.reason);
        score.skipped += 1;
    }
    Ok(())
}

/// The suites that a filter means.
fn chosen(filter: Option<&str>) -> Result<Vec<Suite>> {
    let mut suites = suites::read(suites::TESTS)?;
    suites.extend(suites::read(suites::GUESTS)?);
    suites.retain(|suite| filter.is_none_or(|filter| suite.matches(filter)));
    Ok(suites)
}

fn choose(filter: Option<&str>, overrides: &Overrides) -> Result<(Vec<Run>, Vec<Excluded>)> {
    let mut runs = Vec::new();
    let mut excluded = Vec::new();
    for suite in &chosen(filter)? {
        if let Some(reason) = &suite.pending {
            excluded.push(Excluded { name: suite.name.clone(), reason: reason.clone() });
            continue;
        }
        match suite.runs(overrides) {
            Ok(more) => runs.extend(more),
            Err(suite) => excluded.push(suite),
        }
    }
    Ok((runs, excluded))
}

/// Runs machines on as many host processors as there are; reports each as it ends. A machine with several processors
/// takes as many host processors, all of them at most.
pub(crate) fn in_parallel(runs: Vec<Run>, mut report: impl FnMut(&Run, Result<Verdict>)) {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let width = |run: &Run| (run.machine.cpus as usize).min(processors);
    let mut waiting = runs;
    // The wide ones first, so that they do not wait at the end for a gap.
    waiting.sort_by_key(|run| std::cmp::Reverse(width(run)));
    let mut free = processors;
    std::thread::scope(|scope| {
        let (sender, done) = channel();
        let mut running = 0;
        while running > 0 || !waiting.is_empty() {
            if let Some(next) = waiting.iter().position(|run| width(run) <= free) {
                let run = waiting.remove(next);
                free -= width(&run);
                running += 1;
                let sender = sender.clone();
                scope.spawn(move || {
                    let result = boots::run(&run);
                    // The receiver outlives every runner: it waits for all of them.
                    let _ = sender.send((run, result));
                });
                continue;
            }
            if let Ok((run, result)) = done.recv() {
                running -= 1;
                free += width(&run);
                report(&run, result);
            }
        }
    });
}

pub(crate) fn show(run: &Run, verdict: &Verdict) {
    let word = if verdict.failed() == 0 { "ok" } else { "not ok" };
    println!("{word} - {} ({} tests, {:.1} s)", run.name, verdict.tests.len(), verdict.seconds);
    for test in &verdict.tests {
        match &test.outcome {
            Outcome::Passed => {}
            Outcome::Failed => println!("    failed: {} {}", test.id, test.sentence),
            Outcome::Skipped(reason) => println!("    skipped: {} {} ({reason})", test.id, test.sentence),
        }
    }
    for failure in &verdict.failures {
        println!("    failed: {failure}");
    }
    if verdict.failed() > 0 {
        println!("    this suite: {}", run.suite.about);
        println!("    the console's last lines (all of them: {}):", verdict.log.display());
        for line in &verdict.tail {
            println!("    | {line}");
        }
    }
}
