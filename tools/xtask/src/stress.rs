//! `./mac stress`: boots suites about races again and again, each time with other random delays in
//! the kernel, for hours.

use crate::mutations;
use anyhow::{Context, Result, bail};
use mac_build::scratch::Scratch;
use mac_build::{build, tree};
use mac_machine::boots::Verdict;
use mac_machine::qemu::module_name;
use mac_machine::suites::{self, Overrides, Run, Suite};
use std::fs;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Options of `./mac stress`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Suites of tests/suites.toml that do not count instructions, or whose program takes a seed
    #[arg(required = true)]
    suites: Vec<String>,
    /// Boot each with `delays=SEED` for these seeds, the last one not included
    #[arg(long, value_name = "FROM..TO", value_parser = parse_seeds)]
    seeds: Range<u64>,
    /// Begin no boot after so many minutes
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Boot with this many processors instead of the most that the suite names
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    cpus: Option<u32>,
    /// Keep the console's output of boots that pass, too, in target/test-logs
    #[arg(long)]
    keep: bool,
}

/// The results of the boots of a suite.
#[derive(Default)]
struct Sum {
    boots: usize,
    passed: usize,
    skipped: usize,
    /// The seeds with which a test failed.
    failed: Vec<u64>,
}

/// Builds; then boots each suite once for each seed, one machine at a time, and prints what failed
/// and how many tests passed. The booted files are copied first, so that builds during the run do
/// not disturb it.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut suites = suites::read(suites::TESTS)?;
    if let Some(name) = options.suites.iter().find(|&name| suites.iter().all(|suite| suite.name != *name)) {
        bail!("there is no suite {name:?}");
    }
    suites.retain(|suite| options.suites.contains(&suite.name));
    build::kernel_and_programs(&suites.iter().flat_map(Suite::programs).collect::<Vec<_>>())?;
    let runs = choose(&suites, options.cpus)?;
    let images = Scratch::new("stress")?;
    let runs = runs.into_iter().map(|run| copied(run, &images)).collect::<Result<Vec<_>>>()?;
    println!("# the tree is at {}", mutations::commit()?);
    let started = Instant::now();
    let until = options.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let mut sums: Vec<_> = runs.iter().map(|_| Sum::default()).collect();
    let mut end = options.seeds.start;
    for seed in options.seeds.clone() {
        if until.is_some_and(|until| started.elapsed() >= until) {
            break;
        }
        for (run, sum) in runs.iter().zip(&mut sums) {
            sum.add(seed, &boot(&seeded(run, seed), options.keep)?);
        }
        end = seed + 1;
    }
    println!("# seeds {}..{end}, {:.1} min", options.seeds.start, started.elapsed().as_secs_f64() / 60.0);
    for (run, sum) in runs.iter().zip(&sums) {
        let Sum { boots, passed, skipped, failed } = sum;
        println!(
            "{}: {boots} boots, {passed} tests passed, {skipped} skipped, failed seeds: {failed:?}",
            run.name
        );
    }
    if sums.iter().any(|sum| !sum.failed.is_empty()) {
        bail!("not all passed");
    }
    Ok(())
}

fn parse_seeds(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("two numbers with .. between them")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
    match (number(from)?, number(to)?) {
        (0, _) => Err("seed 0 means no delays".into()),
        (from, to) if from < to => Ok(from..to),
        _ => Err("there is none".into()),
    }
}

/// Chooses one machine for each suite: the one with the most processors of those whose boots can
/// differ. Boots can differ if a program of the suite takes a seed, if the machine's processors run
/// in parallel, or if its single processor does not run under instruction counting.
fn choose(suites: &[Suite], cpus: Option<u32>) -> Result<Vec<Run>> {
    let overrides = Overrides { cpus, ..Overrides::default() };
    let takes_seed = |run: &Run| run.machine.modules.iter().any(|module| module.contains(" seed="));
    let is_free = |run: &Run| (run.machine.cpus > 1 || cpus == Some(1)) && !run.machine.icount;
    let differs = |run: &Run| takes_seed(run) || is_free(run);
    let machine = |suite: &Suite| {
        let runs = suite.runs(&overrides).unwrap_or_default();
        let most = runs.into_iter().filter(differs).max_by_key(|run| run.machine.cpus);
        most.with_context(|| format!("every boot of suite {:?} is the same", suite.name))
    };
    suites.iter().map(machine).collect()
}

/// A run that uses copies of the files of `run`.
fn copied(mut run: Run, images: &Scratch) -> Result<Run> {
    let modules = run.machine.modules.iter().map(|module| module_name(module).to_string());
    for name in std::iter::once("kernel".to_string()).chain(modules) {
        let file = images.0.join(&name);
        if !file.exists() {
            let from = tree::boot().join(&name);
            fs::copy(&from, &file).with_context(|| format!("copying {}", from.display()))?;
        }
        run.machine.elsewhere.insert(name, file);
    }
    Ok(run)
}

/// A run with delays from this seed, which programs that take a seed get as an argument, too.
fn seeded(run: &Run, seed: u64) -> Run {
    let mut run = run.clone();
    for module in &mut run.machine.modules {
        let words = module.split(' ').map(|word| match word.starts_with("seed=") {
            true => format!("seed={seed}"),
            false => word.to_string(),
        });
        *module = words.collect::<Vec<_>>().join(" ");
    }
    let others = run.machine.arguments.split(' ').filter(|word| !word.starts_with("delays="));
    run.machine.arguments = others.chain([format!("delays={seed}").as_str()]).collect::<Vec<_>>().join(" ");
    run.name = format!("{} with delays={seed}", run.name);
    run
}

/// Boots once, and keeps the console's output only if something failed or `keep` is set.
fn boot(run: &Run, keep: bool) -> Result<Verdict> {
    let verdict = mac_guest::boot(run)?;
    if verdict.failed() == 0 {
        if !keep {
            fs::remove_file(&verdict.log)?;
        }
        println!("ok - {} ({} tests, {:.1} s)", run.name, verdict.tests.len(), verdict.seconds);
    } else {
        mac_machine::boots::show(run, &verdict);
    }
    Ok(verdict)
}

impl Sum {
    fn add(&mut self, seed: u64, verdict: &Verdict) {
        self.boots += 1;
        self.passed += verdict.passed();
        if verdict.failed() > 0 {
            self.failed.push(seed);
        } else {
            self.skipped += verdict.tests.len() - verdict.passed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_without_zero() {
        assert_eq!(parse_seeds("1..10"), Ok(1..10));
        assert!(["0..3", "3", "3..3", "4..3", "a..b"].iter().all(|text| parse_seeds(text).is_err()));
    }

    #[test]
    fn one_processor_is_booted_only_if_it_is_asked_for() {
        let suites = suites::read(suites::TESTS).expect("the table is good");
        let messages: Vec<_> = suites.into_iter().filter(|suite| suite.name == "servers/messages").collect();
        let processors = |cpus| choose(&messages, cpus).map(|runs| runs[0].machine.cpus).ok();
        assert_eq!([None, Some(1), Some(4)].map(processors), [2, 1, 4].map(Some));
    }

    #[test]
    fn the_seed_replaces_that_of_the_table() {
        let suites = suites::read(suites::TESTS).expect("the table is good");
        let delayed: Vec<_> = suites.into_iter().filter(|suite| suite.name == "x2/smp-delays").collect();
        let runs = choose(&delayed, None).expect("it runs with four processors");
        let run = seeded(&runs[0], 77);
        assert!(run.machine.arguments.ends_with(" delays=77") && !run.machine.arguments.contains("delays=1"));
    }
}
