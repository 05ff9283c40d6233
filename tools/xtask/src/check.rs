//! `./mac check`: formatting, lints and the other checks that need no tests.

use crate::{book, documentation, mutations, requests, rules, words};
use anyhow::Result;
use mac_build::build::{FlagSet, UNIPROCESSOR};
use mac_build::packages::Package;
use mac_build::{command, packages, toolchain};
use mac_lab::bench;
use std::path::Path;

/// Runs every check, even if one has failed, so that one run shows all errors.
pub(crate) fn run() -> Result<()> {
    let toolchain = toolchain::find()?;
    let packages = packages::all(&toolchain.cargo)?;
    let host = toolchain::host_cargo();
    let lints = |flags: &FlagSet, features: &[&str]| target_lints(&toolchain, flags, &packages, features);
    let results = [
        ("formatting", format(&host)),
        ("lints for the host", host_lints(&host)),
        ("lints for the kernel", lints(&FlagSet::kernel(), &[])),
        ("lints for the kernel of one processor", lints(&FlagSet::kernel(), &["--features", UNIPROCESSOR])),
        ("lints for the programs", lints(&FlagSet::user()?, &[])),
        ("documentation of the libraries", documentation::render()),
        ("links of the book", book::check_links()),
        ("commands of the book", book::check_commands()),
        ("files that the book names", book::check_paths()),
        ("words that the book explains", book::check_mentioned()),
        ("words", words::check()),
        ("names foreign to a layer", words::check_layers()),
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
    features: &[&str],
) -> Result<()> {
    let mut clippy = flags.cargo(toolchain, "clippy");
    clippy.args(["--release", "--keep-going"]).args(features);
    for package in packages.iter().filter(|package| package.kind == flags.kind) {
        clippy.args(["--package", &package.name]);
    }
    clippy.args(["--", "-Dwarnings"]);
    command::run(&mut clippy, "clippy")
}
