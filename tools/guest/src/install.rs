//! Installing packages: Debian's `mmdebstrap` unpacks and configures them, with apt and dpkg, into
//! a system of their own, which becomes a tar archive.

use super::apt;
use super::definitions::{Definition, Dependencies};
use super::namespace::{self, Namespace};
use super::package::Package;
use anyhow::{Context, Result, bail};
use mac_build::command;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Before the first package: the links of a merged /usr, as Debian's installer makes them. dpkg
/// need not wait for the host's disk.
const BEFORE: &str = r#"for name in bin sbin lib lib64; do mkdir -p "$1/usr/$name" && ln -s "usr/$name" "$1/$name" || exit; done
echo force-unsafe-io >"$1/etc/dpkg/dpkg.cfg.d/installing""#;
/// After the last one: nothing of the host and of this procedure stays.
const AFTER: &str = r#"rm -f "$1/etc/dpkg/dpkg.cfg.d/installing" "$1/etc/resolv.conf" "$1/etc/hostname" "$1/etc/apt/sources.list""#;

/// After packages that are only unpacked: their lists of checksums, where dpkg has them.
const SUMS: &str = r#"for package in "$1"/var/cache/apt/archives/*.deb; do
dpkg-deb --info "$package" md5sums >"$1/var/lib/dpkg/info/$(dpkg-deb --field "$package" Package).md5sums" || exit; done"#;

/// What systems depend on in addition to their packages; the number changes with anything else.
pub(super) const PROCEDURE: (u32, [&str; 3]) = (2, [BEFORE, AFTER, SUMS]);

/// Installs what a definition and the packages `asked_for` in addition consist of, and writes the
/// system as a tar archive. The same packages make the same bytes. How it goes, and what a script
/// that fails says, is written to `progress`.
pub(super) fn system(
    definition: &Definition,
    asked_for: &[String],
    provided: &[(Package, PathBuf)],
    archive: &Path,
    progress: Stdio,
) -> Result<()> {
    if command::find("mmdebstrap").is_none() {
        bail!(
            "mmdebstrap, which installs Debian's packages, is missing (Debian: apt-get install mmdebstrap)"
        );
    }
    let index = Index::write(provided)?;
    let namespace = match Namespace::new() {
        Ok(namespace) => Some(namespace),
        Err(error) if rustix::process::geteuid().is_root() => {
            eprintln!("mac: warning: {error:#}: the packages' scripts run as root, in a chroot only");
            None
        }
        Err(error) => return Err(error),
    };
    let place = match &namespace {
        Some(namespace) => namespace.place("mmdebstrap", &apt::cache()),
        None => namespace::none("mmdebstrap", &apt::cache()),
    };
    let mut mmdebstrap = place.command;
    let (variant, skipped) = match definition.dependencies {
        Dependencies::None => ("extract", "check/qemu,output/dev"),
        _ => ("essential", "check/qemu,output/dev"),
    };
    mmdebstrap.args(["--mode=root", "--format=tar"]);
    mmdebstrap.args([format!("--variant={variant}"), format!("--skip={skipped}")]);
    let include = definition.packages.iter().chain(asked_for);
    mmdebstrap.args(include.map(|package| format!("--include={package}")));
    mmdebstrap.arg(format!("--setup-hook={BEFORE}"));
    // Without an installation the only hook after the packages is this one.
    let hook = if variant == "extract" { "extract" } else { "customize" };
    if variant == "extract" {
        mmdebstrap.arg(format!("--{hook}-hook={SUMS}"));
    } else {
        for user in &definition.users {
            let add = "useradd --create-home --shell /bin/bash --comment 'A user'";
            mmdebstrap.arg(format!("--{hook}-hook=chroot \"$1\" {add} {user}"));
        }
    }
    mmdebstrap.arg(format!("--{hook}-hook={AFTER}"));
    let source = format!("deb [trusted=yes] copy://{} {}/", place.packages, index.place());
    mmdebstrap.args(["", "-", &source]);
    mmdebstrap.env("SOURCE_DATE_EPOCH", newest(provided)?.to_string()).env("LC_ALL", "C.UTF-8");
    let partial = archive.with_extension(format!("partial-{}", std::process::id()));
    fs::create_dir_all(archive.parent().unwrap_or(Path::new("/")))?;
    let out = File::create(&partial).with_context(|| format!("cannot write {}", partial.display()))?;
    eprintln!("mac: installing {} Debian packages", provided.len());
    mmdebstrap.stdout(out).stderr(progress);
    let installed = command::run(&mut mmdebstrap, "installing Debian packages");
    if installed.is_err() {
        let _ = fs::remove_file(&partial);
    }
    installed?;
    fs::rename(&partial, archive).context("keeping the installed system")
}

/// A list of packages in the form of a repository of Debian's. It is removed when this is dropped.
struct Index {
    directory: PathBuf,
}

impl Index {
    fn write(provided: &[(Package, PathBuf)]) -> Result<Index> {
        let directory = apt::cache().join(format!("index-{}", std::process::id()));
        let index = Index { directory };
        let text = list(provided, |_, package| package.file_name())?;
        let path = index.directory.join("Packages");
        mac_build::build::write_if_changed(&path, text.as_bytes())?;
        Ok(index)
    }

    /// Its directory, from where the packages are.
    fn place(&self) -> String {
        self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// What a repository of these packages has in its file `Packages`. `name` says what each package's
/// file is called there, by its place among them.
pub(super) fn list(
    provided: &[(Package, PathBuf)],
    name: impl Fn(usize, &Package) -> String,
) -> Result<String> {
    let mut text = String::new();
    for (place, (package, file)) in provided.iter().enumerate() {
        let (fields, name) = (fields(file)?, name(place, package));
        let Package { size, sha256, .. } = package;
        text += &format!("{}\nFilename: ./{name}\nSize: {size}\nSHA256: {sha256}\n\n", fields.trim_end());
    }
    Ok(text)
}

/// The control fields of a package's file, which are kept next to it: reading them takes a process
/// for each.
fn fields(file: &Path) -> Result<String> {
    let kept = file.with_extension("control");
    if let Ok(fields) = fs::read_to_string(&kept) {
        return Ok(fields);
    }
    let fields = command::output(command::clean("dpkg-deb").arg("--field").arg(file))?;
    mac_build::build::write_if_changed(&kept, fields.as_bytes())?;
    Ok(fields)
}

/// When the newest of the packages was made, in seconds since 1970.
fn newest(provided: &[(Package, PathBuf)]) -> Result<u64> {
    let times =
        provided.iter().map(|(_, file)| made(&fs::read(file)?).with_context(|| file.display().to_string()));
    Ok(times.collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or(0))
}

/// When a package was made: the time of its archive's first member.
fn made(package: &[u8]) -> Result<u64> {
    let field = package.get(24..36).context("it is no package")?;
    str::from_utf8(field)?.trim().parse().context("it is no package")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::Definitions;
    use crate::{lock::Lock, packages};
    use mac_build::scratch::Scratch;
    use std::os::unix::fs::PermissionsExt;

    /// A package whose script fails, in the cache while it is tested.
    fn failing(scratch: &Path) -> (Package, PathBuf) {
        let root = scratch.join("failing");
        fs::create_dir_all(root.join("DEBIAN")).unwrap();
        let control =
            "Package: mac-failing\nVersion: 1\nArchitecture: all\nMaintainer: no <no@no>\nDescription: no\n";
        fs::write(root.join("DEBIAN/control"), control).unwrap();
        let script = root.join("DEBIAN/postinst");
        fs::write(&script, "#!/bin/sh\necho the script of a test >&2\nexit 3\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let file = scratch.join("mac-failing.deb");
        let mut build = command::clean("dpkg-deb");
        command::output(build.args(["--root-owner-group", "--build"]).arg(&root).arg(&file)).unwrap();
        let sum = command::output(command::clean("sha256sum").arg(&file)).unwrap();
        let package = Package {
            name: "mac-failing".into(),
            version: "1".into(),
            architecture: "all".into(),
            path: String::new(),
            size: fs::metadata(&file).unwrap().len(),
            sha256: sum.split(' ').next().unwrap().into(),
        };
        let kept = apt::file(&package);
        fs::copy(&file, &kept).unwrap();
        (package, kept)
    }

    #[test]
    fn a_script_that_fails_is_shown_and_leaves_nothing() {
        let scratch = Scratch::new("failing-script").unwrap();
        let (definitions, lock) = (Definitions::read().unwrap(), Lock::read().unwrap());
        let mut provided = packages::provide(&lock.set("base").unwrap()).unwrap();
        provided.push(failing(&scratch.0));
        let (archive, said) = (scratch.0.join("made/system.tar"), scratch.0.join("said"));
        let asked_for = ["mac-failing".to_string()];
        let progress = File::create(&said).unwrap().into();
        let result = system(definitions.image("base").unwrap(), &asked_for, &provided, &archive, progress);
        let (_, kept) = provided.pop().unwrap();
        fs::remove_file(&kept).and_then(|()| fs::remove_file(kept.with_extension("control"))).unwrap();
        let said = fs::read_to_string(said).unwrap();
        assert!(result.is_err(), "{said}");
        assert!(said.contains("the script of a test") && said.contains("exit status 3"), "{said}");
        assert_eq!(fs::read_dir(scratch.0.join("made")).unwrap().count(), 0);
    }

    #[test]
    fn a_package_says_when_it_was_made() {
        let mut package =
            b"!<arch>\ndebian-binary   1671234567  0     0     100644  4         `\n2.0\n".to_vec();
        assert_eq!(made(&package).unwrap(), 1_671_234_567);
        package[24] = b'x';
        assert!(made(&package).is_err());
        assert!(made(b"!<arch>\n").is_err());
    }
}
