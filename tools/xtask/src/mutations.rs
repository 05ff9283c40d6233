//! `./mac mutations`: shows that the tests notice the defects for which they were written. Each
//! patch of `tests/mutations` removes one check and names the test that must fail then. A patch
//! that its test does not notice is a failure, and so is one that no longer applies.
//!
//! Patches are applied to a copy of the tree, one at a time. For a patch whose test is booted, only
//! the kernel is built, quickly, and one machine is booted. It runs only that test if the suite's
//! program can select it. Each test must first pass without any patch in this way.

mod copy;
mod patch;
mod record;
mod trial;

use crate::host_tests::Counts;
use anyhow::{Result, bail};
use copy::Copy;
use mac_build::{scratch, tree};
use mac_machine::suites;
use patch::{Patch, Witness};
use record::Record;
pub(crate) use record::commit;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use trial::{Begun, Trials, Went};

/// Options of `./mac mutations`.
#[derive(clap::Args, Default)]
pub(crate) struct Options {
    /// Only these patches of tests/mutations, by name
    names: Vec<String>,
    /// Only those that tests on the host notice
    #[arg(long, conflicts_with = "booted")]
    host: bool,
    /// Only those that booted tests notice
    #[arg(long)]
    booted: bool,
    /// Only those that their tests are not known to notice: what tests/mutations/log lacks
    #[arg(long)]
    missing: bool,
    /// Keep the result of each patch in tests/mutations/log
    #[arg(long)]
    record: bool,
}

/// The patches that `./mac test` tries: some of each kind that take only seconds, and that show
/// best whether the tests notice anything at all.
const SAMPLE: [&str; 4] = ["confined-send", "fast-version", "map-control-owner", "quota"];

/// Tries the patches, and prints the result of each.
pub(crate) fn run(options: &Options) -> Result<()> {
    let counts = attempt(options)?;
    println!("{} noticed, {} failed", counts.passed, counts.failed);
    if counts.failed > 0 { bail!("{} mutations are not noticed", counts.failed) } else { Ok(()) }
}

/// Tries a few patches.
pub(crate) fn sample() -> Result<Counts> {
    attempt(&Options { names: SAMPLE.map(String::from).to_vec(), ..Options::default() })
}

/// Tries patches. Those that were noticed have passed, the others have failed.
fn attempt(options: &Options) -> Result<Counts> {
    let all = read_all()?;
    let patches = choose(&all, options)?;
    let mut tests: BTreeMap<&Witness, BTreeSet<&str>> = BTreeMap::new();
    for patch in &patches {
        tests.entry(&patch.witness).or_default().insert(&patch.test);
    }
    // Each test is first run without any patch. Then patches with the same witness follow each
    // other, since their builds have most in common.
    let unpatched = tests.into_iter().map(|(witness, tests)| Attempt {
        name: format!("none-{}", scratch::file_name(witness.name())),
        witness,
        tests: tests.into_iter().collect(),
        patch: None,
    });
    let patched = patches.iter().map(|patch| Attempt {
        name: patch.name.clone(),
        witness: &patch.witness,
        tests: vec![&patch.test],
        patch: Some(patch),
    });
    let attempts: Vec<Attempt<'_>> = unpatched.chain(patched).collect();
    let commit = if options.record { record::commit()? } else { String::new() };
    let trials = Trials::prepare(&patches.iter().map(|patch| &patch.witness).collect::<Vec<_>>())?;
    let copy = Copy::make(if options.host { "host" } else { "tree" })?;
    let names: Vec<&str> = all.iter().map(|patch| patch.name.as_str()).collect();
    let (mut before, mut counts) = (BTreeMap::new(), Counts::default());
    std::thread::scope(|scope| {
        // The next kernel is built while a machine runs.
        let (sender, begun) = sync_channel(1);
        let (trials, copy, attempts) = (&trials, &copy, &attempts);
        scope.spawn(move || attempts.iter().all(|attempt| sender.send(attempt.begin(trials, copy)).is_ok()));
        for (attempt, begun) in attempts.iter().zip(begun) {
            let went = match begun? {
                Ok(begun) => trials.end(begun, attempt.witness, &attempt.tests, &attempt.name)?,
                Err(reason) => vec![Went::NotRun(reason); attempt.tests.len()],
            };
            let results = attempt.tests.iter().map(|test| (attempt.witness, *test)).zip(went);
            let Some(patch) = attempt.patch else {
                before.extend(results);
                continue;
            };
            for (test, went) in results {
                let (noticed, what) = verdict(patch, &before[&test], went);
                let not = if noticed { "" } else { "not " };
                println!("{not}ok - {}: {what}, without {}", patch.name, patch.removes);
                *if noticed { &mut counts.passed } else { &mut counts.failed } += 1;
                if options.record {
                    record::note(&patch.name, noticed, &commit, &what, &names)?;
                }
            }
        }
        Ok(counts)
    })
}

/// The patches that the options select, in the order in which they are tried.
fn choose<'a>(all: &'a [Patch], options: &Options) -> Result<Vec<&'a Patch>> {
    let mut patches: Vec<&Patch> = all.iter().collect();
    if !options.names.is_empty() {
        if let Some(unknown) = options.names.iter().find(|name| !all.iter().any(|patch| patch.name == **name))
        {
            bail!("tests/mutations has no {unknown}.patch");
        }
        patches.retain(|patch| options.names.contains(&patch.name));
    }
    patches.retain(|patch| if patch.witness.is_booted() { !options.host } else { !options.booted });
    if options.missing {
        let record = Record::read();
        patches.retain(|patch| !record.noticed(&patch.name, &patch.test));
    }
    patches.sort_by(|a, b| a.witness.cmp(&b.witness));
    Ok(patches)
}

/// Tests that are to be run, with a patch or without one.
struct Attempt<'a> {
    name: String,
    witness: &'a Witness,
    tests: Vec<&'a str>,
    patch: Option<&'a Patch>,
}

impl Attempt<'_> {
    /// Does the part that needs the copy of the tree. Returns why that is not possible, if it is
    /// not.
    fn begin(&self, trials: &Trials, copy: &Copy) -> Result<Result<Begun, String>> {
        let changed =
            match self.patch.map_or(Ok(BTreeMap::new()), |patch| patch.apply(|path| read(copy.root(), path)))
            {
                Ok(changed) => changed,
                Err(reason) => return Ok(Err(reason)),
            };
        copy.with(&changed, || trials.begin(copy, self.witness, &self.tests, &self.name)).map(Ok)
    }
}

/// Whether the test of a patch has noticed it, and how.
fn verdict(patch: &Patch, before: &Went, went: Went) -> (bool, String) {
    match (before, went) {
        (Went::Passed, Went::Failed(how)) => (true, format!("{} {how}", patch.test)),
        (Went::Passed, Went::Passed) => (false, format!("{} passes", patch.test)),
        (Went::Passed, Went::NotRun(why)) => (false, why),
        (Went::Failed(how) | Went::NotRun(how), _) => {
            (false, format!("without the patch, {} {how}", patch.test))
        }
    }
}

fn read(root: &Path, path: &Path) -> String {
    fs::read_to_string(root.join(path)).unwrap_or_default()
}

/// All patches, by name.
fn read_all() -> Result<Vec<Patch>> {
    let mut patches = Vec::new();
    for (name, text) in texts()? {
        let patch = Patch::parse(&name, &text);
        patches.push(patch.map_err(|reason| anyhow::anyhow!("tests/mutations/{name}.patch: {reason}"))?);
    }
    Ok(patches)
}

/// The texts of all patches, by name.
fn texts() -> Result<BTreeMap<String, String>> {
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let files = tree::files(&record::directory(), &[".patch"])?;
    files.iter().map(|path| Ok((name(path), tree::read(path)?))).collect()
}

/// Checks every patch without trying it: it applies, its test exists, and the book says which rule
/// it belongs to. Lists the patches for which the log has no run in which the test failed.
pub(crate) fn check() -> Result<()> {
    let tests = test_sources()?;
    let suites = suites::read(suites::TESTS)?;
    let (record, book) = (Record::read(), read(tree::root(), Path::new(BOOK)));
    let texts = texts()?;
    let (mut wrong, mut untried) = (Vec::new(), Vec::new());
    for (name, text) in &texts {
        let patch = match Patch::parse(name, text) {
            Ok(patch) => patch,
            Err(reason) => {
                wrong.push(format!("{name}: {reason}"));
                continue;
            }
        };
        wrong.extend(
            patch.apply(|path| read(tree::root(), path)).err().map(|reason| format!("{name}: {reason}")),
        );
        let function = patch.test.rsplit("::").next().unwrap_or_default();
        if !tests.contains(&format!("fn {function}(")) && !tests.contains(&format!("{function} [")) {
            wrong.push(format!("{name}: there is no test {:?}", patch.test));
        }
        if let Witness::Suite(suite) = &patch.witness
            && !suites.iter().any(|known| known.name == *suite)
        {
            wrong.push(format!("{name}: there is no suite {suite:?}"));
        }
        if !record.noticed(name, &patch.test) {
            untried.push(name.as_str());
        }
        if !book.contains(&format!("`{name}`")) {
            wrong.push(format!("{name}: {BOOK} does not say which rule it belongs to"));
        }
    }
    let gone = |name: &&str| !texts.contains_key(*name);
    wrong.extend(record.names().filter(gone).map(|name| format!("the log has {name}, which is no patch")));
    wrong
        .extend(SAMPLE.iter().filter(|name| gone(name)).map(|name| format!("{name} is tried, but no patch")));
    if !untried.is_empty() {
        eprintln!("# not known to be noticed (./mac mutations --missing --record): {}", untried.join(", "));
    }
    if wrong.is_empty() { Ok(()) } else { bail!("tests/mutations: {}", wrong.join("\n")) }
}

/// The chapter with the table of rules and patches.
const BOOK: &str = "docs/src/mutations.md";

/// All texts in which tests can be defined.
fn test_sources() -> Result<String> {
    let mut text = String::new();
    for place in ["tests", "kernel", "lib", "personality", "servers", "tools"] {
        for file in tree::files(&tree::root().join(place), &[".rs", ".toml"])? {
            text.push_str(&tree::read(&file)?);
        }
    }
    Ok(text)
}
