//! Making images: from the table, the lock and the packages to one archive.

use super::definitions::{Definition, Definitions, directory};
use super::lock::Lock;
use super::package::Package;
use super::tree::{Tree, is_below};
use super::{archive, packages};
use anyhow::{Context, Result};
use mac_build::{guests, tree};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
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

/// A finished image.
#[derive(Clone, Debug)]
pub struct Image {
    /// A cpio archive called `image.cpio`.
    pub path: PathBuf,
}

/// The module's name, by which servers find it.
pub(crate) const MODULE: &str = "image.cpio";

/// Changes whenever the same input makes another image.
const FORMAT: u32 = 1;

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
    let mut hasher = DefaultHasher::new();
    (FORMAT, definition, &chosen, archive::pack(&ours)).hash(&mut hasher);
    let kept = tree::target().join("guests/images").join(&request.name);
    let path = kept.join(format!("{:016x}", hasher.finish())).join(MODULE);
    if !path.is_file() {
        let provided = packages::provide(&chosen.iter().collect::<Vec<_>>())?;
        let packed = archive::pack(&filled(definition, &provided, request)?);
        mac_build::build::write_if_changed(&path, &packed)?;
        eprintln!(
            "mac: image {}: {} packages, {:.1} MiB: {}",
            request.name,
            provided.len(),
            packed.len() as f64 / f64::from(1 << 20),
            path.display()
        );
        remove_old(&kept);
    }
    Ok(Image { path })
}

/// The tree of an image.
fn filled(definition: &Definition, provided: &[(Package, PathBuf)], request: &Request) -> Result<Tree> {
    let listed = |list: &[String], path: &str| list.iter().any(|pattern| is_below(path, pattern));
    let mut tree = Tree::new();
    for (package, file) in provided {
        tree.add_package(file, &package.name, |path| {
            !listed(&definition.leave_out, path) || listed(&definition.keep, path)
        })?;
    }
    add_own(&mut tree, definition, request)?;
    tree.complete();
    Ok(tree)
}

/// Adds what does not come from packages.
fn add_own(tree: &mut Tree, definition: &Definition, request: &Request) -> Result<()> {
    let init = guests::init()?;
    tree.file(
        "sbin/init",
        0o755,
        fs::read(&init).with_context(|| format!("cannot read {}", init.display()))?,
    );
    for name in ["halt", "poweroff", "reboot"] {
        tree.link(&format!("sbin/{name}"), "init");
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

/// How many images of one name are kept: they differ in what was added to them.
const KEPT: usize = 6;

/// Removes the oldest images of a name. An image that is in use stays readable for programs that
/// have it open.
fn remove_old(kept: &Path) {
    let Ok(entries) = fs::read_dir(kept) else { return };
    let made = |path: &PathBuf| fs::metadata(path.join(MODULE)).and_then(|data| data.modified()).ok();
    let mut images: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    images.sort_by_key(|path| std::cmp::Reverse(made(path)));
    for old in images.iter().skip(KEPT) {
        let _ = fs::remove_dir_all(old);
    }
}
