//! Lists the workspace's packages, and which of them are programs of the system.
//!
//! A package whose `Cargo.toml` says
//!
//! ```toml
//! [package.metadata.macadamia]
//! kind = "program"        # or "kernel"
//! ```
//!
//! is built for the bare machine, each of its binaries a boot file of that binary's name.

use crate::{command, tree};
use anyhow::{Context, Result, bail};
use cargo_metadata::MetadataCommand;
use std::path::{Path, PathBuf};

/// The kind of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The kernel.
    Kernel,
    /// Native programs.
    Program,
    /// A library or a host tool, which is not built for the bare machine by itself.
    Host,
}

/// A package of the workspace.
#[derive(Debug)]
pub struct Package {
    /// The name in the package's manifest.
    pub name: String,
    /// How the package is built.
    pub kind: Kind,
    /// The directory of the package.
    pub directory: PathBuf,
    /// The names of the package's binaries.
    pub binaries: Vec<String>,
    /// Whether the package has tests that are model-checked: it depends on loom.
    pub model_checked: bool,
}

/// All packages of the workspace.
pub fn all(cargo: &Path) -> Result<Vec<Package>> {
    of(cargo, &tree::root().join("Cargo.toml"))
}

/// All packages of the workspace that has this manifest.
pub fn of(cargo: &Path, manifest: &Path) -> Result<Vec<Package>> {
    let mut metadata = command::clean(cargo);
    metadata.args(["metadata", "--no-deps", "--format-version=1", "--offline", "--manifest-path"]);
    let said = command::output(metadata.arg(manifest)).context("reading the workspace")?;
    parse(&said).with_context(|| format!("reading {}", manifest.display()))
}

fn parse(json: &str) -> Result<Vec<Package>> {
    MetadataCommand::parse(json)?.packages.iter().map(package).collect()
}

fn package(found: &cargo_metadata::Package) -> Result<Package> {
    let ours = found.metadata.get("macadamia");
    let kind = match ours.and_then(|ours| ours.get("kind")).and_then(|kind| kind.as_str()) {
        None if ours.is_none() => Kind::Host,
        Some("kernel") => Kind::Kernel,
        Some("program") => Kind::Program,
        other => {
            bail!("package {}: metadata.macadamia.kind is {other:?}, not kernel or program", found.name)
        }
    };
    let binaries = found.targets.iter().filter(|target| target.is_bin());
    Ok(Package {
        name: found.name.to_string(),
        kind,
        directory: found.manifest_path.parent().map(Into::into).unwrap_or_default(),
        binaries: binaries.map(|target| target.name.clone()).collect(),
        model_checked: found.dependencies.iter().any(|dependency| dependency.name == "loom"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGE: &str = r#"{"version":1,"workspace_root":"/tree","workspace_members":[],
        "target_directory":"/tree/target","packages":[{"name":"p","version":"1.0.0","id":"p","features":{},
        "dependencies":[],"manifest_path":"/tree/p/Cargo.toml","metadata":METADATA,"targets":[
        {"name":"one","kind":["bin"],"crate_types":["bin"],"src_path":"/tree/p/one.rs"},
        {"name":"p","kind":["lib"],"crate_types":["lib"],"src_path":"/tree/p/lib.rs"}]}]}"#;

    fn with(metadata: &str) -> Result<Vec<Package>> {
        parse(&PACKAGE.replace("METADATA", metadata))
    }

    #[test]
    fn kind_comes_from_the_metadata() {
        let packages = with(r#"{"macadamia":{"kind":"program"}}"#).unwrap();
        assert_eq!(packages[0].kind, Kind::Program);
        assert_eq!(packages[0].binaries, ["one"]);
        assert_eq!(packages[0].directory, PathBuf::from("/tree/p"));
        assert_eq!(with("null").unwrap()[0].kind, Kind::Host);
        assert_eq!(with(r#"{"docs":{}}"#).unwrap()[0].kind, Kind::Host);
    }

    #[test]
    fn an_unknown_kind_is_refused_by_name() {
        let error = with(r#"{"macadamia":{"kind":"programme"}}"#).unwrap_err().to_string();
        assert!(error.contains("package p") && error.contains("programme"), "{error}");
        assert!(with(r#"{"macadamia":{}}"#).is_err());
    }
}
