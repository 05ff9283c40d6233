//! `./mac bench --profile`: in which functions the instructions of each marked region are, per
//! operation.
//!
//! The counting plugin says how often each instruction was executed; symbols and line tables say to
//! which function it belongs. A table of functions goes to the terminal, and all stacks of inlined
//! functions (`region;image;function;inlined;... count`, what tools for flame graphs read) to
//! `target/bench/NAME.folded`.

use super::series::Measurement;
use super::{guests, parts, plugin, regions};
use anyhow::{Context, Result, bail};
use mac_build::{build, tree};
use mac_machine::suites::{Overrides, Run, Suite};
use mac_machine::symbolise::{Place, Symboliser};
use mac_machine::{boots, qemu};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Functions with a smaller share of a region than this are not shown.
const SHOWN: f64 = 0.005;

/// A line that the plugin has written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Counts {
    #[serde(rename = "region")]
    _number: u8,
    /// Each instruction's address, its bytes, and how often it was executed.
    instructions: Vec<(u64, Vec<u8>, u64)>,
}

/// The number of instructions executed at each place.
pub(super) type Profile = BTreeMap<Place, u64>;

/// A region's name and its profile.
pub(super) type Profiled = (regions::Name, Profile);

/// Boots a benchmark once and shows its profile.
pub(super) fn run(benchmark: &Suite, publish: bool) -> Result<()> {
    let mut runs = benchmark.runs(&Overrides::default())?;
    if !benchmark.speedup {
        runs.truncate(1);
    }
    let directory = tree::target().join("bench");
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let mut profiles = Vec::new();
    for run in runs {
        let profiled = measure(run, &directory.join(format!("{}.profile", benchmark.name)))?;
        for (name, profile) in &profiled {
            print!("{}", table(&name.region, name.operations, profile));
        }
        profiles.extend(profiled);
    }
    let path = directory.join(format!("{}.folded", benchmark.name));
    build::write_if_changed(&path, folded(&profiles).as_bytes())?;
    println!("{}", path.display());
    parts::write(&benchmark.name, &profiles, publish)
}

/// Boots a benchmark once. Returns the profiles of its regions. The plugin writes to the file
/// `counts`.
fn measure(mut run: Run, counts: &Path) -> Result<Vec<Profiled>> {
    // If several processors share the work, polling is left out, and the number of processors
    // distinguishes the runs.
    let (work, cpus) =
        if run.suite.speedup { (",work=on", format!("/{}", run.machine.cpus)) } else { ("", String::new()) };
    let plugin = format!("{},out=/dev/null,profile={}{work}", plugin()?, qemu::value(counts)?);
    run.machine.extra.extend(["-plugin".into(), plugin]);
    let (names, files) = if run.suite.guest.is_empty() { boot(&run)? } else { boot_guests(&run)? };
    let symboliser = Symboliser::new(files.iter().map(PathBuf::as_path));
    let output = tree::read(counts)?;
    let lines: Vec<&str> = output.lines().collect();
    if lines.len() != names.len() {
        bail!("{} names {} regions, the plugin counted {}", run.name, names.len(), lines.len());
    }
    let mut profiles = Vec::new();
    for (mut name, line) in names.into_iter().zip(lines) {
        let counts: Counts = serde_json::from_str(line).context("a line of the counting plugin")?;
        let mut profile = Profile::new();
        for (address, bytes, executed) in &counts.instructions {
            let unknown = || Place { image: "?".into(), functions: vec![format!("{address:#x}")] };
            *profile.entry(symboliser.place(*address, bytes).unwrap_or_else(unknown)).or_default() +=
                executed;
        }
        name.region += &cpus;
        profiles.push((name, profile));
    }
    Ok(profiles)
}

/// Boots a benchmark of native programs. Returns its regions, and the programs' files.
fn boot(run: &Run) -> Result<(Vec<regions::Name>, Vec<PathBuf>)> {
    let verdict = boots::run(run)?;
    if verdict.failed() > 0 {
        bail!("{}: disturbed:\n  {}", run.name, verdict.failures.join("\n  "));
    }
    let names = verdict.records.iter().filter_map(|record| regions::Name::deserialize(record).ok()).collect();
    Ok((names, run.machine.files()))
}

/// The Linux program that marks a few of its system calls, for suites whose own programs have no
/// marks.
const MARKS: &str = "calls";

/// Boots the Linux program that marks its calls. It prints how often it makes each call.
fn boot_guests(run: &Run) -> Result<(Vec<regions::Name>, Vec<PathBuf>)> {
    let request = guests::request(&run.suite)?;
    // The programs of a suite of pieces of work mark each of them.
    let own = run.suite.guest.first().filter(|_| run.suite.speedup);
    let command = [format!("/tests/bin/{}", own.map_or(MARKS, String::as_str)), "profile".into()];
    let printed =
        mac_guest::output(&request, mac_guest::Kernel::Macadamia, run.mode, run.machine.clone(), &command)?;
    let name = |made: Measurement| regions::Name { region: made.test, operations: made.value as u64 };
    let names = guests::parse(&printed, "profile")?.into_iter().map(name).collect();
    let programs = request.files.iter().map(|(_, file)| file.clone());
    Ok((names, build::guest_files().chain(programs).collect()))
}

/// All stacks of inlined functions, in the format of tools for flame graphs.
fn folded(profiles: &[Profiled]) -> String {
    let mut folded = String::new();
    for (name, profile) in profiles {
        for (place, count) in profile {
            // Writing to a string cannot fail.
            let _ = writeln!(folded, "{};{};{} {count}", name.region, place.image, place.functions.join(";"));
        }
    }
    folded
}

/// The functions of a region, the most expensive first, each with the functions inlined in it.
fn table(region: &str, operations: u64, profile: &Profile) -> String {
    let operations = operations.max(1) as f64;
    let total: u64 = profile.values().sum();
    let least = total as f64 * SHOWN;
    let mut functions: BTreeMap<(&str, &str), BTreeMap<&str, u64>> = BTreeMap::new();
    for (place, count) in profile {
        let outer = place.functions.first().map_or("?", String::as_str);
        let inner = place.functions.last().map_or("?", String::as_str);
        *functions.entry((&place.image, outer)).or_default().entry(inner).or_default() += count;
    }
    let mut text = format!("\n{region}: {:.1} instructions\n", total as f64 / operations);
    for ((image, outer), inner) in sorted(functions, |inner| inner.values().sum()) {
        let sum: u64 = inner.values().sum();
        if (sum as f64) < least {
            continue;
        }
        let _ = writeln!(text, "{:>10.1}  {image}: {outer}", sum as f64 / operations);
        let parts = sorted(inner, |count| *count);
        for (name, count) in parts.iter().filter(|(name, count)| *name != outer && *count as f64 >= least) {
            let _ = writeln!(text, "{:>10}  {:>8.1}  {name}", "", *count as f64 / operations);
        }
    }
    text
}

/// The entries of a map, the most expensive first.
fn sorted<K: Ord, V>(map: BTreeMap<K, V>, cost: impl Fn(&V) -> u64) -> Vec<(K, V)> {
    let mut entries: Vec<(K, V)> = map.into_iter().collect();
    entries.sort_by_key(|(_, value)| std::cmp::Reverse(cost(value)));
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_shown_with_what_is_inlined_in_them() {
        let place = |image: &str, functions: &[&str]| Place {
            image: image.into(),
            functions: functions.iter().map(ToString::to_string).collect(),
        };
        let profile = Profile::from([
            (place("kernel", &["send"]), 300),
            (place("kernel", &["send", "find", "load"]), 100),
            (place("server", &["send"]), 600),
            (place("server", &["rare"]), 1),
        ]);
        assert_eq!(
            table("ipc", 10, &profile),
            "\nipc: 100.1 instructions\n      60.0  server: send\n      40.0  kernel: send\n                10.0  load\n"
        );
    }
}
