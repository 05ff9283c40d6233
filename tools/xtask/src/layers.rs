//! What a layer must not know: names that belong to one above it. The Unix core has nothing of the
//! systems whose front ends stand on it, neither in code nor in comments: what it has, it explains
//! in POSIX' terms or its own.

use anyhow::{Context, Result, bail};
use mac_build::tree;
use std::fs;
use std::path::{Path, PathBuf};

/// A layer's directory, and parts of names that must not stand in its files, in lower case.
struct Layer {
    directory: &'static str,
    foreign: &'static [&'static str],
}

const LAYERS: [Layer; 1] = [Layer {
    directory: "personality/unix/src",
    foreign: &[
        "linux",
        "epoll",
        "inotify",
        "signalfd",
        "eventfd",
        "timerfd",
        "pidfd",
        "procfs",
        "sysfs",
        "/proc",
        "/sys/",
        "kmsg",
        "futex",
        "robust",
        "restart_syscall",
        "capabilit",
        "oom_score",
    ],
}];

/// Checks that no layer names what is foreign to it.
pub(crate) fn check() -> Result<()> {
    let mut found = Vec::new();
    for layer in &LAYERS {
        let mut files = Vec::new();
        sources(&tree::root().join(layer.directory), &mut files)?;
        if files.is_empty() {
            bail!("{} has no files", layer.directory);
        }
        for file in files {
            let name = file.strip_prefix(tree::root()).unwrap_or(&file).display().to_string();
            let text = fs::read_to_string(&file).with_context(|| format!("reading {name}"))?;
            let lines = foreign_lines(&text, layer.foreign).into_iter();
            found.extend(lines.map(|(line, what)| format!("    {name}:{line}: \"{what}\"")));
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!("a layer names what belongs above it (docs/src/architecture.md, U4):\n{}", found.join("\n"))
}

/// The lines, from 1 on, in which one of the names stands, and the name.
fn foreign_lines<'n>(text: &str, foreign: &[&'n str]) -> Vec<(usize, &'n str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.to_lowercase()));
    lines
        .flat_map(|(number, line)| {
            foreign.iter().filter(move |name| line.contains(**name)).map(move |name| (number, *name))
        })
        .collect()
}

pub(crate) fn sources(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_names_are_found_in_code_and_comments_however_they_are_written() {
        let text = "struct Poll;\n// as Linux does\nuse a::EPOLL_IN;\nlet path = \"/process\";\n";
        let found = foreign_lines(text, &["linux", "epoll", "/sys/"]);
        assert_eq!(found, [(2, "linux"), (3, "epoll")]);
    }

    #[test]
    fn the_core_of_unix_is_free_of_its_front_ends() {
        check().unwrap();
    }
}
