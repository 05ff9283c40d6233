//! The lock file, `guests/packages.lock`: which version of which package each image is made from.

use super::definitions::directory;
use super::package::Package;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// The content of the lock file.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(super) struct Lock {
    /// Names of the packages of each image or host set.
    #[serde(default)]
    pub(super) sets: BTreeMap<String, Vec<String>>,
    /// Every package once.
    #[serde(default)]
    pub(super) package: Vec<Package>,
}

fn path() -> PathBuf {
    directory().join("packages.lock")
}

impl Lock {
    pub(super) fn read() -> Result<Lock> {
        let path = path();
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}: ./mac packages --update makes it", path.display()))?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    pub(super) fn write(&self) -> Result<()> {
        mac_build::build::write_if_changed(&path(), self.text().as_bytes())
    }

    /// The packages of one set.
    pub(super) fn set(&self, name: &str) -> Result<Vec<&Package>> {
        let stale = || format!("the lock file does not fit {name:?}: ./mac packages --update makes it again");
        let names = self.sets.get(name).with_context(stale)?;
        let find =
            |name: &String| self.package.iter().find(|package| package.name == *name).with_context(stale);
        names.iter().map(find).collect()
    }

    fn text(&self) -> String {
        let mut text = String::from(
            "# The Debian packages that guest images are made from. Written by `./mac packages --update`.\n\n[sets]\n",
        );
        // Writing to a string cannot fail.
        for (name, packages) in &self.sets {
            let _ = writeln!(text, "{name} = [");
            for package in packages {
                let _ = writeln!(text, "    {package:?},");
            }
            let _ = writeln!(text, "]");
        }
        for package in &self.package {
            let Package { name, version, architecture, path, size, sha256 } = package;
            let _ = write!(
                text,
                "\n[[package]]\nname = {name:?}\nversion = {version:?}\narchitecture = {architecture:?}\n\
                 path = {path:?}\nsize = {size}\nsha256 = {sha256:?}\n"
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::Definitions;

    #[test]
    fn what_is_written_is_read_again() {
        let package = Package {
            name: "p".into(),
            version: "1:2~3+b1".into(),
            architecture: "all".into(),
            path: "pool/p.deb".into(),
            size: 7,
            sha256: "00".into(),
        };
        let lock = Lock { sets: [("a".to_string(), vec!["p".to_string()])].into(), package: vec![package] };
        assert_eq!(toml::from_str::<Lock>(&lock.text()).unwrap(), lock);
        assert_eq!(lock.set("a").unwrap()[0].name, "p");
        assert!(lock.set("b").unwrap_err().to_string().contains("--update"));
    }

    #[test]
    fn the_lock_of_the_tree_fits_the_table() {
        let lock = Lock::read().unwrap();
        for definition in Definitions::read().unwrap().all() {
            let names: Vec<&str> =
                lock.set(&definition.name).unwrap().iter().map(|p| p.name.as_str()).collect();
            for wanted in definition.packages.iter().filter(|_| !definition.takes_only_some()) {
                // A pattern of apt stands for packages of other names.
                if wanted.starts_with('?') {
                    continue;
                }
                assert!(names.contains(&wanted.as_str()), "{wanted} of {} is not locked", definition.name);
            }
        }
    }
}
