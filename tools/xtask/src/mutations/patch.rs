//! A patch of `tests/mutations`: the check that it removes, the test that must fail, and the
//! changed text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The kind of test that must fail when a check is missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Witness {
    /// A test on the host, of this package.
    Package(String),
    /// A model that loom explores, of this package.
    Models(String),
    /// A test in a booted machine, of this suite.
    Suite(String),
}

impl Witness {
    /// The name of the suite or the package.
    pub(super) fn name(&self) -> &str {
        match self {
            Witness::Package(name) | Witness::Models(name) | Witness::Suite(name) => name,
        }
    }

    /// Whether a machine must be booted for the test.
    pub(super) fn is_booted(&self) -> bool {
        matches!(self, Witness::Suite(_))
    }
}

/// A patch that removes one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Patch {
    /// The name of the patch's file, without its extension.
    pub(super) name: String,
    /// The check that the patch removes, as the object of a sentence.
    pub(super) removes: String,
    pub(super) witness: Witness,
    /// The test that fails: the id of a booted test, or the path of a test on the host.
    pub(super) test: String,
    hunks: Vec<Hunk>,
}

/// One place in a file that a patch changes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hunk {
    path: PathBuf,
    before: String,
    after: String,
}

impl Patch {
    /// Parses a patch.
    ///
    /// # Errors
    /// What is missing in its head.
    pub(super) fn parse(name: &str, text: &str) -> Result<Patch, String> {
        let field = |key: &str| {
            let head = text.lines().take_while(|line| !line.starts_with("diff "));
            head.filter_map(|line| line.split_once(": ")).find(|(found, _)| *found == key)
        };
        let needed = |key: &str| {
            field(key).map(|(_, value)| value.trim().to_string()).ok_or(format!("its head lacks {key:?}"))
        };
        let witness = needed("Package")
            .map(Witness::Package)
            .or_else(|_| needed("Models").map(Witness::Models))
            .or_else(|_| needed("Suite").map(Witness::Suite));
        Ok(Patch {
            name: name.into(),
            removes: needed("Removes")?,
            witness: witness.map_err(|_| "its head lacks \"Package\", \"Models\" or \"Suite\"")?,
            test: needed("Fails")?,
            hunks: hunks(text),
        })
    }

    /// The files that the patch changes, with their new contents.
    ///
    /// # Errors
    /// The place where it does not apply: the text that it replaces must be in the file exactly
    /// once.
    pub(super) fn apply(&self, read: impl Fn(&Path) -> String) -> Result<BTreeMap<PathBuf, String>, String> {
        let mut files = BTreeMap::new();
        for hunk in &self.hunks {
            let contents: &mut String = files.entry(hunk.path.clone()).or_insert_with(|| read(&hunk.path));
            match contents.matches(&hunk.before).count() {
                1 => *contents = contents.replacen(&hunk.before, &hunk.after, 1),
                0 => return Err(format!("does not apply to {}", hunk.path.display())),
                _ => return Err(format!("applies to several places of {}", hunk.path.display())),
            }
        }
        if files.is_empty() { Err("changes nothing".into()) } else { Ok(files) }
    }
}

fn hunks(text: &str) -> Vec<Hunk> {
    let mut found = Vec::new();
    for file in text.split("\ndiff --git ").skip(1) {
        let Some(path) = file.lines().find_map(|line| line.strip_prefix("+++ b/")) else { continue };
        for hunk in file.split("\n@@ ").skip(1) {
            // The first line of a hunk has its line number, which is ignored: the text is searched
            // for in the whole file.
            let lines = || hunk.lines().skip(1);
            found.push(Hunk {
                path: path.into(),
                before: lines().filter_map(|line| side(line, '-')).collect(),
                after: lines().filter_map(|line| side(line, '+')).collect(),
            });
        }
    }
    found
}

/// A line of a hunk as it is on the side of `sign`, before or after the change; `None` if that side
/// does not have it.
fn side(line: &str, sign: char) -> Option<String> {
    match line.chars().next() {
        None => Some("\n".into()),
        Some(first) if first == ' ' || first == sign => Some(format!("{}\n", &line[1..])),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "Removes: a check\nSuite: x\nFails: ABC0001\n\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n\
                         @@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n@@ -9,2 +9 @@\n-four\n five\n";

    #[test]
    fn a_patch_applies_wherever_its_place_is() {
        let patch = Patch::parse("p", PATCH).unwrap();
        assert_eq!(patch.witness, Witness::Suite("x".into()));
        let changed = patch.apply(|_| "zero\none\ntwo\nthree\nfour\nfive\n".into()).unwrap();
        assert_eq!(changed[Path::new("f")], "zero\none\n2\nthree\nfive\n");
    }

    #[test]
    fn a_patch_applies_to_one_place() {
        let patch = Patch::parse("p", PATCH).unwrap();
        assert_eq!(patch.apply(|_| "one\nthree\nfour\nfive\n".into()).unwrap_err(), "does not apply to f");
        let twice = "one\ntwo\nthree\n".repeat(2);
        assert_eq!(patch.apply(|_| twice.clone()).unwrap_err(), "applies to several places of f");
    }

    #[test]
    fn the_head_is_complete() {
        for key in ["Removes", "Suite", "Fails"] {
            let error = Patch::parse("p", &PATCH.replace(key, "Nothing")).unwrap_err();
            assert!(error.contains(key), "{error}");
        }
    }
}
