//! Runs several machines at a time, as many as the host has processors for.

use crate::boots::Verdict;
use crate::suites::Run;
use anyhow::Result;
use std::sync::mpsc::channel;

/// Boots machines in parallel, and reports each as it ends. `seconds` gives the duration of a run
/// when it was last made, if that is known.
pub fn in_parallel(
    runs: Vec<Run>,
    boot: fn(&Run) -> Result<Verdict>,
    seconds: impl Fn(&Run) -> Option<f64>,
    mut report: impl FnMut(&Run, Result<Verdict>),
) {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut waiting = in_order(runs, processors, seconds);
    let mut free = processors;
    std::thread::scope(|scope| {
        let (sender, done) = channel();
        let mut running = 0;
        while running > 0 || !waiting.is_empty() {
            if let Some(next) = waiting.iter().position(|run| width(run, processors) <= free) {
                let run = waiting.remove(next);
                free -= width(&run, processors);
                running += 1;
                let sender = sender.clone();
                scope.spawn(move || {
                    let result = boot(&run);
                    // The receiver exists longer than the threads that send, since it waits for all
                    // of them.
                    let _ = sender.send((run, result));
                });
                continue;
            }
            if let Ok((run, result)) = done.recv() {
                running -= 1;
                free += width(&run, processors);
                report(&run, result);
            }
        }
    });
}

/// How many processors of the host a machine takes: as many as it has, but no more than the host
/// has. A machine where instructions are counted takes one, because its processors take turns
/// there. A machine with guests takes one, too: its scripts run one program after the other, so
/// that most of its processors are idle most of the time.
fn width(run: &Run, processors: usize) -> usize {
    let is_narrow = run.machine.icount || run.suite.image.is_some();
    if is_narrow { 1 } else { (run.machine.cpus as usize).min(processors) }
}

/// Orders runs: those that take most processors first, so that they need not wait at the end for
/// enough free ones. Among equal ones the longest is first.
fn in_order(mut runs: Vec<Run>, processors: usize, seconds: impl Fn(&Run) -> Option<f64>) -> Vec<Run> {
    let tenths = |run: &Run| seconds(run).map_or(0, |seconds| (seconds * 10.0) as u64);
    runs.sort_by_key(|run| std::cmp::Reverse((width(run, processors), tenths(run))));
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::{self, Overrides};

    #[test]
    fn the_wide_and_the_long_are_first() {
        let suites = suites::read(suites::TESTS).unwrap();
        let named = |name: &str| suites.iter().find(|suite| suite.name == name).unwrap();
        let runs = |name: &str| named(name).runs(&Overrides::default()).unwrap();
        let all = [runs("x2/kip"), runs("x2/string"), runs("x2/smp"), runs("x2/smp-icount")].concat();
        let seconds = |run: &Run| (run.suite.name == "x2/string").then_some(9.5);
        let order: Vec<_> = in_order(all, 2, seconds).into_iter().map(|run| run.name).collect();
        assert_eq!(order[..3], ["x2/smp[2 cpus]", "x2/smp[4 cpus]", "x2/string"]);
        let counted = &runs("x2/smp-icount")[1];
        assert_eq!((counted.machine.cpus, width(counted, 2)), (4, 1), "its processors take turns");
        let guests = suites::read(suites::GUESTS).unwrap();
        assert!(
            guests
                .iter()
                .flat_map(|suite| suite.runs(&Overrides::default()).unwrap())
                .all(|run| width(&run, 2) == 1)
        );
    }
}
