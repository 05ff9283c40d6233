//! Making images: from the table, the lock and the packages to one archive.

use super::definitions::{Definition, Definitions, directory};
use super::lock::Lock;
use super::package::Package;
use super::tree::{Tree, is_below};
use super::{archive, install, login, packages};
use anyhow::{Context, Result};
use mac_build::{guests, tree};
use mac_machine::suites::Suite;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;

/// What an image is to hold.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// A name of the table.
    pub name: String,
    /// Packages beyond those of the table.
    pub packages: Vec<String>,
    /// Files of the host: where they are put in the image, and where they are.
    pub files: Vec<(String, PathBuf)>,
    /// Directories of the host whose contents are put into the image: where, and which.
    pub directories: Vec<(String, PathBuf)>,
}

impl Request {
    /// The image of a suite, without the files of its tests.
    pub(super) fn of(suite: &Suite) -> Request {
        let name = suite.image.clone().unwrap_or_default();
        let place = |program: &String| {
            (format!("{PROGRAMS}/{program}"), tree::root().join("tests/guests").join(program))
        };
        let files = suite.programs_of_image.iter().map(place).collect();
        Request { name, packages: suite.packages.clone(), files, ..Request::default() }
    }
}

/// A finished image.
#[derive(Clone, Debug)]
pub struct Image {
    /// A cpio archive called `image.cpio`.
    pub path: PathBuf,
}

/// Where the first process's program is: an image with Debian's own init has that, too.
pub(crate) const INIT: &str = "usr/lib/macadamia/init";

/// Where the programs of a suite are that it names.
const PROGRAMS: &str = "usr/local/bin";

/// The module's name, by which servers find it.
pub(crate) const MODULE: &str = "image.cpio";

/// Changes whenever the same input makes another image.
const FORMAT: u32 = 4;

/// Makes an image, or finds it made before from the same.
pub fn make(request: &Request) -> Result<Image> {
    // Several threads may want the same image: one makes it, the others find it.
    static MAKING: Mutex<()> = Mutex::new(());
    let _guard = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let definitions = Definitions::read()?;
    let definition = definitions.image(&request.name)?;
    let lock = Lock::read()?;
    let chosen = packages::of_image(definition, &lock, &request.packages)?;
    let mut ours = Tree::new();
    add_own(&mut ours, definition, request)?;
    let mut packed = Vec::new();
    archive::pack(&ours, &mut packed)?;
    let kept = tree::target().join("guests/images").join(&request.name);
    let path = kept
        .join(hash((FORMAT, install::PROCEDURE, definition, &request.packages, &chosen, packed)))
        .join(MODULE);
    if !path.is_file() {
        let tree = finished(definition, request, &chosen)?;
        let length = write(&tree, &path).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!(
            "mac: image {}: {} packages, {:.1} MiB: {}",
            request.name,
            chosen.len(),
            length as f64 / f64::from(1 << 20),
            path.display()
        );
        remove_old(&kept);
    }
    Ok(Image { path })
}

/// The files of an image.
pub(super) fn files(request: &Request) -> Result<Tree> {
    let definitions = Definitions::read()?;
    let definition = definitions.image(&request.name)?;
    finished(definition, request, &packages::of_image(definition, &Lock::read()?, &request.packages)?)
}

fn finished(definition: &Definition, request: &Request, chosen: &[Package]) -> Result<Tree> {
    let mut tree = system(definition, request, chosen)?;
    add_own(&mut tree, definition, request)?;
    login::make_possible(&mut tree)?;
    tree.complete();
    Ok(tree)
}

/// A name for what is made from something.
fn hash(from: impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    from.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The packages, installed. The same packages may be in several images, so the system is kept.
fn system(definition: &Definition, request: &Request, chosen: &[Package]) -> Result<Tree> {
    let Definition { packages, users, dependencies, leave_out, keep, .. } = definition;
    let kept = tree::target().join("guests/systems").join(&request.name);
    let from = (install::PROCEDURE, packages, users, dependencies, &request.packages, chosen);
    let archive = kept.join(hash(from)).join("system.tar");
    if !archive.is_file() {
        let provided = packages::provide(&chosen.iter().collect::<Vec<_>>())?;
        install::system(definition, &request.packages, &provided, &archive, Stdio::inherit())?;
        remove_old(&kept);
    }
    let listed = |list: &[String], path: &str| list.iter().any(|pattern| is_below(path, pattern));
    let asked_for: Vec<String> = request.packages.iter().map(|package| packages::name(package)).collect();
    Tree::of_system(&archive, &asked_for, |path| listed(leave_out, path) && !listed(keep, path))
}

/// Writes an image; returns its length in bytes.
fn write(tree: &Tree, path: &Path) -> Result<u64> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
    let partial = path.with_extension(format!("partial-{}", std::process::id()));
    let mut out = BufWriter::new(File::create(&partial)?);
    let written = archive::pack(tree, &mut out).and_then(|length| Ok(out.flush().map(|()| length)?));
    match written {
        Ok(_) => fs::rename(&partial, path)?,
        Err(_) => fs::remove_file(&partial)?,
    }
    written
}

/// Adds what does not come from packages.
fn add_own(tree: &mut Tree, definition: &Definition, request: &Request) -> Result<()> {
    let init = guests::init()?;
    tree.file(INIT, 0o755, fs::read(&init).with_context(|| format!("cannot read {}", init.display()))?);
    for name in ["init", "halt", "poweroff", "reboot"] {
        // A package's own program is not replaced.
        let path = format!("sbin/{name}");
        if !tree.contains(&path) {
            tree.link(&path, &format!("/{INIT}"));
        }
    }
    for (path, mode) in &definition.directories {
        let mode = u32::from_str_radix(mode, 8)
            .with_context(|| format!("{path}: the mode {mode:?} is not octal"))?;
        tree.directory(path, mode);
    }
    for (path, target) in &definition.links {
        tree.link(path, target);
    }
    if let Some((list, target)) = &definition.link_list {
        let list = directory().join(list);
        let names = mac_build::tree::read(&list)?;
        for name in names.split_whitespace() {
            // A program of a package is not replaced by a link.
            if !tree.contains(&format!("usr/bin/{name}")) && !tree.contains(&format!("usr/sbin/{name}")) {
                tree.link(&format!("usr/bin/{name}"), target);
            }
        }
    }
    for files in &definition.files {
        tree.add_directory(&directory().join(files), "")?;
    }
    for (path, file) in &request.files {
        let content = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        tree.file(path, 0o755, content);
    }
    for (path, host) in &request.directories {
        tree.directory(path, 0o755);
        tree.add_directory(host, path)?;
    }
    Ok(())
}

/// How many images or installed systems of one name are kept: they differ in what was added to
/// them.
const KEPT: usize = 6;

/// Removes the oldest of what is in a directory. What is in use stays readable for programs that
/// have it open.
fn remove_old(kept: &Path) {
    let Ok(entries) = fs::read_dir(kept) else { return };
    let made = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
    let mut images: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    images.sort_by_key(|path| std::cmp::Reverse(made(path)));
    for old in images.iter().skip(KEPT) {
        let _ = fs::remove_dir_all(old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is kept of images and installed systems, with what is in each.
    fn kept() -> Vec<PathBuf> {
        let list = |directory: &Path| {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let kinds =
            ["images", "systems"].map(|kind| tree::target().join("guests").join(kind).join("minimal"));
        let mut paths: Vec<PathBuf> = kinds.iter().flat_map(|kind| list(kind)).collect();
        paths.extend(paths.clone().iter().flat_map(|path| list(path)));
        paths.sort();
        paths
    }

    #[test]
    fn a_package_that_does_not_exist_is_refused_by_apt_and_leaves_nothing() {
        let before = kept();
        let packages = vec!["no-such-package-as-this".to_string()];
        let request = Request { name: "minimal".into(), packages, ..Request::default() };
        let refused = format!("{:#}", make(&request).unwrap_err());
        assert!(refused.contains("apt refuses:"), "{refused}");
        assert!(refused.contains("Unable to locate package no-such-package-as-this"), "{refused}");
        assert_eq!(kept(), before);
    }

    #[test]
    fn an_image_that_cannot_be_written_whole_leaves_nothing() {
        let scratch = mac_build::scratch::Scratch::new("half-made-image").unwrap();
        let mut header = ::tar::Header::new_ustar();
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_mode(0o644);
        header.set_size(1 << 20);
        let mut system = ::tar::Builder::new(Vec::new());
        system.append_data(&mut header, "file", &vec![1; 1 << 20][..]).unwrap();
        let archive = scratch.0.join("system.tar");
        fs::write(&archive, system.into_inner().unwrap()).unwrap();
        let files = Tree::of_system(&archive, &[], |_| false).unwrap();
        // What is to be packed is gone when it is read.
        File::options().write(true).open(&archive).unwrap().set_len(1 << 10).unwrap();
        let path = scratch.0.join("made").join(MODULE);
        let written = write(&files, &path);
        assert!(written.is_err() && fs::read_dir(scratch.0.join("made")).unwrap().count() == 0);
    }
}
