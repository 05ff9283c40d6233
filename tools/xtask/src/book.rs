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
use pulldown_cmark::{CodeBlockKind, Event, Options as Markdown, Parser, Tag, TagEnd};
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
    /// Only run the commands that the book marks to be run, which `./mac test` does too
    #[arg(long)]
    run: bool,
    /// Only make the pictures again that show the system and its figures: boots it, plays the
    /// sessions that are shown, and records a trace
    #[arg(long, conflicts_with = "run")]
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
        if name != "SUMMARY.md" && !links(&listed).contains(&name) {
            wrong.push(format!("{name} is not in SUMMARY.md"));
        }
    }
    for file in prose()? {
        let text = read(&file)?;
        for link in links(&text) {
            if let Err(error) = follow(&root.join(CHAPTERS), &file, &link) {
                wrong.push(format!("{}: {link}: {error}", tree::name(&file)));
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

/// What the chapters are written in: what mdBook understands, as far as it matters here.
const MARKDOWN: Markdown =
    Markdown::ENABLE_TABLES.union(Markdown::ENABLE_HEADING_ATTRIBUTES).union(Markdown::ENABLE_FOOTNOTES);

/// The code in a text.
#[derive(Default)]
struct Code {
    /// Between back quotes, within prose.
    spans: Vec<String>,
    /// Blocks: what stands after the fence, and the content.
    blocks: Vec<(String, String)>,
    /// Prose with a back quote that has no other.
    unmatched: Vec<String>,
}

impl Code {
    fn of(text: &str) -> Code {
        let mut code = Code::default();
        let mut in_block = false;
        for event in Parser::new_ext(text, MARKDOWN) {
            match event {
                Event::Code(span) => code.spans.push(span.into_string()),
                Event::Start(Tag::CodeBlock(kind)) => {
                    let words = if let CodeBlockKind::Fenced(words) = kind { words } else { "".into() };
                    code.blocks.push((words.into_string(), String::new()));
                    in_block = true;
                }
                Event::End(TagEnd::CodeBlock) => in_block = false,
                Event::Text(text) if in_block => {
                    code.blocks.last_mut().expect("a block has begun").1.push_str(&text);
                }
                Event::Text(text) if text.contains('`') => code.unmatched.push(text.into_string()),
                _ => {}
            }
        }
        code
    }

    /// The spans, and the lines of the blocks.
    fn lines(&self) -> impl Iterator<Item = &str> {
        let blocks = self.blocks.iter().flat_map(|(_, content)| content.lines());
        self.spans.iter().map(String::as_str).chain(blocks)
    }
}

/// Where a text's links and pictures lead.
fn links(text: &str) -> Vec<String> {
    let target = |event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some(dest_url.into_string())
        }
        _ => None,
    };
    Parser::new_ext(text, MARKDOWN).filter_map(target).collect()
}

/// Returns why a link leads nowhere, if it does. Links to other sites are not checked.
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

/// The anchors of a chapter's headings, as mdBook makes them.
fn anchors(text: &str) -> Vec<String> {
    let (mut found, mut slugs) = (Vec::new(), Vec::new());
    let mut title: Option<String> = None;
    for event in Parser::new_ext(text, MARKDOWN) {
        match (event, &mut title) {
            (Event::Start(Tag::Heading { id: Some(id), .. }), _) => found.push(id.into_string()),
            (Event::Start(Tag::Heading { .. }), _) => title = Some(String::new()),
            (Event::Text(text) | Event::Code(text), Some(title)) => title.push_str(&text),
            (Event::End(TagEnd::Heading(_)), Some(title_text)) => {
                let name = slug(title_text);
                let again = slugs.iter().filter(|slug| **slug == name).count();
                found.push(if again == 0 { name.clone() } else { format!("{name}-{again}") });
                slugs.push(name);
                title = None;
            }
            _ => {}
        }
    }
    found
}

fn slug(title: &str) -> String {
    let kept = title.trim().chars().filter_map(|character| match character {
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

    /// What a recording of Python's tests says of its modules: how many pass, with how many tests.
    fn passed(recorded: &str) -> (usize, usize) {
        let tests = recorded.lines().filter_map(|line| {
            let (_, result) = line.split_once(": ")?;
            result.strip_suffix(" tests, ok")?.parse::<usize>().ok()
        });
        tests.fold((0, 0), |(modules, all), tests| (modules + 1, all + tests))
    }

    #[test]
    fn the_book_says_how_many_of_pythons_tests_are_compared() {
        let recorded = read(&tree::root().join("tests/guests/expected/base/python-tests.txt")).unwrap();
        let (modules, tests) = passed(&recorded);
        assert_eq!(
            passed("test_a: 2 tests, ok\ntest_b: 3 tests, status 2 test_x\ntest_c: 1 tests, ok\n"),
            (2, 3)
        );
        let said = format!("{modules} modules, with {tests} tests,");
        let chapter = read(&tree::root().join(CHAPTERS).join("packages.md")).unwrap();
        let chapter = chapter.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(chapter.contains(&said), "the chapter about packages must say: {said}");
    }

    #[test]
    fn headings_are_named_as_mdbook_names_them() {
        let text =
            "# A `./mac` of [one's own](x.md)\n## Ends\n```\n# no heading\n```\n## Ends\n### K1. ABI {#k1}\n";
        assert_eq!(anchors(text), ["a-mac-of-ones-own", "ends", "ends-1", "k1"]);
    }
}
