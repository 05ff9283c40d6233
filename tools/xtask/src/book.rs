//! The book in `docs/`: rendering it, and its checks in `./mac check`. Every chapter must be in the
//! summary; every link must lead to a file of the book and a heading in it. The commands
//! ([`commands`]) and the files of the tree ([`paths`]) that the book names must exist. Words that
//! programs understand must be explained ([`mentioned`]).

mod commands;
mod mentioned;
mod paths;

use anyhow::{Context, Result, bail};
pub(crate) use commands::{check as check_commands, run as run_commands};
use mac_build::tree::read;
use mac_build::{command, toolchain, tree};
pub(crate) use mentioned::check as check_mentioned;
pub(crate) use paths::check as check_paths;
use std::fs;
use std::path::{Path, PathBuf};

/// The version of mdBook that renders the book.
const MDBOOK: &str = "0.5.4";
/// Where the chapters are, from the root of the tree.
const CHAPTERS: &str = "docs/src";
/// Files outside the book that are checked like its chapters.
const OTHERS: [&str; 3] = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// Options of `./mac book`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only check links, commands and names of files, which `./mac check` does too
    #[arg(long)]
    check: bool,
    /// Only run the commands that the book marks to be run, which `./mac test` does too
    #[arg(long, conflicts_with = "check")]
    run: bool,
    /// Only make the pictures again that show the system and its figures: boots it, plays the
    /// sessions that are shown, and records a trace
    #[arg(long, conflicts_with_all = ["check", "run"])]
    pictures: bool,
}

/// The session that is played for the book's pictures of screens.
const SESSIONS: &str = "shell/programs";

/// Renders the book into `target/book`. The first call builds mdBook, from crates.io and with the
/// versions that its authors locked, and keeps it in `target`.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.pictures {
        mac_guest::pictures(SESSIONS, &tree::root().join(CHAPTERS).join("pictures"))?;
        // This also draws the pictures of results.
        return mac_lab::trace::publish_phases();
    }
    check_links()?;
    check_commands()?;
    check_paths()?;
    check_mentioned()?;
    if options.check {
        return Ok(());
    }
    if options.run {
        println!("{} blocks of commands ended with status 0", run_commands()?);
        return Ok(());
    }
    let installed = tree::target().join(format!("mdbook-{MDBOOK}"));
    let program = installed.join("bin/mdbook");
    if !program.is_file() {
        eprintln!("mac: building mdBook {MDBOOK}, once: some minutes");
        let results = tree::target().join("mdbook-build");
        let mut cargo = command::clean(toolchain::host_cargo());
        cargo.args(["install", "--locked", "--no-default-features", "--features", "search"]);
        cargo.arg("--root").arg(&installed).arg("--target-dir").arg(&results);
        cargo.arg(format!("mdbook@{MDBOOK}"));
        command::run(&mut cargo, "building mdBook")?;
        fs::remove_dir_all(&results).with_context(|| format!("cannot remove {}", results.display()))?;
    }
    let book = tree::target().join("book");
    let mut render = command::clean(&program);
    command::run(render.args(["build", "docs", "--dest-dir"]).arg(&book), "rendering the book")?;
    println!("{}", book.join("index.html").display());
    Ok(())
}

/// Checks the links of the book, and of the prose in the root of the tree.
pub(crate) fn check_links() -> Result<()> {
    let root = tree::root();
    let chapters = chapters()?;
    let listed = read(&root.join(CHAPTERS).join("SUMMARY.md"))?;
    let mut wrong = Vec::new();
    for chapter in &chapters {
        let name = chapter.strip_prefix(root.join(CHAPTERS)).unwrap_or(chapter).display().to_string();
        if name != "SUMMARY.md" && !links(&listed).contains(&name.as_str()) {
            wrong.push(format!("{name} is not in SUMMARY.md"));
        }
    }
    for file in chapters.into_iter().chain(OTHERS.map(|name| root.join(name))) {
        let text = read(&file)?;
        for link in links(&text) {
            if let Err(error) = follow(&root.join(CHAPTERS), &file, link) {
                wrong
                    .push(format!("{}: {link}: {error}", file.strip_prefix(root).unwrap_or(&file).display()));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { bail!("{}", wrong.join("\n")) }
}

/// The files with prose: the chapters, and those in the root of the tree.
fn prose() -> Result<Vec<PathBuf>> {
    let mut files = chapters()?;
    files.extend(OTHERS.map(|name| tree::root().join(name)));
    Ok(files)
}

fn chapters() -> Result<Vec<PathBuf>> {
    tree::files(&tree::root().join(CHAPTERS), &[".md"])
}

/// The lines of a text outside fenced code.
fn unfenced(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

/// The targets of a text's `[...](...)` links, outside code.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in unfenced(text) {
        let mut rest = line;
        while let Some(start) = rest.find("](") {
            rest = &rest[start + 2..];
            let Some(end) = rest.find(')') else { break };
            found.push(&rest[..end]);
            rest = &rest[end..];
        }
    }
    found
}

/// Says why a link leads nowhere, if it does. Other sites are not asked.
fn follow(chapters: &Path, from: &Path, link: &str) -> Result<()> {
    if link.contains("://") {
        return Ok(());
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let file = match path {
        "" => from.to_path_buf(),
        _ => from.parent().unwrap_or(Path::new("")).join(path),
    };
    let Ok(file) = file.canonicalize() else { bail!("there is no such file") };
    if from.starts_with(chapters) && !file.starts_with(chapters) {
        bail!("it leaves the book, which is rendered without the tree around it");
    }
    if anchor.is_empty() || anchors(&read(&file)?).iter().any(|it| it == anchor) {
        return Ok(());
    }
    bail!("there is no such heading")
}

/// The names by which a chapter's headings are linked to, as mdBook makes them.
fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in unfenced(text) {
        let title = line.trim_start_matches('#');
        let depth = line.len() - title.len();
        let Some(title) = title.strip_prefix(' ').filter(|_| (1..=6).contains(&depth)) else { continue };
        if let Some((_, name)) = title.trim_end().strip_suffix('}').and_then(|it| it.rsplit_once("{#")) {
            found.push(name.into());
            continue;
        }
        let name = slug(title);
        let again = found.iter().filter(|it| **it == name || is_numbered(it, &name)).count();
        found.push(if again == 0 { name } else { format!("{name}-{again}") });
    }
    found
}

/// Whether this is the name with a number after it.
fn is_numbered(candidate: &str, name: &str) -> bool {
    let number = candidate.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn slug(title: &str) -> String {
    let mut text = String::new();
    let mut rest = title.trim();
    // Of a link in a heading only its words count.
    while let Some((before, link)) = rest.split_once("](") {
        text.push_str(before);
        rest = link.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let kept = text.chars().filter_map(|character| match character {
        _ if character.is_alphanumeric() || "-_".contains(character) => Some(character),
        _ if character.is_whitespace() => Some('-'),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code() {
        let text = "See [one](a.md) and [two](b.md#part).\n```\nx[1](2)\n```\n[three](c.md)";
        assert_eq!(links(text), ["a.md", "b.md#part", "c.md"]);
    }

    #[test]
    fn a_link_to_a_missing_file_or_heading_leads_nowhere() {
        let chapters = tree::root().join(CHAPTERS);
        let from = chapters.join("introduction.md");
        let leads = |link| follow(&chapters, &from, link).is_ok();
        assert!(leads("tour.md") && leads("https://example.org/x") && leads("building.md#what-is-built"));
        assert!(!leads("no-such-file.md") && !leads("building.md#no-such-heading"));
        assert!(!leads("../../Cargo.toml"));
        assert!(follow(&chapters, &tree::root().join("README.md"), "Cargo.toml").is_ok());
    }

    #[test]
    fn headings_are_named_as_mdbook_names_them() {
        let text =
            "# A `./mac` of [one's own](x.md)\n## Ends\n```\n# no heading\n```\n## Ends\n### K1. ABI {#k1}\n";
        assert_eq!(anchors(text), ["a-mac-of-ones-own", "ends", "ends-1", "k1"]);
    }
}
