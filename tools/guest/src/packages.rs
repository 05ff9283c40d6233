//! `./mac packages`: what the images consist of, and a new lock file.

use super::apt::{self, Lists};
use super::definitions::{Definition, Definitions, Dependencies};
use super::install;
use super::lock::Lock;
use super::package::{self, Package};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Options of `./mac packages`.
#[derive(clap::Args)]
pub struct Options {
    /// Make this image, and print where it is
    image: Option<String>,
    /// Look up the newest versions and write them into guests/packages.lock
    #[arg(long)]
    update: bool,
}

/// Prints the images with their packages; with `--update` writes the lock file first.
pub fn run(options: &Options) -> Result<()> {
    let definitions = Definitions::read()?;
    if options.update {
        update(&definitions)?;
    }
    if let Some(name) = &options.image {
        let image = super::make(&super::Request { name: name.clone(), ..Default::default() })?;
        println!("{}", image.path.display());
        return Ok(());
    }
    let lock = Lock::read()?;
    for definition in definitions.all() {
        let packages = lock.set(&definition.name)?;
        let size: u64 = packages.iter().map(|package| package.size).sum();
        println!(
            "{}: {} ({} packages, {:.1} MiB to fetch)",
            definition.name,
            definition.about,
            packages.len(),
            size as f64 / f64::from(1 << 20)
        );
        for package in packages {
            println!("    {} {}", package.name, package.version);
        }
        if !definition.leave_out.is_empty() {
            println!("    left out: {}", definition.leave_out.join(" "));
            println!("    except: {}", definition.keep.join(" "));
        }
    }
    Ok(())
}

fn update(definitions: &Definitions) -> Result<()> {
    let lists = Lists::fetch(true)?;
    let mut all: BTreeMap<String, Package> = BTreeMap::new();
    let mut sets = BTreeMap::new();
    for definition in definitions.all() {
        let packages = resolve(&lists, definition)?;
        sets.insert(definition.name.clone(), packages.iter().map(|package| package.name.clone()).collect());
        all.extend(packages.into_iter().map(|package| (package.name.clone(), package)));
    }
    Lock { sets, package: all.into_values().collect() }.write()
}

fn resolve(lists: &Lists, definition: &Definition) -> Result<Vec<Package>> {
    let mut packages = match definition.dependencies {
        Dependencies::None => lists.exactly(&definition.packages)?,
        _ => lists.with_dependencies(&definition.packages)?,
    };
    if let Dependencies::Only(start) = &definition.dependencies {
        packages.retain(|package| package.name.starts_with(start));
    }
    if packages.is_empty() {
        bail!("{} consists of no package", definition.name);
    }
    Ok(packages)
}

/// The files of these packages, fetched and checked. One that no repository has any more is
/// replaced by the newest of that name, with a warning.
pub(super) fn provide(packages: &[&Package]) -> Result<Vec<(Package, PathBuf)>> {
    let gone = apt::fetch(packages)?;
    let mut provided: Vec<Package> = packages.iter().map(|package| (*package).clone()).collect();
    if !gone.is_empty() {
        let names: Vec<String> = gone.iter().map(|package| package.name.clone()).collect();
        eprintln!(
            "mac: warning: the repositories have no longer the locked versions of: {}\n\
             mac: their newest versions are taken instead; ./mac packages --update records them",
            names.join(" ")
        );
        let newest = Lists::fetch(true)?.exactly(&names)?;
        let still_gone = apt::fetch(&newest.iter().collect::<Vec<_>>())?;
        if let Some(package) = still_gone.first() {
            bail!("{} cannot be fetched from any repository (is the network there?)", package.file_name());
        }
        for package in &mut provided {
            if let Some(newer) = newest.iter().find(|newer| newer.name == package.name) {
                *package = newer.clone();
            }
        }
    }
    let files: Vec<(Package, PathBuf)> =
        provided.into_iter().map(|package| (package.clone(), apt::file(&package))).collect();
    let pairs: Vec<(&Package, PathBuf)> =
        files.iter().map(|(package, file)| (package, file.clone())).collect();
    package::check(&pairs)?;
    Ok(files)
}

/// An image's packages: those of the lock file or, if packages beyond the image's own are asked
/// for, what apt finds for all of them together now.
pub(super) fn of_image(definition: &Definition, lock: &Lock, more: &[String]) -> Result<Vec<Package>> {
    if more.is_empty() {
        return Ok(lock.set(&definition.name)?.into_iter().cloned().collect());
    }
    let wanted: Vec<String> = definition.packages.iter().chain(more).cloned().collect();
    Lists::fetch(false)?.with_dependencies(&wanted)
}

/// A repository of these packages and all that they depend on, for the guest's apt: the list and
/// the packages' files in a directory that the host serves.
pub(super) fn serve(names: &[String], directory: &Path) -> Result<()> {
    let found = Lists::fetch(false)?.with_dependencies(names)?;
    let provided = provide(&found.iter().collect::<Vec<_>>())?;
    // apt would write the sign `%` of a package's own file name in an address in another way.
    let name = |place: usize| format!("{place}.deb");
    for (place, (_, file)) in provided.iter().enumerate() {
        symlink(file, directory.join(name(place))).context("serving a package")?;
    }
    fs::write(directory.join("Packages"), install::list(&provided, |place, _| name(place))?)
        .context("serving the list of packages")
}

/// The name of a package that is asked for as apt reads it: with a version, a release, an
/// architecture perhaps.
pub(super) fn name(asked_for: &str) -> String {
    asked_for.split(['=', '/', ':']).next().unwrap_or_default().to_string()
}
