//! `./mac check`: formatting and lints, for host code and for code of the bare machine.

use crate::{book, documentation, layers, mutations, requests, rules, words};
use anyhow::Result;
use mac_build::build::{FlagSet, UNIPROCESSOR};
use mac_build::packages::{Kind, Package};
use mac_build::{command, packages, toolchain};
use mac_lab::bench;
use std::path::Path;

/// Runs every check; all of them, even if one fails, so that one run shows everything.
pub(crate) fn run() -> Result<()> {
    let toolchain = toolchain::find()?;
    let packages = packages::all(&toolchain.cargo)?;
    let host = toolchain::host_cargo();
    let results = [
        ("formatting", format(&host)),
        ("lints for the host", host_lints(&host)),
        ("lints for the kernel", target_lints(&toolchain, &FlagSet::kernel(), &packages, Kind::Kernel, &[])),
        (
            "lints for the kernel of one processor",
            target_lints(
                &toolchain,
                &FlagSet::kernel(),
                &packages,
                Kind::Kernel,
                &["--features", UNIPROCESSOR],
            ),
        ),
        (
            "lints for the programs",
            target_lints(&toolchain, &FlagSet::user()?, &packages, Kind::Program, &[]),
        ),
        ("documentation of the libraries", documentation::render()),
        ("links of the book", book::check_links()),
        ("commands of the book", book::check_commands()),
        ("files that the book names", book::check_paths()),
        ("words that the book explains", book::check_mentioned()),
        ("words", words::check()),
        ("names foreign to a layer", layers::check()),
        ("requests encoded by hand", requests::check()),
        ("tables and charts of the book", bench::check_tables()),
        ("budgets and targets", bench::check_budgets()),
        ("index of rules", rules::check()),
        ("mutations", mutations::check()),
    ];
    let mut failed = Vec::new();
    for (what, result) in results {
        if let Err(error) = result {
            eprintln!("mac: {what}: {error:#}");
            failed.push(what);
        }
    }
    if failed.is_empty() { Ok(()) } else { anyhow::bail!("not clean: {}", failed.join(", ")) }
}

fn format(cargo: &Path) -> Result<()> {
    command::run(command::clean(cargo).args(["fmt", "--all", "--check"]), "cargo fmt")
}

fn host_lints(cargo: &Path) -> Result<()> {
    let mut clippy = command::clean(cargo);
    clippy.args(["clippy", "--locked", "--keep-going", "--workspace", "--all-targets"]);
    clippy.args(["--", "-Dwarnings"]);
    command::run(&mut clippy, "clippy")
}

fn target_lints(
    toolchain: &toolchain::Toolchain,
    flags: &FlagSet,
    packages: &[Package],
    kind: Kind,
    features: &[&str],
) -> Result<()> {
    let chosen: Vec<&Package> = packages.iter().filter(|package| package.kind == kind).collect();
    if chosen.is_empty() {
        return Ok(());
    }
    let mut clippy = flags.cargo(toolchain, "clippy");
    clippy.args(["--release", "--keep-going"]).args(features);
    for package in chosen {
        clippy.args(["--package", &package.name]);
    }
    clippy.args(["--", "-Dwarnings"]);
    command::run(&mut clippy, "clippy")
}
