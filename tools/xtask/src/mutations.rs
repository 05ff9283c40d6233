//! The patches of `tests/mutations`: each still applies, and the test that must notice it exists. (`tests/mutations/run`
//! shows that the test does.)

use crate::tree;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// Checks every patch.
pub(crate) fn check() -> Result<()> {
    let directory = tree::root().join("tests/mutations");
    let tests = test_sources()?;
    let mut wrong = Vec::new();
    for entry in fs::read_dir(&directory).with_context(|| format!("reading {}", directory.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "patch") {
            let text = fs::read_to_string(&path)?;
            let read = |name: &str| fs::read_to_string(tree::root().join(name)).unwrap_or_default();
            for reason in shortcomings(&text, read, &tests) {
                wrong.push(format!("{}: {reason}", path.file_name().unwrap_or_default().display()));
            }
        }
    }
    wrong.sort();
    if wrong.is_empty() { Ok(()) } else { bail!("tests/mutations: {}", wrong.join("\n")) }
}

/// Everything that can define a test.
fn test_sources() -> Result<String> {
    let mut text = String::new();
    for place in ["tests/x2/src", "tests/foreign/src", "tests/suites.toml", "kernel", "tools/xtask/src"] {
        append(&tree::root().join(place), &mut text)?;
    }
    Ok(text)
}

fn append(path: &Path, text: &mut String) -> Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            append(&entry?.path(), text)?;
        }
    } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "toml") {
        text.push_str(&fs::read_to_string(path)?);
    }
    Ok(())
}

/// What is wrong with a patch, given the tree's files and the sources of its tests.
fn shortcomings(patch: &str, read: impl Fn(&str) -> String, tests: &str) -> Vec<String> {
    let mut found = Vec::new();
    let field = |name: &str| patch.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    for name in ["Removes: ", "Run: "] {
        if field(name).is_none() {
            found.push(format!("its head lacks {name:?}"));
        }
    }
    let test = field("Fails: ").unwrap_or_default();
    let name = test.rsplit("::").next().unwrap_or_default();
    if name.is_empty() || !tests.contains(&format!("fn {name}(")) && !tests.contains(&format!("{name} [")) {
        found.push(format!("there is no test {test:?}"));
    }
    for file in patch.split("\ndiff --git ").skip(1) {
        let Some(path) = file.lines().find_map(|line| line.strip_prefix("+++ b/")) else { continue };
        let contents = read(path);
        for hunk in file.split("\n@@ ").skip(1) {
            let old: String = hunk.lines().skip(1).filter_map(before).collect();
            if !contents.contains(&old) {
                found.push(format!("does not apply to {path}"));
            }
        }
    }
    found
}

/// The line of a hunk as the file has it without the patch.
fn before(line: &str) -> Option<String> {
    match line.chars().next() {
        Some('+' | '\\') => None,
        Some(' ' | '-') => Some(format!("{}\n", &line[1..])),
        _ => Some("\n".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "Removes: a check\nRun: --booted x\nFails: ABC0001\n\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n\
                         @@ -1,3 +1,2 @@\n one\n-two\n three\n";

    #[test]
    fn a_patch_applies_or_not() {
        let tests = "ABC0001 [7.1] \"sentence\" run;";
        let none: [String; 0] = [];
        assert_eq!(shortcomings(PATCH, |_| "zero\none\ntwo\nthree\n".into(), tests), none);
        assert_eq!(shortcomings(PATCH, |_| "one\n2\nthree\n".into(), tests), ["does not apply to f"]);
    }

    #[test]
    fn its_test_must_exist() {
        let found = shortcomings(PATCH, |_| "one\ntwo\nthree\n".into(), "ABC0002 [7.1]");
        assert_eq!(found, ["there is no test \"ABC0001\""]);
    }
}
