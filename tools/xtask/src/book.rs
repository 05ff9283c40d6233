//! The book in `docs/`: every chapter is in the summary, and every link leads to a file that exists.

use crate::tree;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Checks the README and the book.
pub(crate) fn check_links() -> Result<()> {
    let root = tree::root();
    let chapters = markdown_files(&root.join("docs/src"))?;
    let summary = root.join("docs/src/SUMMARY.md");
    let listed =
        fs::read_to_string(&summary).with_context(|| format!("cannot read {}", summary.display()))?;
    let mut wrong = Vec::new();
    for chapter in &chapters {
        let name = chapter.strip_prefix(root.join("docs/src")).unwrap_or(chapter).display().to_string();
        if name != "SUMMARY.md" && !links(&listed).contains(&name.as_str()) {
            wrong.push(format!("{name} is not in SUMMARY.md"));
        }
    }
    for file in chapters.into_iter().chain([root.join("README.md")]) {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        for link in links(&text) {
            if !leads_somewhere(&file, link) {
                wrong.push(format!(
                    "{}: {link} leads nowhere",
                    file.strip_prefix(root).unwrap_or(&file).display()
                ));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { bail!("{}", wrong.join("\n")) }
}

fn markdown_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(markdown_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The targets of a text's `[...](...)` links, outside code.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
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

/// Whether a link is to another site, to a place in the same file, or to a file that exists.
fn leads_somewhere(from: &Path, link: &str) -> bool {
    let path = link.split_once('#').map_or(link, |(path, _)| path);
    path.is_empty()
        || link.contains("://")
        || from.parent().is_some_and(|directory| directory.join(path).exists())
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
    fn a_link_to_a_missing_file_leads_nowhere() {
        let manifest = tree::root().join("Cargo.toml");
        assert!(leads_somewhere(&manifest, "README.md"));
        assert!(leads_somewhere(&manifest, "#here"));
        assert!(leads_somewhere(&manifest, "https://example.org/x"));
        assert!(!leads_somewhere(&manifest, "no-such-file.md"));
    }
}
