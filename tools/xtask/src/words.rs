//! Counts words that comments and prose should not use, and lines that are too long for two windows
//! side by side: `tools/xtask/words.toml` says how many of each there may still be. `./mac check`
//! refuses larger numbers; `./mac words` writes smaller ones into the list, never larger ones.

use anyhow::{Context, Result, bail};
use mac_build::tree::{self, read};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;

/// The path of the list from the root of the tree.
const LIST: &str = "tools/xtask/words.toml";
/// The endings of the names of files with comments, and the characters with which comments begin in
/// them.
const COMMENTS: [(&[&str], &[&str]); 2] =
    [(&["rs", "c", "cc", "h", "S", "defs"], &["//", "/*", "* "]), (&["toml", "conf", "sh"], &["#"])];
/// How many columns a line of prose may have.
const COLUMNS: usize = 100;

#[derive(Deserialize)]
struct List {
    /// How many lines of comments and prose may have more than [`COLUMNS`] columns.
    long_lines: usize,
    /// For each word or phrase, how often it may be in comments and prose.
    words: BTreeMap<String, usize>,
    /// Of a layer's directory, parts of names, in lower case, that belong to a layer above it.
    foreign: BTreeMap<String, Vec<String>>,
}

/// The places in the tree of what the list counts, as `FILE:LINE`.
#[derive(Default)]
struct Found {
    long_lines: Vec<String>,
    words: BTreeMap<String, Vec<String>>,
}

/// A limit of the list: its key, the number that is allowed, and the places that were found.
type Limit = (String, usize, Vec<String>);

/// Checks that nothing is found more often than the list allows.
pub(crate) fn check() -> Result<()> {
    let mut more = Vec::new();
    for (key, limit, places) in limits()? {
        if places.len() > limit {
            more.push(format!("{key}: {} times, {LIST} allows {limit}", places.len()));
            // The places are listed only if they are few. Otherwise new ones could not be found
            // among old ones.
            more.extend(places.iter().filter(|_| places.len() <= 20).map(|place| format!("    {place}")));
        }
    }
    if more.is_empty() {
        return Ok(());
    }
    bail!("say it in other words (docs/src/glossary.md; `git diff` shows what is new):\n{}", more.join("\n"))
}

/// Writes smaller numbers into the list.
pub(crate) fn lower() -> Result<()> {
    check()?;
    let path = tree::root().join(LIST);
    let mut text = read(&path)?;
    for (key, limit, places) in limits()? {
        let count = places.len();
        if count < limit {
            text = text.replace(&format!("{key} = {limit}\n"), &format!("{key} = {count}\n"));
            println!("{key}: {limit} -> {count}");
        }
    }
    fs::write(&path, text).with_context(|| format!("cannot write {LIST}"))
}

fn list() -> Result<List> {
    toml::from_str(&read(&tree::root().join(LIST))?).with_context(|| LIST.to_string())
}

/// Checks that no layer names what belongs to one above it, neither in code nor in comments: the
/// Unix core explains what it has in POSIX' terms or its own.
pub(crate) fn check_layers() -> Result<()> {
    let mut found = Vec::new();
    for (layer, foreign) in list()?.foreign {
        let files = tree::files(&tree::root().join(&layer), &[".rs"])?;
        if files.is_empty() {
            bail!("{layer} has no files");
        }
        for file in files {
            let name = tree::name(&file);
            let lines = foreign_lines(&read(&file)?, &foreign);
            found.extend(lines.into_iter().map(|(line, what)| format!("    {name}:{line}: {what:?}")));
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!("a layer names what belongs above it (docs/src/architecture.md, U4):\n{}", found.join("\n"))
}

/// The lines, counted from 1, that contain one of the names, with the name.
fn foreign_lines<'n>(text: &str, foreign: &'n [String]) -> Vec<(usize, &'n str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.to_lowercase()));
    let names = |(number, line): (usize, String)| {
        foreign.iter().filter(move |name| line.contains(*name)).map(move |name| (number, name.as_str()))
    };
    lines.flat_map(names).collect()
}

/// The limits of the list, with the places that were found in the tree.
fn limits() -> Result<Vec<Limit>> {
    let list = list()?;
    let mut found = Found::default();
    for file in tree::own_files(&[""])? {
        let name = tree::name(&file);
        let is_text = name.ends_with(".md") || comments_of(&name).is_some();
        // The list itself contains the words.
        if is_text && name != LIST {
            found.add(&name, &read(&file)?, list.words.keys());
        }
    }
    let mut limits = vec![("long_lines".to_string(), list.long_lines, found.long_lines)];
    for (word, limit) in list.words {
        let places = found.words.remove(&word).unwrap_or_default();
        limits.push((format!("\"{word}\""), limit, places));
    }
    Ok(limits)
}

impl Found {
    /// Adds the places in one file.
    fn add<'w>(&mut self, name: &str, text: &str, words: impl Iterator<Item = &'w String> + Clone) {
        for (number, line, prose) in texts(name, text) {
            // Rows of tables and headings cannot be broken.
            if line.chars().count() > COLUMNS && !line.starts_with(['|', '#']) {
                self.long_lines.push(format!("{name}:{number}"));
            }
            // Code within prose contains names as they are in the sources.
            let prose = prose.split('`').step_by(2).collect::<Vec<_>>().join(" ");
            for word in words.clone() {
                let times = occurrences(&prose, word);
                let places = self.words.entry(word.clone()).or_default();
                places.extend((0..times).map(|_| format!("{name}:{number}")));
            }
        }
    }
}

/// The characters with which comments begin in a file of this name.
fn comments_of(name: &str) -> Option<&'static [&'static str]> {
    let (_, extension) = name.rsplit_once('.')?;
    COMMENTS.iter().find(|(extensions, _)| extensions.contains(&extension)).map(|(_, marks)| *marks)
}

/// The lines with prose in a file, each with its number, the whole line and its prose. In Markdown,
/// prose is all text outside code; in other files it is the comments.
fn texts<'t>(name: &str, text: &'t str) -> Vec<(usize, &'t str, &'t str)> {
    let marks = comments_of(name).unwrap_or_default();
    let mut fenced = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let prose = if name.ends_with(".md") {
            fenced ^= trimmed.starts_with("```");
            (!fenced).then_some(line)
        } else if marks.iter().any(|mark| trimmed.starts_with(mark)) {
            Some(trimmed)
        } else {
            line.find(&format!(" {} ", marks.first().unwrap_or(&"//"))).map(|at| &line[at..])
        };
        found.extend(prose.map(|prose| (index + 1, line, prose)));
    }
    found
}

/// How often a word or phrase occurs in a text. It must be a whole word, with the same case except
/// for its first letter.
fn occurrences(text: &str, word: &str) -> usize {
    let is_letter = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    let matches = |spelling: &str| {
        let whole = |(at, found): &(usize, &str)| {
            let after = text[at + found.len()..].chars().next();
            !is_letter(text[..*at].chars().next_back()) && !is_letter(after)
        };
        text.match_indices(spelling).filter(whole).count()
    };
    let mut letters = word.chars();
    let capital: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    matches(word) + if capital == word { 0 } else { matches(&capital) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str, word: &str) -> Vec<String> {
        let mut found = Found::default();
        found.add(name, text, [word.to_string()].iter());
        found.words.remove(word).unwrap_or_default()
    }

    #[test]
    fn whole_words_count() {
        assert_eq!(occurrences("Who knows who; whose, whom, whoever", "who"), 2);
        assert_eq!(occurrences("done at once, At once", "at once"), 2);
    }

    #[test]
    fn only_comments_and_prose_count() {
        let rust = "let who = 1; // who\n/// `who` is it\n    // who\nwho();\n";
        assert_eq!(found("a.rs", rust, "who"), ["a.rs:1", "a.rs:3"]);
        assert_eq!(found("a.md", "who\n```\nwho\n```\n`who`\n", "who"), ["a.md:1"]);
        assert_eq!(found("a.toml", "who = 1 # who\n# who\n", "who"), ["a.toml:1", "a.toml:2"]);
    }

    #[test]
    fn long_lines_count_but_rows_of_tables() {
        let long = "x".repeat(COLUMNS - 2);
        let mut found = Found::default();
        found.add("a.rs", &format!("// {long}\n//{long}\n{long}xxx\n"), [].iter());
        found.add("a.md", &format!("| {long}\n{long}xxx\n"), [].iter());
        assert_eq!(found.long_lines, ["a.rs:1", "a.md:2"]);
    }

    #[test]
    fn foreign_names_are_found_in_code_and_comments_however_they_are_written() {
        let text = "struct Poll;\n// as Linux does\nuse a::EPOLL_IN;\nlet path = \"/process\";\n";
        let foreign = ["linux", "epoll", "/sys/"].map(String::from);
        assert_eq!(foreign_lines(text, &foreign), [(2, "linux"), (3, "epoll")]);
    }

    #[test]
    fn the_core_of_unix_is_free_of_its_front_ends() {
        check_layers().unwrap();
    }
}
