//! Runs tests in a copy of the tree, and says which fail.

use super::copy::Copy;
use super::patch::Witness;
use crate::host_tests;
use crate::ids::CHOOSES;
use anyhow::{Context, Result, bail};
use mac_build::build::FlagSet;
use mac_build::toolchain::{TARGET, Toolchain};
use mac_build::{build, command, toolchain, tree};
use mac_machine::patience::Clock;
use mac_machine::qemu;
use mac_machine::suites::{self, Overrides, Run, Suite};
use mac_machine::tap::Outcome;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The resources for running tests: compilers and, for booted tests, the programs of the tree.
pub(super) struct Trials {
    toolchain: Toolchain,
    suites: Vec<Suite>,
}

/// The state of tests that have been begun.
pub(super) enum Begun {
    /// They are still to be booted, with this kernel.
    Kernel(PathBuf),
    /// They have ended with these results.
    Over(Vec<Went>),
}

/// The result of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Went {
    Passed,
    /// The test has failed, with this message.
    Failed(String),
    /// The test did not run, for this reason.
    NotRun(String),
}

/// How long tests on the host may take before they count as hung.
const PATIENCE: Duration = Duration::from_secs(400);
/// How long a compilation may take. On a busy machine it takes many times what it takes on an idle
/// one, and a patch does not make it hang.
const PATIENCE_TO_COMPILE: Duration = Duration::from_secs(3600);

impl Trials {
    /// Prepares tests of these kinds: builds the programs that are booted.
    pub(super) fn prepare(witnesses: &[&Witness]) -> Result<Trials> {
        let suites = suites::read(suites::TESTS)?;
        let is_needed = |suite: &&Suite| {
            witnesses.iter().any(|witness| matches!(witness, Witness::Suite(name) if *name == suite.name))
        };
        let names = suites.iter().filter(is_needed).flat_map(Suite::programs);
        build::programs(&names.collect::<Vec<_>>())?;
        Ok(Trials { toolchain: toolchain::find()?, suites })
    }

    /// Begins tests of a witness: does the part that needs the sources of the copy. Output goes to
    /// a file called `name`.
    pub(super) fn begin(&self, copy: &Copy, witness: &Witness, tests: &[&str], name: &str) -> Result<Begun> {
        match witness {
            Witness::Package(package) => on_host(copy, package, false, tests, name).map(Begun::Over),
            Witness::Models(package) => on_host(copy, package, true, tests, name).map(Begun::Over),
            Witness::Suite(_) => Ok(match self.kernel(copy, name)? {
                Ok(kernel) => Begun::Kernel(kernel),
                Err(reason) => Begun::Over(vec![Went::NotRun(reason); tests.len()]),
            }),
        }
    }

    /// Finishes tests that were begun. Returns the result of each.
    pub(super) fn end(
        &self,
        begun: Begun,
        witness: &Witness,
        tests: &[&str],
        name: &str,
    ) -> Result<Vec<Went>> {
        let kernel = match begun {
            Begun::Over(went) => return Ok(went),
            Begun::Kernel(kernel) => kernel,
        };
        let suite = self.suites.iter().find(|suite| suite.name == witness.name());
        let verdict =
            mac_guest::boot(&only(suite.context("no suite has that name")?, tests, &kernel, name)?)?;
        fs::remove_file(kernel)?;
        let failures = verdict.failures.join(", ");
        let went = |test: &&str| match verdict.tests.iter().find(|result| result.id == *test) {
            Some(result) => match &result.outcome {
                Outcome::Passed => Went::Passed,
                Outcome::Failed => Went::Failed("fails".into()),
                Outcome::Skipped(reason) => Went::NotRun(format!("was skipped: {reason}")),
            },
            None if verdict.announced => Went::Failed(format!("does not end: {failures}")),
            // Without the patch the suite reaches this test, and with the patch it does not. So all
            // tests of the suite notice the patch.
            None => Went::Failed(format!("is not reached: {failures}")),
        };
        Ok(tests.iter().map(went).collect())
    }

    /// Builds the copy's kernel with little optimisation.
    fn kernel(&self, copy: &Copy, name: &str) -> Result<Result<PathBuf, String>> {
        let results = copy.results("kernel");
        let mut cargo = FlagSet::kernel().cargo_into(&self.toolchain, "build", &results);
        cargo.args(["--profile", PROFILE, "--package", "macadamia-kernel"]).current_dir(copy.root());
        // Builds follow each other in one directory, each with a change of a few lines.
        cargo.env("CARGO_INCREMENTAL", "1");
        // The output of the build goes to a file.
        let log = log(&format!("{name}_build"))?;
        let (said, ended) = output(&mut cargo, &log, PATIENCE_TO_COMPILE)?;
        if ended != Some(true) {
            return Ok(Err(unclear(&said, &log)));
        }
        // The kernel is copied, because the next build overwrites it.
        let kernel = results.join(format!("kernel-{name}"));
        fs::copy(results.join(TARGET).join(PROFILE).join("kernel"), &kernel)?;
        Ok(Ok(kernel))
    }
}

/// The profile of kernels that are built for one test.
const PROFILE: &str = "mutation";

/// A boot of the suite on its first machine, with only these tests if its program can select them.
fn only(suite: &Suite, tests: &[&str], kernel: &Path, name: &str) -> Result<Run> {
    let mut run = suite.runs(&Overrides::default())?.into_iter().next().context("a suite is booted")?;
    if !run.machine.boot.imageless() {
        bail!("{} is booted from an image", suite.name);
    }
    for module in run.machine.modules.iter_mut().filter(|module| qemu::module_name(module) == CHOOSES) {
        let options = module.split(' ').filter(|word| *word == "leak-check");
        let words: Vec<&str> = [CHOOSES].into_iter().chain(tests.iter().copied()).chain(options).collect();
        *module = words.join(" ");
        run.suite.tests = Some(tests.len());
    }
    run.machine.elsewhere.insert("kernel".into(), kernel.into());
    // A kernel that a patch has broken may loop for ever, so the time limit is short.
    run.limit = run.quiet * 2;
    run.name = format!("mutation {name}");
    Ok(run)
}

/// Runs tests of a package on the host, or models of it. They are compiled first, so that only the
/// tests themselves can count as hung.
fn on_host(copy: &Copy, package: &str, models: bool, tests: &[&str], name: &str) -> Result<Vec<Went>> {
    let cargo = |arguments: &[&str]| {
        let mut cargo = command::clean(toolchain::host_cargo());
        cargo.args(["test", "--locked", "--tests", "--package", package, "--target-dir"]);
        if models {
            cargo.arg(copy.results("loom"));
            host_tests::with_loom(&mut cargo);
        } else {
            cargo.arg(copy.results("host"));
        }
        cargo.args(arguments).current_dir(copy.root());
        cargo
    };
    let log = log(name)?;
    let (said, compiled) = output(&mut cargo(&["--no-run"]), &log, PATIENCE_TO_COMPILE)?;
    if compiled != Some(true) {
        return Ok(vec![Went::NotRun(unclear(&said, &log)); tests.len()]);
    }
    let (said, ended) = output(cargo(&["--", "--exact"]).args(tests), &log, PATIENCE)?;
    let went = |test: &&str| {
        let says = |word: &str| said.contains(&format!("test {test} ... {word}"));
        if says("ok") {
            Went::Passed
        } else if says("FAILED") {
            Went::Failed("fails".into())
        } else if ended.is_none() {
            Went::Failed("hangs".into())
        } else if ended == Some(true) {
            Went::NotRun(unclear(&said, &log))
        } else {
            Went::Failed("ends its program".into())
        }
    };
    Ok(tests.iter().map(went).collect())
}

/// Runs a command with a time limit. Returns its output, which also goes to `log`, and whether it
/// succeeded (`None`: it did not end in time).
fn output(command: &mut Command, log: &Path, patience: Duration) -> Result<(String, Option<bool>)> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
    let clock = Clock::of(child.id());
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status.success());
        }
        if clock.elapsed() > patience {
            host_tests::stop(child.id());
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    Ok((String::from_utf8_lossy(&fs::read(log)?).into_owned(), ended))
}

/// The file for output called `name`.
fn log(name: &str) -> Result<PathBuf> {
    let directory = tree::target().join("test-logs");
    fs::create_dir_all(&directory)?;
    Ok(directory.join(format!("mutation_{name}.log")))
}

/// The first error in the output.
fn unclear(said: &str, log: &Path) -> String {
    let error = said.lines().find(|line| line.starts_with("error"));
    let log = log.file_name().unwrap_or_default().to_string_lossy();
    format!("{} (target/test-logs/{log})", error.unwrap_or("there is no such test"))
}
