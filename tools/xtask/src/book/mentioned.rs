//! Checks that the words which programs understand are in the chapters that explain them: verbs of
//! `./mac`, boot options, commands of the debugger, keys of the boot configuration.

use super::Code;
use anyhow::{Result, bail};
use clap::CommandFactory;
use mac_build::tree::{self, read};
use std::collections::BTreeSet;

/// The sources that compare words in arms of a `match`, and the chapter for each.
const SOURCES: [(&str, &str); 4] = [
    ("kernel/src/config.rs", "docs/src/booting.md"),
    ("kernel/src/kdb/command.rs", "docs/src/debugger.md"),
    ("servers/root/src/configuration.rs", "docs/src/root.md"),
    ("servers/unix/src/options.rs", "docs/src/unix.md"),
];
const VERBS: &str = "docs/src/building.md";

/// Checks that each word is in its chapter.
pub(crate) fn check() -> Result<()> {
    let mut wrong = Vec::new();
    for (source, chapter) in SOURCES {
        let words = understood(&read(&tree::root().join(source))?);
        if words.is_empty() {
            bail!("{source} compares with no words any more: {chapter} explains what is elsewhere now");
        }
        wrong.extend(missing(chapter, words)?);
    }
    let tool = crate::Arguments::command();
    wrong.extend(missing(VERBS, tool.get_subcommands().map(|verb| verb.get_name().into()))?);
    if wrong.is_empty() { Ok(()) } else { bail!("{}", wrong.join("\n")) }
}

fn missing(chapter: &str, words: impl IntoIterator<Item = String>) -> Result<Vec<String>> {
    let explained = explained(&read(&tree::root().join(chapter))?);
    let missing = words.into_iter().filter(|word| !explained.contains(word));
    Ok(missing.map(|word| format!("{chapter}: {word} is not explained")).collect())
}

/// The words in the arms of a source, up to its tests: `"a" | "b" =>`, and `("a", "b") =>` for
/// `a=b`.
fn understood(source: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for line in source.lines().take_while(|line| *line != "#[cfg(test)]") {
        let Some((pattern, _)) = line.split_once("=>") else { continue };
        let quoted: Vec<&str> = pattern.split('"').skip(1).step_by(2).collect();
        let is_word = |word: &str| word.starts_with(|it: char| it.is_ascii_lowercase());
        match quoted[..] {
            [name, value] if pattern.contains("\", \"") => drop(words.insert(format!("{name}={value}"))),
            _ => words.extend(quoted.into_iter().filter(|word| is_word(word)).map(String::from)),
        }
    }
    words
}

/// The words in a chapter's code. For `a=b` these are `a` and `a=b`.
fn explained(chapter: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for code in Code::of(chapter).lines() {
        let belongs = |it: char| it.is_ascii_alphanumeric() || "=-_".contains(it);
        for word in code.split(|it| !belongs(it)) {
            words.insert(word.to_string());
            words.extend(word.split_once('=').map(|(name, _)| name.to_string()));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_arms_are_found() {
        let source = "Some((\"kdb\", \"off\")) => x,\nSome((\"log\", level)) => y,\n\"t\" | \"threads\" => {\n\
                      call(\"other\");\n\"?\" => z,\n#[cfg(test)]\n\"test\" => t,";
        assert_eq!(understood(source), ["kdb=off", "log", "t", "threads"].map(String::from).into());
    }

    #[test]
    fn words_of_code_are_explained() {
        let explained = explained("`t`, `kdb=off`, plain and\n`trace=EVENTS [x|y-z]`");
        let expected = ["t", "kdb", "kdb=off", "trace", "x", "y-z"];
        assert!(expected.iter().all(|word| explained.contains(*word)), "{explained:?}");
        assert!(!explained.contains("plain"));
    }

    #[test]
    fn the_book_explains_what_programs_understand() {
        check().unwrap();
    }
}
