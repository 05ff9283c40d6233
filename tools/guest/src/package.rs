//! One Debian package: which it is, and what its file holds.

use anyhow::{Result, bail};
use mac_build::command;
use serde::Deserialize;
use std::path::PathBuf;
use std::process::Command;

/// A package of a certain version.
#[derive(Clone, Debug, Deserialize, Hash, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) architecture: String,
    /// Where it lies in a repository, as written in an address: `pool/...`.
    pub(super) path: String,
    /// Bytes of the package's file.
    pub(super) size: u64,
    /// The checksum of the package's file, in hexadecimal digits.
    pub(super) sha256: String,
}

impl Package {
    /// The name that apt gives the package's file.
    pub(super) fn file_name(&self) -> String {
        format!("{}_{}_{}.deb", self.name, self.version.replace(':', "%3a"), self.architecture)
    }

    /// Name, version and architecture from such a file name.
    pub(super) fn parts(file_name: &str) -> Option<(&str, String, &str)> {
        let (name, rest) = file_name.strip_suffix(".deb")?.split_once('_')?;
        let (version, architecture) = rest.split_once('_')?;
        Some((name, version.replace("%3a", ":"), architecture))
    }
}

/// Compares files with their packages' checksums; an error names those that differ.
pub(super) fn check(files: &[(&Package, PathBuf)]) -> Result<()> {
    let mut wrong = Vec::new();
    // One process checks all packages: a list of hundreds of them still fits a command line.
    let said = command::output(Command::new("sha256sum").arg("--").args(files.iter().map(|(_, path)| path)))?;
    for ((package, path), line) in files.iter().zip(said.lines()) {
        // A line that starts with a backslash has an escaped name.
        if line.trim_start_matches('\\').split(' ').next() != Some(package.sha256.as_str()) {
            wrong.push(path.display().to_string());
        }
    }
    if !wrong.is_empty() || said.lines().count() != files.len() {
        bail!(
            "these packages are not those of the lock file; remove them and try again: {}",
            wrong.join(" ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mac_build::scratch::Scratch;

    #[test]
    fn file_names_are_apts() {
        let package = Package {
            name: "busybox-static".into(),
            version: "1:1.35.0-4+b1".into(),
            architecture: "amd64".into(),
            path: String::new(),
            size: 0,
            sha256: String::new(),
        };
        let name = package.file_name();
        assert_eq!(name, "busybox-static_1%3a1.35.0-4+b1_amd64.deb");
        assert_eq!(Package::parts(&name), Some(("busybox-static", "1:1.35.0-4+b1".to_string(), "amd64")));
        assert_eq!(Package::parts("x.deb"), None);
    }

    #[test]
    fn a_wrong_checksum_is_noticed() {
        let scratch = Scratch::new("checksum").unwrap();
        let path = scratch.0.join("p.deb");
        std::fs::write(&path, "abc").unwrap();
        let mut package = Package {
            name: "p".into(),
            version: "1".into(),
            architecture: "all".into(),
            path: String::new(),
            size: 3,
            sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".into(),
        };
        check(&[(&package, path.clone())]).unwrap();
        package.sha256.replace_range(0..1, "c");
        assert!(check(&[(&package, path.clone())]).unwrap_err().to_string().contains("p.deb"));
    }
}
