//! Repeats runs that have failed, each alone. One that passes then is flaky, and the log of its
//! failure is kept.

use anyhow::{Context, Result};
use mac_build::tree;
use mac_machine::boots::Verdict;
use mac_machine::suites::Run;
use std::fs;
use std::path::{Path, PathBuf};

/// How often a run that has failed is repeated at most.
const TIMES: usize = 2;

/// If more runs than this fail, something is wrong with the tree or the host, and none is repeated.
pub(super) const MANY: usize = 10;

/// The page that lists the suites that are known to be flaky.
const PAGE: &str = "docs/results/flaky.md";

/// A run that has failed, and then passed without any change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flaky {
    name: String,
    /// The log of the first failure, or why there is none.
    failure: String,
    /// How often the run has failed.
    failed: usize,
}

/// A run that has failed the first time.
pub(super) struct Failed {
    pub(super) run: Run,
    pub(super) result: Result<Verdict>,
}

/// Repeats the run by `boot`. Returns the verdict with which it passed, if it did, and the log of
/// its first failure.
pub(super) fn again(
    failed: &Failed,
    mut boot: impl FnMut(&Run) -> Result<Verdict>,
) -> Result<Option<(Verdict, Flaky)>> {
    let failure = match &failed.result {
        Ok(verdict) => kept(&verdict.log)?,
        Err(error) => format!("{error:#}"),
    };
    for time in 1..=TIMES {
        if let Ok(verdict) = boot(&failed.run)
            && verdict.failed() == 0
        {
            let flaky = Flaky { name: failed.run.name.clone(), failure, failed: time };
            return Ok(Some((verdict, flaky)));
        }
    }
    Ok(None)
}

/// Moves the log of a failure, so that the next run does not overwrite it.
fn kept(log: &Path) -> Result<String> {
    if log.as_os_str().is_empty() {
        return Ok("without a log".into());
    }
    let kept = log.with_extension("failed.log");
    fs::rename(log, &kept).with_context(|| format!("keeping {}", log.display()))?;
    Ok(tree::name(&kept))
}

/// Prints which runs are flaky, and whether that is known.
pub(super) fn report(all: &[Flaky]) -> Result<()> {
    let page = tree::read(&page())?;
    for flaky in all {
        println!("# flaky: {} ({})", flaky.name, flaky.failure);
        let times = if flaky.failed == 1 { "once".into() } else { format!("{} times", flaky.failed) };
        let known = if is_listed(&page, &flaky.name) { "is listed" } else { "is not yet listed" };
        println!("#     failed {times}, then passed; {known} in {PAGE}");
    }
    Ok(())
}

fn page() -> PathBuf {
    tree::root().join(PAGE)
}

/// Whether a table of the page has a row for this run, or for its suite on any machine.
fn is_listed(page: &str, name: &str) -> bool {
    let suite = name.split('[').next().unwrap_or(name);
    let first = |line: &str| line.strip_prefix("| ").and_then(|row| row.split(" |").next()).map(String::from);
    page.lines().filter_map(first).any(|listed| {
        let listed = listed.trim().trim_matches('`');
        listed == name || listed == suite
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mac_machine::suites::{self, Overrides};

    fn failed(result: Result<Verdict>) -> Failed {
        let suites = suites::read(suites::TESTS).unwrap();
        Failed { run: suites[0].runs(&Overrides::default()).unwrap().swap_remove(0), result }
    }

    fn broken() -> Verdict {
        Verdict { failures: vec!["hung".into()], ..Verdict::default() }
    }

    #[test]
    fn what_passes_when_it_is_run_again_is_flaky_and_its_log_is_kept() {
        let directory = mac_build::scratch::Scratch::new("again").unwrap();
        let log = directory.0.join("suite.log");
        fs::write(&log, "the failure").unwrap();
        let first = failed(Ok(Verdict { log: log.clone(), ..broken() }));
        let mut boots = 0;
        let mut second_passes = |_: &Run| {
            boots += 1;
            fs::write(&log, "another run").unwrap();
            Ok(if boots == 2 { Verdict::default() } else { broken() })
        };
        let (_, flaky) = again(&first, &mut second_passes).unwrap().expect("it has passed");
        assert_eq!((flaky.failed, boots), (2, 2));
        assert_eq!(fs::read_to_string(&flaky.failure).unwrap(), "the failure");
    }

    #[test]
    fn what_fails_again_has_failed() {
        let mut boots = 0;
        let never = |_: &Run| {
            boots += 1;
            Ok(broken())
        };
        assert!(again(&failed(Err(anyhow::anyhow!("no QEMU"))), never).unwrap().is_none());
        assert_eq!(boots, TIMES);
    }

    #[test]
    fn a_page_lists_runs_or_whole_suites() {
        let page =
            "# Flaky\n\n| suite | since |\n|---|---|\n| `guests/a` | x |\n| `guests/b[4 cpus]` | y |\n";
        assert!(is_listed(page, "guests/a[2 cpus, bounce]") && is_listed(page, "guests/b[4 cpus]"));
        assert!(!is_listed(page, "guests/b[2 cpus]") && !is_listed(page, "guests"));
        assert!(page_is_there());
    }

    fn page_is_there() -> bool {
        super::page().is_file()
    }
}
