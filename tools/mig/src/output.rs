//! Writing files: all of them, or none.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Files that are to be written.
#[derive(Debug, Default)]
pub struct Files {
    files: Vec<(PathBuf, String)>,
}

impl Files {
    /// Adds a file.
    pub fn add(&mut self, path: PathBuf, text: String) {
        self.files.push((path, text));
    }

    /// Their names.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// Writes all of them under other names, then gives them theirs.
    ///
    /// # Errors
    /// A file could not be written; then no file has changed, unless giving a name failed.
    pub fn write(&self) -> Result<()> {
        let mut written: Vec<(PathBuf, &Path)> = Vec::new();
        let result = self.files.iter().try_for_each(|(path, text)| {
            if path.exists() && !path.is_file() {
                // A device, such as /dev/null.
                return fs::write(path, text).with_context(|| format!("cannot write {}", path.display()));
            }
            let temporary = temporary(path);
            fs::write(&temporary, text).with_context(|| format!("cannot write {}", path.display()))?;
            written.push((temporary, path));
            Ok(())
        });
        let result = result.and_then(|()| {
            written.iter().try_for_each(|(temporary, path)| {
                fs::rename(temporary, path).with_context(|| format!("cannot write {}", path.display()))
            })
        });
        if result.is_err() {
            for (temporary, _) in &written {
                // Those that have their names already are no longer there.
                let _ = fs::remove_file(temporary);
            }
        }
        result
    }
}

/// A name in the same directory that no other process uses.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}
