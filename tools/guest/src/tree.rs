//! A root file system in memory: what an image is packed from.

use super::{package, tar};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Which user owns a file, and what may be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attributes {
    /// Permission bits, with set-user-id, set-group-id and sticky.
    pub(super) mode: u32,
    pub(super) user: u32,
    pub(super) group: u32,
    /// Seconds since 1970.
    pub(super) modified: u32,
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    /// Index into the files: several paths may have the same.
    File(usize),
    SymbolicLink(String),
}

/// The file system: paths without leading `/`.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<String, (Attributes, Node)>,
    files: Vec<Vec<u8>>,
}

/// Directories that are links into /usr on a Debian system, whatever the packages say.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

impl Tree {
    /// An empty root with Debian's merged /usr.
    pub(super) fn new() -> Tree {
        let mut tree = Tree::default();
        for name in MERGED {
            tree.directory(&format!("usr/{name}"), 0o755);
            tree.link(name, &format!("usr/{name}"));
        }
        tree
    }

    /// Adds what a package's file would install, without what `wanted` refuses.
    pub(super) fn add_package(
        &mut self,
        file: &Path,
        name: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let (entries, sums) = package::contents(file)?;
        let newest = entries.iter().map(|entry| entry.modified).max().unwrap_or(0);
        // Names of one file are found by the first of them, under the path that the archive has for
        // it.
        let mut archived: BTreeMap<String, usize> = BTreeMap::new();
        for entry in entries {
            let path = merged(&entry.path);
            let tar::Entry { mode, user, group, modified, .. } = entry;
            let attributes = Attributes { mode, user, group, modified };
            let node = match entry.kind {
                tar::Kind::Directory => {
                    // A directory that several packages have keeps its first attributes; a link to
                    // one stays a link.
                    if !path.is_empty() && wanted(&path) && !MERGED.contains(&entry.path.as_str()) {
                        self.nodes.entry(path).or_insert((attributes, Node::Directory));
                    }
                    continue;
                }
                tar::Kind::File(content) => {
                    archived.insert(entry.path.clone(), self.files.len());
                    self.files.push(content);
                    Node::File(self.files.len() - 1)
                }
                tar::Kind::HardLink(target) => Node::File(
                    *archived.get(&target).with_context(|| format!("{path} is a link to nothing"))?,
                ),
                tar::Kind::SymbolicLink(target) => Node::SymbolicLink(target),
            };
            if !wanted(&path) {
                continue;
            }
            if let Some((_, present)) = self.nodes.get(&path)
                && !self.same(present, &node)
            {
                bail!("{path} is in {name} and in another package");
            }
            self.nodes.insert(path, (attributes, node));
        }
        if let Some(sums) = sums {
            self.file(&format!("var/lib/dpkg/info/{name}.md5sums"), 0o644, sums.into_bytes());
            self.touch(&format!("var/lib/dpkg/info/{name}.md5sums"), newest);
        }
        Ok(())
    }

    fn same(&self, one: &Node, other: &Node) -> bool {
        match (one, other) {
            (Node::File(one), Node::File(other)) => self.files[*one] == self.files[*other],
            _ => one == other,
        }
    }

    /// Lays a directory's files over what is there, owned by root.
    pub(super) fn add_directory(&mut self, host: &Path, below: &str) -> Result<()> {
        let reading = || format!("reading {}", host.display());
        let mut entries: Vec<_> =
            fs::read_dir(host).with_context(reading)?.collect::<Result<_, _>>().with_context(reading)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_str().with_context(|| format!("{name:?} is not UTF-8"))?;
            let path = if below.is_empty() { merged(name) } else { merged(&format!("{below}/{name}")) };
            let kind = entry.file_type()?;
            let reading = || format!("reading {}", entry.path().display());
            if kind.is_dir() {
                if !self.nodes.contains_key(&path) {
                    self.directory(&path, 0o755);
                }
                self.add_directory(&entry.path(), &path)?;
            } else if kind.is_symlink() {
                let target = fs::read_link(entry.path()).with_context(reading)?;
                self.link(
                    &path,
                    target.to_str().with_context(|| format!("{path}: a target that is not UTF-8"))?,
                );
            } else if kind.is_file() {
                let content = fs::read(entry.path()).with_context(reading)?;
                let executable = entry.metadata()?.permissions().mode() & 0o100 != 0;
                self.file(&path, if executable { 0o755 } else { 0o644 }, content);
            } else {
                bail!("{} is neither a file nor a directory nor a link", entry.path().display());
            }
        }
        Ok(())
    }

    /// Adds a file, or replaces one.
    pub(super) fn file(&mut self, path: &str, mode: u32, content: Vec<u8>) {
        self.files.push(content);
        self.put(path, mode, Node::File(self.files.len() - 1));
    }

    /// Adds a directory, or changes its mode.
    pub(super) fn directory(&mut self, path: &str, mode: u32) {
        self.put(path, mode, Node::Directory);
    }

    /// Adds a symbolic link, or replaces what is there.
    pub(super) fn link(&mut self, path: &str, target: &str) {
        self.put(path, 0o777, Node::SymbolicLink(target.to_string()));
    }

    fn put(&mut self, path: &str, mode: u32, node: Node) {
        let attributes = Attributes { mode, user: 0, group: 0, modified: 0 };
        self.nodes.insert(merged(path), (attributes, node));
    }

    fn touch(&mut self, path: &str, modified: u32) {
        if let Some((attributes, _)) = self.nodes.get_mut(path) {
            attributes.modified = modified;
        }
    }

    /// Whether something is at that path, links on the way not followed.
    pub(super) fn contains(&self, path: &str) -> bool {
        self.nodes.contains_key(&merged(path))
    }

    /// Makes the directories that are missing on the way to what is there, and gives what is ours
    /// the newest date of all, so that the same packages make the same image.
    pub(super) fn complete(&mut self) {
        let newest = self.nodes.values().map(|(attributes, _)| attributes.modified).max().unwrap_or(0);
        let paths: Vec<String> = self.nodes.keys().cloned().collect();
        for path in paths {
            for (end, _) in path.match_indices('/') {
                if !self.nodes.contains_key(&path[..end]) {
                    self.directory(&path[..end], 0o755);
                }
            }
        }
        for (attributes, _) in self.nodes.values_mut().filter(|(attributes, _)| attributes.modified == 0) {
            attributes.modified = newest;
        }
    }

    /// Everything, each directory before what is in it.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&str, Attributes, &Node)> {
        self.nodes.iter().map(|(path, (attributes, node))| (path.as_str(), *attributes, node))
    }

    /// The content of a file.
    pub(super) fn content(&self, file: usize) -> &[u8] {
        &self.files[file]
    }
}

/// The path on a system whose /usr is merged.
fn merged(path: &str) -> String {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    if MERGED.contains(&first) && !rest.is_empty() { format!("usr/{path}") } else { path.to_string() }
}

/// Whether a path is what the pattern names, or below it. `*` in the pattern stands for a part of
/// one component.
pub(super) fn is_below(path: &str, pattern: &str) -> bool {
    let mut components = path.split('/');
    pattern.split('/').all(|pattern| components.next().is_some_and(|component| is_like(component, pattern)))
}

fn is_like(component: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return component == pattern };
    component.strip_prefix(start).is_some_and(|behind| {
        (0..=behind.len()).any(|at| behind.is_char_boundary(at) && is_like(&behind[at..], rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_paths_and_what_is_below() {
        assert!(is_below("usr/share/man/man1/ls.1.gz", "usr/share/man"));
        assert!(is_below("usr/share/doc/x/copyright", "usr/share/doc/*/copyright"));
        assert!(is_below("a/libfoo.so.1", "a/lib*.so*"));
        assert!(!is_below("usr/share/doc", "usr/share/doc/*/copyright"));
        assert!(!is_below("usr/share/manual", "usr/share/man"));
    }

    #[test]
    fn old_places_are_those_in_usr() {
        let mut tree = Tree::new();
        tree.file("bin/sh", 0o755, b"#!".to_vec());
        tree.complete();
        let paths: Vec<&str> = tree.nodes().map(|(path, ..)| path).collect();
        assert_eq!(
            paths,
            [
                "bin",
                "lib",
                "lib64",
                "sbin",
                "usr",
                "usr/bin",
                "usr/bin/sh",
                "usr/lib",
                "usr/lib64",
                "usr/sbin"
            ]
        );
        assert!(tree.contains("bin/sh") && tree.contains("usr/bin/sh"));
    }
}
