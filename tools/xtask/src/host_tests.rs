//! Runs the tests on the host by `cargo test`, and counts them.

use anyhow::{Context, Result};
use mac_build::{command, packages, toolchain, tree};
use mac_machine::patience::Clock;
use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The numbers of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Tests that are marked as ignored.
    pub(crate) skipped: usize,
}

impl Counts {
    /// So many tests passed, and no other ran.
    pub(crate) fn of_passed(passed: usize) -> Counts {
        Counts { passed, ..Counts::default() }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.skipped += more.skipped;
    }
}

/// The variable that tells tests to run campaigns in full.
const ALL: &str = "MAC_TEST_ALL";

/// Runs the tests of all packages, programs included, whose names contain the filter (all without
/// one), showing what fails; then the model-checked tests, which are built separately
/// (`cfg(loom)`). With `campaigns`, campaigns run in full.
pub(crate) fn run(filter: Option<&str>, campaigns: bool) -> Result<Counts> {
    let host = toolchain::host_cargo();
    let all = |arguments: &[&str]| {
        let mut cargo = command::clean(&host);
        cargo.args(["test", "--locked", "--workspace", "--no-fail-fast"]).args(arguments);
        cargo.env_remove(ALL).envs(campaigns.then_some((ALL, "1")));
        cargo
    };
    let mut counts = build_and_count(all, filter.as_slice())?;
    let packages = packages::all(&host)?;
    let models: Vec<_> = packages.iter().filter(|package| package.model_checked).collect();
    if !models.is_empty() {
        let loom = |arguments: &[&str]| {
            let mut cargo = command::clean(&host);
            cargo.args(["test", "--locked", "--lib", "--no-fail-fast", "--target-dir"]);
            cargo.arg(tree::target().join("loom"));
            for package in &models {
                cargo.args(["--package", &package.name]);
            }
            with_loom(&mut cargo);
            cargo.args(arguments);
            cargo
        };
        counts += match filter {
            None => build_and_count(loom, &[MODELS])?,
            Some(filter) => chosen_models(loom, filter)?,
        };
    }
    Ok(counts)
}

/// The part of a name by which model-checked tests are recognised.
const MODELS: &str = "loom";

/// Runs the models whose names contain the filter. A test program takes several filters as
/// alternatives, not as conditions, so the tests are listed first.
fn chosen_models(tests: impl Fn(&[&str]) -> Command, filter: &str) -> Result<Counts> {
    let listing = tests(&["--quiet", "--", "--list", "--format=terse"]).output();
    let listing = listing.context("cannot start cargo test")?;
    if !listing.status.success() {
        print!("{}", String::from_utf8_lossy(&listing.stderr));
        return Ok(Counts { failed: 1, ..Counts::default() });
    }
    let listing = String::from_utf8_lossy(&listing.stdout);
    let names: Vec<&str> =
        listed(&listing).filter(|name| name.contains(MODELS) && name.contains(filter)).collect();
    if names.is_empty() {
        return Ok(Counts::default());
    }
    count(tests(&["--", "--quiet", "--exact"]).args(names))
}

/// The names in a list of tests, which has lines `NAME: test`.
fn listed(listing: &str) -> impl Iterator<Item = &str> {
    listing.lines().filter_map(|line| line.strip_suffix(": test"))
}

/// Makes a call of `cargo test` run model-checked tests. Models explore very many interleavings, so
/// they are optimised, but without the slow linking of a release.
pub(crate) fn with_loom(cargo: &mut Command) {
    cargo.arg("--release").env("CARGO_ENCODED_RUSTFLAGS", "--cfg\x1floom");
    cargo.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    cargo.env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true");
}

/// How long a test may be silent before it counts as hung.
const QUIET: Duration = Duration::from_secs(15 * 60);

/// Builds the tests of a cargo call, however long a busy machine takes for it, then runs those that
/// are `wanted`.
fn build_and_count(tests: impl Fn(&[&str]) -> Command, wanted: &[&str]) -> Result<Counts> {
    // Errors are ignored here. If something does not compile, the call that runs the tests says so
    // again and counts it.
    tests(&["--no-run", "--quiet"]).status().context("cannot start cargo test")?;
    count(tests(&["--", "--quiet"]).args(wanted))
}

/// Runs one cargo call. If cargo fails without a failed test (because a test program does not
/// compile, was killed, or hangs), that counts as one failure.
fn count(cargo: &mut Command) -> Result<Counts> {
    let mut child = cargo.stdout(Stdio::piped()).spawn().context("cannot start cargo test")?;
    let output = child.stdout.take().context("cargo test without output")?;
    let (sender, lines) = channel::<Vec<u8>>();
    std::thread::spawn(move || {
        let lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
        // The receiver is dropped only when the tests have been given up.
        lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
    });
    let mut counts = Counts::default();
    let clock = Clock::of(child.id());
    loop {
        match clock.receive(&lines, QUIET) {
            Ok(line) => {
                let line = String::from_utf8_lossy(&line);
                if !counts.read(&line) && !is_noise(&line) {
                    println!("{line}");
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                println!("not ok - host tests: no test has ended for {} min: hung", QUIET.as_secs() / 60);
                stop(child.id());
                break;
            }
        }
    }
    if !child.wait()?.success() && counts.failed == 0 {
        counts.failed = 1;
    }
    Ok(counts)
}

/// Kills a process and its descendants: a test program does not end with its cargo.
pub(crate) fn stop(process: u32) {
    let children =
        std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    // The parent is killed first. Otherwise it could see its children end, and report success.
    let all = core::iter::once(process.to_string()).chain(children.split_whitespace().map(String::from));
    // Use the shell's own `kill`, because a minimal system has no other. An error is ignored: the
    // only one that can happen is that a process has ended already.
    let _ = Command::new("sh").args(["-c", "kill -KILL \"$@\"", "sh"]).args(all).status();
}

impl Counts {
    /// Adds the numbers of a `test result:` line; returns whether it was one without failures.
    fn read(&mut self, line: &str) -> bool {
        let Some(rest) = line.strip_prefix("test result: ") else { return false };
        let number = |what: &str| -> usize {
            let words: Vec<&str> = rest.split_whitespace().collect();
            let place = words.iter().position(|word| word.trim_end_matches(';') == what);
            place.and_then(|place| words.get(place.checked_sub(1)?)?.parse().ok()).unwrap_or(0)
        };
        self.passed += number("passed");
        self.failed += number("failed");
        self.skipped += number("ignored");
        number("failed") == 0
    }
}

/// Whether a line only says that all went well.
fn is_noise(line: &str) -> bool {
    let line = line.trim_end();
    let progress = |line: &str| line.bytes().next() == Some(b'.') || line.starts_with('i');
    line.is_empty() || line.starts_with("running ") || progress(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_ends_with_what_it_started() {
        let script = "sleep 600 & echo started; wait";
        let mut shell = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(shell.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        stop(shell.id());
        // The pipe closes only when every process that holds it has ended.
        assert_eq!(std::io::read_to_string(output).unwrap(), "");
        assert!(!shell.wait().unwrap().success());
    }

    #[test]
    fn a_listing_names_tests() {
        let listing =
            "tests::loom_lock: test\ntests::plain: test\nbench: benchmark\n\n2 tests, 0 benchmarks\n";
        assert_eq!(listed(listing).collect::<Vec<_>>(), ["tests::loom_lock", "tests::plain"]);
    }

    #[test]
    fn models_are_chosen_by_both_words() {
        let shell = |script: &str| {
            let script = script.to_string();
            move |arguments: &[&str]| {
                let mut shell = Command::new("sh");
                shell.args(["-c", &script, "sh"]).args(arguments);
                shell
            }
        };
        // The script lists two models, and reports as many passed tests as it gets names.
        let tests = "case $* in *--list*) printf 'loom_a: test\nloom_b: test\n';; \
                     *) while [ \"$1\" != --exact ]; do shift; done; shift; echo \"test result: ok. $# passed;\";; esac";
        let passed = |filter: &str| chosen_models(shell(tests), filter).unwrap().passed;
        assert_eq!((passed("loom"), passed("_a"), passed("other")), (2, 1, 0));
        assert_eq!(
            chosen_models(shell("exit 1"), "a").unwrap().failed,
            1,
            "what does not compile has failed"
        );
    }

    #[test]
    fn results_are_added_up() {
        let mut counts = Counts::default();
        assert!(counts.read(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 1s"
        ));
        assert!(
            !counts.read("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out")
        );
        assert!(!counts.read("something else"));
        assert_eq!(counts, Counts { passed: 5, failed: 1, skipped: 1 });
    }
}
