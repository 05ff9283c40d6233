//! A copy of the tree in which patches are applied, with build results of its own.

use anyhow::{Context, Result, bail};
use mac_build::{build, tree};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A copy of the tree as it was when the copy was made. No other process uses it while this value
/// exists.
pub(super) struct Copy {
    root: PathBuf,
    _lock: File,
}

impl Copy {
    /// Brings the copy up to date with the tree. Files that have the right content already keep
    /// their time stamps, so that little is built again. There can be several copies, with
    /// different names.
    pub(super) fn make(name: &str) -> Result<Copy> {
        let root = directory().join(name);
        fs::create_dir_all(&root)?;
        let lock = File::create(root.with_extension("lock")).context("cannot lock the copy of the tree")?;
        if lock.try_lock().is_err() {
            bail!("mutations are being tried in this tree already");
        }
        mirror(tree::root(), &root)?;
        Ok(Copy { root, _lock: lock })
    }

    /// The root directory of the copy.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The directory for build results of the copy, for the purpose `of`.
    pub(super) fn results(&self, of: &str) -> PathBuf {
        directory().join(of)
    }

    /// Calls `work` while these files have other contents.
    pub(super) fn with<R>(
        &self,
        changed: &BTreeMap<PathBuf, String>,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let mut originals = Vec::new();
        for (path, contents) in changed {
            let path = self.root.join(path);
            originals.push((path.clone(), fs::read(&path)?));
            build::write_if_changed(&path, contents.as_bytes())?;
        }
        let result = work();
        for (path, original) in originals {
            build::write_if_changed(&path, &original)?;
        }
        result
    }
}

fn directory() -> PathBuf {
    tree::target().join("mutations")
}

/// Makes `to` have the files of `from`, and no others, but for results and the history.
fn mirror(from: &Path, to: &Path) -> Result<()> {
    let mut old: HashSet<PathBuf> = tree::files(to, &[""])?.into_iter().collect();
    for file in tree::files(from, &[""])? {
        let copy = to.join(file.strip_prefix(from)?);
        let contents = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        build::write_if_changed(&copy, &contents)?;
        old.remove(&copy);
    }
    for file in old {
        fs::remove_file(&file)?;
        // Directories that are empty now go, too; one that is not cannot be removed.
        file.ancestors().skip(1).take_while(|directory| fs::remove_dir(directory).is_ok()).for_each(drop);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mac_build::scratch::Scratch;

    #[test]
    fn a_mirror_has_the_same_files_and_no_others() {
        let scratch = Scratch::new("mirror").unwrap();
        let (from, to) = (scratch.0.join("from"), scratch.0.join("to"));
        for (path, contents) in
            [("a/one", "1"), ("two", "2"), ("target/result", "3"), ("vendor/crate/four", "4")]
        {
            fs::create_dir_all(from.join(path).parent().unwrap()).unwrap();
            fs::write(from.join(path), contents).unwrap();
        }
        fs::create_dir_all(to.join("gone")).unwrap();
        fs::write(to.join("gone/file"), "5").unwrap();
        mirror(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("a/one")).unwrap(), "1");
        let mut names: Vec<_> = fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a", "two", "vendor"]);
    }
}
