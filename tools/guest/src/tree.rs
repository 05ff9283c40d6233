//! A root file system: what an image is packed from.

use super::tar;
use anyhow::{Context, Result, bail};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
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

/// A file's content.
#[derive(Debug)]
enum Content {
    Own(Vec<u8>),
    /// In the archive from which the tree was made: where, and its length in bytes.
    Archived(u64, u64),
}

/// The file system: paths without leading `/`.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<String, (Attributes, Node)>,
    files: Vec<Content>,
    /// Images may be larger than the host's memory, so contents stay here until they are packed.
    archive: Option<File>,
}

/// Directories that are links into /usr on a Debian system, whatever the packages say.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];
/// Where an image has the list of the extended attributes of its files, for which its archive has
/// no room. Its first program sets them, and removes the list.
const ATTRIBUTES: &str = "run/attributes";
/// Where dpkg keeps what each package consists of.
const DPKG_INFO: &str = "var/lib/dpkg/info";

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

    /// The system in an archive, without what `left_out` says, unless it belongs to one of the
    /// packages `asked_for`.
    pub(super) fn of_system(
        system: &Path,
        asked_for: &[String],
        left_out: impl Fn(&str) -> bool,
    ) -> Result<Tree> {
        let reading = || format!("reading {}", system.display());
        let archive = File::open(system).with_context(reading)?;
        let entries = tar::parse(&archive).with_context(reading)?;
        let mut tree = Tree { archive: Some(archive), ..Tree::new() };
        // Names of one file are found by the first of them.
        let mut archived: BTreeMap<String, usize> = BTreeMap::new();
        let mut extended = Vec::new();
        for entry in entries {
            let tar::Entry { path, mode, user, group, modified, kind, attributes } = entry;
            extended.extend(attributes.into_iter().map(|attribute| (path.clone(), attribute)));
            let node = match kind {
                tar::Kind::Directory if path.is_empty() => continue,
                tar::Kind::Directory => Node::Directory,
                tar::Kind::File(start, length) => {
                    archived.insert(path.clone(), tree.files.len());
                    tree.files.push(Content::Archived(start, length));
                    Node::File(tree.files.len() - 1)
                }
                tar::Kind::HardLink(target) => Node::File(
                    *archived.get(&target).with_context(|| format!("{path} is a link to nothing"))?,
                ),
                tar::Kind::SymbolicLink(target) => Node::SymbolicLink(target),
            };
            tree.nodes.insert(path, (Attributes { mode, user, group, modified }, node));
        }
        let kept = tree.paths_of(asked_for)?;
        tree.nodes.retain(|path, _| !left_out(path) || kept.contains(path));
        extended.retain(|(path, _)| tree.nodes.contains_key(path));
        if !extended.is_empty() {
            tree.file(ATTRIBUTES, 0o600, attribute_list(&extended));
        }
        Ok(tree)
    }

    /// What dpkg says that packages consist of.
    fn paths_of(&self, packages: &[String]) -> Result<BTreeSet<String>> {
        let mut paths = BTreeSet::new();
        for package in packages {
            // Packages of libraries have their architecture in the name.
            for name in [format!("{package}.list"), format!("{package}:amd64.list")] {
                if let Some((_, Node::File(list))) = self.nodes.get(&format!("{DPKG_INFO}/{name}")) {
                    let list = self.content(*list)?;
                    let list = str::from_utf8(&list).with_context(|| format!("{name} is not UTF-8"))?;
                    paths.extend(list.lines().map(|line| merged(line.trim_start_matches('/'))));
                }
            }
        }
        Ok(paths)
    }

    /// Lays a directory's files over what is there.
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
        self.files.push(Content::Own(content));
        self.put(path, mode, Node::File(self.files.len() - 1));
    }

    /// Replaces a file's text, if there is such a file; says whether there is.
    pub(super) fn edit(&mut self, path: &str, change: impl FnOnce(&str) -> String) -> Result<bool> {
        let Some((attributes, Node::File(file))) = self.nodes.get(path).cloned() else { return Ok(false) };
        let content = self.content(file)?;
        let text = change(str::from_utf8(&content).with_context(|| format!("{path} is not UTF-8"))?);
        self.files.push(Content::Own(text.into_bytes()));
        self.nodes.insert(path.to_string(), (attributes, Node::File(self.files.len() - 1)));
        Ok(true)
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
        let path = merged(path);
        // What is laid into a user's directory belongs to the user.
        let above = path.rsplit_once('/').and_then(|(above, _)| self.nodes.get(above));
        let (user, group) = above.map_or((0, 0), |(above, _)| (above.user, above.group));
        let attributes = Attributes { mode, user, group, modified: 0 };
        self.nodes.insert(path, (attributes, node));
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
    ///
    /// # Errors
    /// The archive cannot be read any more.
    pub(super) fn content(&self, file: usize) -> Result<Cow<'_, [u8]>> {
        match &self.files[file] {
            Content::Own(content) => Ok(Cow::Borrowed(content)),
            Content::Archived(start, length) => {
                let archive = self.archive.as_ref().context("a tree without its archive")?;
                let mut content = vec![0; usize::try_from(*length)?];
                archive.read_exact_at(&mut content, *start).context("reading the system's archive")?;
                Ok(Cow::Owned(content))
            }
        }
    }
}

/// A list of extended attributes: for each the path, the name and, in hexadecimal digits, the
/// value, each followed by NUL.
fn attribute_list(extended: &[(String, (String, Vec<u8>))]) -> Vec<u8> {
    let mut list = String::new();
    for (path, (name, value)) in extended {
        let digits: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        list += &format!("/{path}\0{name}\0{digits}\0");
    }
    list.into_bytes()
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
    use mac_build::scratch::Scratch;

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

    #[test]
    fn what_is_asked_for_is_not_left_out() {
        let mut system = ::tar::Builder::new(Vec::new());
        let mut add = |path: &str, content: &str| {
            let mut header = ::tar::Header::new_ustar();
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_mode(0o644);
            header.set_size(content.len() as u64);
            system.append_data(&mut header, path, content.as_bytes()).unwrap();
        };
        add("var/lib/dpkg/info/libone:amd64.list", "/.\n/usr/share/man/one.3\n/lib/one.so\n");
        for path in ["usr/share/man/one.3", "usr/share/man/two.1", "usr/lib/one.so"] {
            add(path, path);
        }
        let archive = Scratch::new("system").unwrap();
        let path = archive.0.join("system.tar");
        fs::write(&path, system.into_inner().unwrap()).unwrap();
        let left_out = |path: &str| is_below(path, "usr/share/man") || is_below(path, "usr/lib/*.so");
        let tree = Tree::of_system(&path, &["libone".to_string()], left_out).unwrap();
        assert!(tree.contains("usr/share/man/one.3") && tree.contains("lib/one.so"));
        assert!(!tree.contains("usr/share/man/two.1"));
        let files = tree.nodes().filter_map(|(path, _, node)| match node {
            Node::File(file) if path.starts_with("usr") => Some((path, tree.content(*file).unwrap())),
            _ => None,
        });
        let contents: Vec<_> = files.collect();
        assert!(contents.iter().all(|(path, content)| path.as_bytes() == &content[..]), "{contents:?}");
    }

    #[test]
    fn extended_attributes_are_listed() {
        let mut system = ::tar::Builder::new(Vec::new());
        for path in ["usr/bin/ping", "usr/share/man/ping"] {
            let attribute = ("SCHILY.xattr.security.capability", b"\x01\0\xa2".as_slice());
            system.append_pax_extensions([attribute]).unwrap();
            let mut header = ::tar::Header::new_ustar();
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_mode(0o755);
            header.set_size(0);
            system.append_data(&mut header, path, std::io::empty()).unwrap();
        }
        let archive = Scratch::new("attributes").unwrap();
        let path = archive.0.join("system.tar");
        fs::write(&path, system.into_inner().unwrap()).unwrap();
        let tree = Tree::of_system(&path, &[], |path| is_below(path, "usr/share/man")).unwrap();
        let Some((attributes, Node::File(list))) = tree.nodes.get(ATTRIBUTES) else { panic!("no list") };
        assert_eq!(attributes.mode, 0o600);
        assert_eq!(&*tree.content(*list).unwrap(), b"/usr/bin/ping\0security.capability\x000100a2\0");
    }

    #[test]
    fn what_is_laid_into_a_users_directory_is_the_users() {
        let mut tree = Tree::new();
        tree.directory("home/user", 0o700);
        let attributes = Attributes { mode: 0o700, user: 1000, group: 1001, modified: 1 };
        tree.nodes.insert("home/user".into(), (attributes, Node::Directory));
        tree.file("home/user/.profile", 0o644, Vec::new());
        let (_, owned, _) = tree.nodes().find(|(path, ..)| *path == "home/user/.profile").unwrap();
        assert_eq!((owned.user, owned.group), (1000, 1001));
    }
}
