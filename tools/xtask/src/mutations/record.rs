//! `tests/mutations/log`: the result of each patch when it was last tried.

use anyhow::Result;
use mac_build::{build, command, tree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The text at the beginning of the file.
const HEAD: &str = "\
What `./mac mutations --record` showed: for each patch whether its test noticed it, at which commit (with a plus: and changes
that were not committed yet), and how.

";

/// The content of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// The line of each patch: whether the test noticed it, and the rest of the line.
    lines: BTreeMap<String, (bool, String)>,
}

impl Record {
    /// Reads the file from the tree.
    pub(super) fn read() -> Record {
        Record::parse(&std::fs::read_to_string(path()).unwrap_or_default())
    }

    fn parse(text: &str) -> Record {
        let line = |line: &str| {
            let noticed = line.starts_with("ok - ");
            let rest = line.strip_prefix("ok - ").or_else(|| line.strip_prefix("not ok - "))?;
            let (name, rest) = rest.split_once(": ")?;
            Some((name.to_string(), (noticed, rest.to_string())))
        };
        Record { lines: text.lines().filter_map(line).collect() }
    }

    /// Whether the file says that this test has noticed this patch.
    pub(super) fn noticed(&self, name: &str, test: &str) -> bool {
        self.lines.get(name).is_some_and(|(noticed, rest)| *noticed && rest.contains(&format!(": {test} ")))
    }

    /// The patches that the file names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.lines.keys().map(String::as_str)
    }

    fn set(&mut self, name: &str, noticed: bool, commit: &str, what: &str) {
        self.lines.insert(name.into(), (noticed, format!("{commit}: {what}")));
    }

    fn text(&self) -> String {
        let line = |(name, (noticed, rest)): (&String, &(bool, String))| {
            format!("{}ok - {name}: {rest}\n", if *noticed { "" } else { "not " })
        };
        HEAD.to_string() + &self.lines.iter().map(line).collect::<String>()
    }
}

/// Records the result of the patch `name`. Patches that are not in `all` are removed from the file.
pub(super) fn note(name: &str, noticed: bool, commit: &str, what: &str, all: &[&str]) -> Result<()> {
    // The file is read again, because another process may have recorded results meanwhile.
    let mut record = Record::read();
    record.set(name, noticed, commit, what);
    record.lines.retain(|name, _| all.contains(&name.as_str()));
    build::write_if_changed(&path(), record.text().as_bytes())
}

fn path() -> PathBuf {
    tree::root().join("tests/mutations/log")
}

/// The commit of the tree, with a plus if sources have changed since.
pub(crate) fn commit() -> Result<String> {
    let git =
        |arguments: &[&str]| command::output(Command::new("git").args(arguments).current_dir(tree::root()));
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    // A change of the record itself does not count.
    let changed = changed.lines().any(|line| !line.ends_with("tests/mutations/log"));
    Ok(git(&["rev-parse", "--short", "HEAD"])? + if changed { "+" } else { "" })
}

/// The directory of the patches and the record.
pub(super) fn directory() -> PathBuf {
    path().parent().unwrap_or(Path::new(".")).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut record = Record::default();
        record.set("one", true, "abc", "ABC0001 fails");
        record.set("two", false, "abc+", "ABC0002 passes");
        let again = Record::parse(&record.text());
        assert_eq!(again, record);
        assert!(again.noticed("one", "ABC0001") && !again.noticed("one", "ABC0002"));
        assert!(!again.noticed("two", "ABC0002") && !again.noticed("three", "ABC0001"));
        assert_eq!(again.names().collect::<Vec<_>>(), ["one", "two"]);
    }
}
