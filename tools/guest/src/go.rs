//! A Go program for guests, built with Debian's compiler, which is taken from its packages without
//! installing it.

use super::lock::Lock;
use super::{apt, packages};
use anyhow::{Context, Result};
use mac_build::{command, tree};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Builds `tests/guests/go` if it has changed.
pub(super) fn program() -> Result<PathBuf> {
    static BUILDING: Mutex<()> = Mutex::new(());
    let _guard = BUILDING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let directory = tree::root().join("tests/guests/go");
    let sources = ["main.go", "network.go"].map(|name| directory.join(name));
    let program = tree::target().join("guests/go-program");
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let is_older = |source: &PathBuf| changed(source) < changed(&program);
    if sources.iter().all(is_older) {
        return Ok(program);
    }
    let root = compiler()?;
    let mut go = command::clean(root.join("bin/go"));
    go.args(["build", "-trimpath", "-o"]).arg(&program).args(&sources);
    let kept = tree::target().join("debian/go-cache");
    for (name, value) in [
        ("GOROOT", root.as_os_str()),
        ("GOPATH", kept.join("path").as_os_str()),
        ("GOCACHE", kept.join("build").as_os_str()),
        ("GO111MODULE", "off".as_ref()),
        ("GOFLAGS", "".as_ref()),
        ("GOENV", "off".as_ref()),
        ("GOTOOLCHAIN", "local".as_ref()),
        ("GOOS", "linux".as_ref()),
        ("GOARCH", "amd64".as_ref()),
        ("CGO_ENABLED", "0".as_ref()),
    ] {
        go.env(name, value);
    }
    eprintln!("mac: building a Go program for guests");
    command::run(&mut go, "building the Go program")?;
    Ok(program)
}

/// The unpacked compiler's directory.
fn compiler() -> Result<PathBuf> {
    let lock = Lock::read()?;
    let locked = lock.set("go")?;
    let version = locked.first().context("no package has the Go compiler")?.version.clone();
    let out = apt::cache().join(format!("go-{version}"));
    if !out.is_dir() {
        let partial = apt::cache().join(format!(".go-{}", std::process::id()));
        fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
        for (_, file) in packages::provide(&locked)? {
            let mut unpack = Command::new("dpkg-deb");
            unpack.arg("--extract").arg(file).arg(&partial);
            command::run(&mut unpack, "unpacking the Go compiler")?;
        }
        fs::rename(&partial, &out).context("keeping the Go compiler")?;
    }
    let libraries = out.join("usr/lib");
    let entries = fs::read_dir(&libraries).with_context(|| format!("reading {}", libraries.display()))?;
    let root = entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.join("bin/go").is_file())
        .context("the Go packages hold no compiler")?;
    let name = root.file_name().context("a directory has a name")?;
    for part in ["src", "test", "misc", "api"] {
        link(&root.join(part), &Path::new("../../share").join(name).join(part))?;
    }
    Ok(root)
}

/// Makes a part of the compiler a link to where its sources are, seen from there. The package's own
/// link is absolute, for a compiler that is installed.
fn link(part: &Path, to: &Path) -> Result<()> {
    let leads = fs::read_link(part).ok();
    let is_there = part.parent().is_some_and(|directory| directory.join(to).exists());
    if !is_there || leads.as_deref() == Some(to) || leads.is_none() && part.exists() {
        return Ok(());
    }
    if leads.is_some() {
        fs::remove_file(part)?;
    }
    symlink(to, part).with_context(|| format!("linking {}", part.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mac_build::scratch::Scratch;

    #[test]
    fn a_link_leads_to_its_own_copy_of_the_compiler() {
        let scratch = Scratch::new("go-link").unwrap();
        for copy in ["one", "two"] {
            fs::create_dir_all(scratch.0.join(copy).join("share/go/src")).unwrap();
            fs::create_dir_all(scratch.0.join(copy).join("lib/go")).unwrap();
        }
        let part = scratch.0.join("two/lib/go/src");
        symlink(scratch.0.join("one/share/go/src"), &part).unwrap();
        link(&part, Path::new("../../share/go/src")).unwrap();
        assert_eq!(part.canonicalize().unwrap(), scratch.0.join("two/share/go/src").canonicalize().unwrap());
        // A part that is a directory already, and a part that has no sources, are not changed.
        link(&scratch.0.join("two/lib/go"), Path::new("../share")).unwrap();
        assert!(part.is_symlink());
        link(&scratch.0.join("two/lib/go/api"), Path::new("../../share/go/api")).unwrap();
        assert!(!scratch.0.join("two/lib/go/api").is_symlink());
    }
}
