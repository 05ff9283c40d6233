//! `./mac record`: runs the guest tests under Debian's own kernel and keeps what they print.

use super::definitions::Definitions;
use super::lock::Lock;
use super::session::Kernel;
use super::suite::{self, recording};
use super::{interact, linux, script};
use anyhow::{Context, Result, bail};
use mac_build::build;
use mac_machine::suites::{self, Overrides, Run, Suite};
use std::fmt::Write;
use std::path::PathBuf;

/// Options of `./mac record`.
#[derive(clap::Args)]
pub struct Options {
    /// Only the suite of this name, or else those whose name, or one of whose scripts, contains
    /// this
    filter: Option<String>,
    /// Change nothing, but fail if something would be recorded differently
    #[arg(long)]
    check: bool,
}

/// Memory of the machine: Debian's kernel unpacks the image into half of it.
const MEMORY: &str = "1G";

/// Boots every suite of guests under Debian's kernel.
pub fn run(options: &Options) -> Result<()> {
    let mut different = Vec::new();
    for chosen in &chosen(options.filter.as_deref())? {
        // The memory of a suite with packages is chosen for its image.
        let memory = chosen.packages.is_empty().then(|| MEMORY.into());
        let overrides = Overrides { cpus: Some(1), memory, ..Overrides::default() };
        let mut runs = chosen.runs(&overrides).map_err(|excluded| anyhow::anyhow!(excluded.reason))?;
        let mut run = runs.swap_remove(0);
        run.name = format!("{}-linux", chosen.name);
        let (recorded, trouble) = match chosen.interactive.is_empty() {
            true => (printed(&run)?, None),
            false => screens(&run)?,
        };
        for (name, file, content) in recorded {
            let same = std::fs::read_to_string(&file).is_ok_and(|before| before == content);
            println!("{} {}: {name}", if same { "same" } else { "DIFFERENT" }, chosen.name);
            if !same {
                if !options.check {
                    build::write_if_changed(&file, content.as_bytes())?;
                }
                different.push(name);
            }
        }
        if let Some(trouble) = trouble {
            bail!("{}: {trouble}", run.name);
        }
    }
    if options.check && !different.is_empty() {
        bail!("recorded differently: {}", different.join(" "));
    }
    if options.check { Ok(()) } else { versions() }
}

/// The most mebibytes of zeros with which a suite is recorded.
const SMALL_FILLING: u64 = 1 << 8;

/// The suites that a filter means: one at least.
fn chosen(filter: Option<&str>) -> Result<Vec<Suite>> {
    let mut suites = suites::read(suites::GUESTS)?;
    // Linux takes no image of gigabytes as its initial root file system; the same scripts are
    // recorded in a suite with a small one.
    suites.retain(|suite| suite.filling <= SMALL_FILLING);
    let is_named = suites.iter().any(|suite| Some(suite.name.as_str()) == filter);
    // What is expected of piped commands and of sticks is in their tables.
    suites.retain(|suite| suite.piped.is_empty() && !suite.stick);
    suites.retain(|suite| match filter {
        None => true,
        Some(name) if is_named => suite.name == name,
        Some(part) => suite.matches(part),
    });
    if suites.is_empty() {
        bail!("no suite of guest tests matches {:?}", filter.unwrap_or_default());
    }
    Ok(suites)
}

/// What is to be recorded: name, file, content.
type Recorded = (String, PathBuf, String);

/// What the scripts of a suite print.
fn printed(run: &Run) -> Result<Vec<Recorded>> {
    let outcomes = suite::boot(run, Kernel::Linux)?;
    if let Some(trouble) = outcomes.trouble {
        bail!("{}: {trouble}", run.name);
    }
    let image = run.suite.image.as_deref().unwrap_or_default();
    let printed = |name: &String| {
        let ended = outcomes.ended.iter().find(|(ended, _)| ended == name);
        let (_, printed) = ended.with_context(|| format!("{name} has not run to its end"))?;
        Ok((name.clone(), recording(image, name), printed.clone()))
    };
    run.suite.guest.iter().map(printed).collect()
}

/// What the screen shows after each script of a suite, and what went wrong.
fn screens(run: &Run) -> Result<(Vec<Recorded>, Option<String>)> {
    let (played, mut trouble, _) = interact::play_suite(run, Kernel::Linux, &interact::Play::default())?;
    let mut recorded = Vec::new();
    for script in played {
        match script.result {
            Some(Ok(screen)) if script.script.is_compared() => {
                recorded.push((script.name.clone(), script::recording(&script.name), screen));
            }
            Some(Err(error)) => trouble.push(format!("{}: {error:#}", script.name)),
            Some(Ok(_)) | None => {}
        }
    }
    Ok((recorded, (!trouble.is_empty()).then(|| trouble.join("\n"))))
}

/// Keeps what the recordings were made with.
fn versions() -> Result<()> {
    let lock = Lock::read()?;
    let mut text = String::from("The recordings here were made by `./mac record` with these versions.\n\n");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "kernel: {}", linux::kernel()?.1);
    for definition in Definitions::read()?.all() {
        let _ = writeln!(text, "\n{}:", definition.name);
        for package in lock.set(&definition.name)? {
            let _ = writeln!(text, "    {} {}", package.name, package.version);
        }
    }
    build::write_if_changed(&suite::directory().join("expected/versions.txt"), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_means_nothing_is_refused() {
        assert_eq!(chosen(Some("guests/shell")).unwrap().len(), 1);
        assert!(chosen(None).unwrap().len() > 10);
        let refused = chosen(Some("minimal")).map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains("no suite of guest tests matches \"minimal\""));
    }
}
