//! Writes the output files: either all of them or none.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The output files, which `write` puts on disk.
#[derive(Debug, Default)]
pub struct Files {
    files: Vec<(PathBuf, String)>,
}

impl Files {
    /// Adds a file.
    pub fn add(&mut self, path: PathBuf, text: String) {
        self.files.push((path, text));
    }

    /// The names of the files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// Writes all files under temporary names, then renames them.
    ///
    /// # Errors
    /// A file could not be written. Then no file has changed, unless the error was in a renaming.
    pub fn write(&self) -> Result<()> {
        let mut written: Vec<(PathBuf, &Path)> = Vec::new();
        let result = self.files.iter().try_for_each(|(path, text)| {
            if path.exists() && !path.is_file() {
                // A device such as /dev/null cannot be replaced by a renamed file.
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
                // Files that have been renamed already are missing here, which is no error.
                let _ = fs::remove_file(temporary);
            }
        }
        result
    }
}

/// A name in the directory of `path` that no other process uses.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}
