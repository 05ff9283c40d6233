//! `./mac record`: runs the guest tests under Debian's own kernel and keeps what they print.

use super::definitions::Definitions;
use super::linux;
use super::lock::Lock;
use super::session::Kernel;
use super::suite::{self, recording};
use crate::build;
use crate::suites::{self, Overrides};
use anyhow::{Context, Result, bail};
use std::fmt::Write;

/// Options of `./mac record`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only suites whose name, or one of whose scripts, contains this
    filter: Option<String>,
    /// Change nothing, but fail if something would be recorded differently
    #[arg(long)]
    check: bool,
}

/// Memory of the machine: Debian's kernel unpacks the image into half of it.
const MEMORY: &str = "1G";

/// Boots every suite of guests under Debian's kernel.
pub(crate) fn run(options: &Options) -> Result<()> {
    let overrides = Overrides { cpus: Some(1), memory: Some(MEMORY.into()), ..Overrides::default() };
    let mut different = Vec::new();
    let suites = suites::read(suites::GUESTS)?;
    let wanted =
        suites.iter().filter(|suite| options.filter.as_deref().is_none_or(|filter| suite.matches(filter)));
    for chosen in wanted {
        let mut runs = chosen.runs(&overrides).map_err(|excluded| anyhow::anyhow!(excluded.reason))?;
        let mut run = runs.swap_remove(0);
        run.name = format!("{}-linux", chosen.name);
        let outcomes = suite::boot(&run, Kernel::Linux)?;
        if let Some(trouble) = outcomes.trouble {
            bail!("{}: {trouble}", chosen.name);
        }
        for name in &chosen.guest {
            let (_, printed) = outcomes
                .ended
                .iter()
                .find(|(ended, _)| ended == name)
                .with_context(|| format!("{name} has not run to its end"))?;
            let file = recording(chosen.image.as_deref().unwrap_or_default(), name);
            let before = std::fs::read_to_string(&file).unwrap_or_default();
            let same = before == *printed;
            println!("{} {}: {name}", if same { "same" } else { "DIFFERENT" }, chosen.name);
            if !same {
                different.push(name.as_str());
                if !options.check {
                    build::write_if_changed(&file, printed.as_bytes())?;
                }
            }
        }
    }
    if options.check && !different.is_empty() {
        bail!("recorded differently: {}", different.join(" "));
    }
    if options.check { Ok(()) } else { versions() }
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
