//! The paths of the source tree and of the directories under `target/`.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The root of the source tree. It comes from the environment that cargo sets when it runs a
/// package. A path from compile time would be wrong after the checkout was moved or copied together
/// with `target`.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let package = package.expect("this program is started by cargo: ./mac, or cargo xtask");
        package.ancestors().nth(2).expect("the packages of ./mac are two levels below the root").to_owned()
    });
    &ROOT
}

/// The build directory.
pub fn target() -> PathBuf {
    root().join("target")
}

/// The directory of finished boot files: the kernel and each program under its own name.
pub fn boot() -> PathBuf {
    target().join("boot")
}

/// A file's path from the root of the tree, for messages; of a file elsewhere all of it.
pub fn name(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

/// Reads a text file. The error names it.
pub fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// The files of this project itself below its root: [`files`] without the code of others.
pub fn own_files(ends: &[&str]) -> Result<Vec<PathBuf>> {
    let others = root().join("vendor");
    Ok(files(root(), ends)?.into_iter().filter(|file| !file.starts_with(&others)).collect())
}

/// The files below a directory whose names end in one of `ends` (such as `.rs`), in the order of
/// their names. Build results and git's directory are left out.
pub fn files(directory: &Path, ends: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !["target", ".git"].contains(&name.as_str()) {
            found.extend(files(&path, ends)?);
        } else if path.is_file() && ends.iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
