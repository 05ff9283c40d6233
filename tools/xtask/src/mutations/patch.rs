//! A patch of `tests/mutations`: what it removes, which test must notice, and what it changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What notices that a check is missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Witness {
    /// A test of this package, on the host.
    Package(String),
    /// A model of this package, which loom explores.
    Models(String),
    /// A test of this suite, in a booted machine.
    Suite(String),
}

impl Witness {
    /// The suite's or package's name.
    pub(super) fn name(&self) -> &str {
        match self {
            Witness::Package(name) | Witness::Models(name) | Witness::Suite(name) => name,
        }
    }

    /// Whether a machine must be booted for it.
    pub(super) fn is_booted(&self) -> bool {
        matches!(self, Witness::Suite(_))
    }
}

/// A patch that removes one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Patch {
    /// Its file's, without the ending.
    pub(super) name: String,
    /// What is no longer checked, as the object of a sentence.
    pub(super) removes: String,
    pub(super) witness: Witness,
    /// The test that fails: the id of a booted one, the path of one on the host.
    pub(super) test: String,
    hunks: Vec<Hunk>,
}

/// One place that a patch changes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hunk {
    path: PathBuf,
    before: String,
    after: String,
}

impl Patch {
    /// Reads a patch.
    ///
    /// # Errors
    /// What its head lacks.
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

    /// The files that it changes, with their new contents.
    ///
    /// # Errors
    /// Where it does not apply: what it replaces must stand there exactly once.
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
            // The first line says where the hunk was: it is looked for everywhere.
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

/// The line of a hunk as it is on one side, that of `sign`.
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
