//! Debian packages through the machine's own apt: its repositories, proxies and keys, but a state
//! of our own, so that neither what is installed nor the machine's lists matter, and nothing is
//! installed.

use super::package::Package;
use anyhow::{Context, Result, bail};
use mac_build::{command, tree};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The Debian release that guests are made from.
const RELEASE: &str = "bookworm";
/// The repositories from which packages are taken if the machine has none of the release.
const DEFAULT: [(&str, &str); 3] = [
    ("http://deb.debian.org/debian/", "bookworm"),
    ("http://deb.debian.org/debian/", "bookworm-updates"),
    ("http://deb.debian.org/debian-security/", "bookworm-security"),
];
/// Debian's keys, where its own package puts them.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const HELPER: &str = "/usr/lib/apt/apt-helper";
/// Package lists are fetched again when they are older than this.
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// Where packages are kept.
pub(super) fn cache() -> PathBuf {
    tree::target().join("debian")
}

/// Fetches packages into the cache; returns those that no repository has any more.
pub(super) fn fetch<'a>(packages: &[&'a Package]) -> Result<Vec<&'a Package>> {
    if !Path::new(HELPER).exists() {
        bail!("{HELPER} is missing: guest images need Debian's apt (Debian: apt-get install apt)");
    }
    fs::create_dir_all(cache()).with_context(|| format!("cannot create {}", cache().display()))?;
    let mut missing: Vec<&Package> =
        packages.iter().copied().filter(|package| !file(package).is_file()).collect();
    if missing.is_empty() {
        return Ok(missing);
    }
    let bytes: u64 = missing.iter().map(|package| package.size).sum();
    eprintln!("mac: fetching {} Debian packages ({} MiB)", missing.len(), bytes.div_ceil(1 << 20));
    let mut tried = Vec::new();
    for (address, _) in repositories()? {
        if missing.is_empty() || tried.contains(&address) {
            continue;
        }
        let mut helper = command::clean(HELPER);
        helper.args(["-qq", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3", "download-file"]);
        for package in &missing {
            helper.arg(format!("{address}{}", package.path)).arg(partial(package));
            helper.arg(format!("SHA256:{}", package.sha256));
        }
        // Packages whose download fails are tried with the next repository. apt has compared the
        // checksums of those that are there.
        let said = helper.output().with_context(|| format!("cannot start {HELPER}"))?;
        for package in &missing {
            if partial(package).is_file() {
                fs::rename(partial(package), file(package)).context("keeping a package")?;
            }
        }
        missing.retain(|package| !file(package).is_file());
        if !said.status.success() && missing.len() == packages.len() && packages.len() > 1 {
            eprint!("{}", String::from_utf8_lossy(&said.stderr));
        }
        tried.push(address);
    }
    Ok(missing)
}

/// Where a fetched package is.
pub(super) fn file(package: &Package) -> PathBuf {
    cache().join(package.file_name())
}

fn partial(package: &Package) -> PathBuf {
    cache().join(format!(".{}-{}", std::process::id(), package.file_name()))
}

/// Addresses and suites of the machine's repositories of the release.
fn repositories() -> Result<Vec<(String, String)>> {
    let mut apt = command::clean("apt-get");
    apt.args(["indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"]);
    let said = command::output(&mut apt).context("asking apt for its repositories")?;
    let of_release = |suite: &str| {
        suite == RELEASE || suite.strip_prefix(RELEASE).is_some_and(|rest| rest.starts_with('-'))
    };
    let mut found: Vec<(String, String)> = Vec::new();
    for line in said.lines() {
        if let [address, suite, "main"] = line.split(' ').collect::<Vec<_>>()[..]
            && of_release(suite)
        {
            let repository = (format!("{}/", address.trim_end_matches('/')), suite.to_string());
            if !found.contains(&repository) {
                found.push(repository);
            }
        }
    }
    if !found.iter().any(|(_, suite)| suite == RELEASE) {
        found = DEFAULT.map(|(address, suite)| (address.to_string(), suite.to_string())).to_vec();
    }
    Ok(found)
}

/// The repositories' lists of packages.
pub(super) struct Lists {
    directory: PathBuf,
}

impl Lists {
    /// Fetches the lists, unless they have been fetched lately and `newest` is not asked for. Old
    /// lists do where there is no network.
    pub(super) fn fetch(newest: bool) -> Result<Lists> {
        let lists = Lists { directory: tree::target().join("debian/lists") };
        let stamp = lists.directory.join("fetched");
        let age =
            fs::metadata(&stamp).and_then(|data| data.modified()).ok().and_then(|time| time.elapsed().ok());
        if newest || age.is_none_or(|age| age > FRESH) {
            eprintln!("mac: fetching Debian's package lists");
            match lists.update() {
                Ok(()) => fs::write(stamp, "")?,
                Err(error) if age.is_some() && !newest => {
                    eprintln!("mac: warning: {error:#}\nmac: the lists from before are taken");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(lists)
    }

    fn update(&self) -> Result<()> {
        for part in ["state/lists/partial", "cache/archives/partial", "none"] {
            let path = self.directory.join(part);
            fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        }
        let signed =
            if Path::new(KEYRING).exists() { format!("[signed-by={KEYRING}] ") } else { String::new() };
        let sources = repositories()?
            .into_iter()
            .map(|(address, suite)| format!("deb {signed}{address} {suite} main\n"));
        fs::write(self.directory.join("sources.list"), sources.collect::<String>())?;
        fs::write(self.directory.join("status"), "")?;
        let mut update = self.apt("update");
        update.args(["-qq", "--error-on=any"]);
        explained(&mut update).context("fetching Debian's package lists")?;
        Ok(())
    }

    /// The newest versions of these packages and, without recommendations, of all that they depend
    /// on.
    pub(super) fn with_dependencies(&self, names: &[String]) -> Result<Vec<Package>> {
        let mut install = self.apt("install");
        // Quieter, apt would not say which dependencies cannot be met.
        install.args(["-q", "--yes", "--no-install-recommends", "--print-uris", "--"]).args(names);
        let said = explained(&mut install)?;
        let uris = said.lines().filter(|line| line.starts_with('\''));
        let files = uris.map(|line| line.split(' ').nth(1).context("apt said something else"));
        let mut exact = Vec::new();
        for file in files {
            let file = file?;
            let (name, version, _) = Package::parts(file).with_context(|| format!("{file} is no package"))?;
            exact.push(format!("{name}={version}"));
        }
        self.exactly(&exact)
    }

    /// These packages, each `NAME` (then its newest version) or `NAME=VERSION`.
    pub(super) fn exactly(&self, names: &[String]) -> Result<Vec<Package>> {
        let mut download = self.apt("download");
        // Without this option apt warns that it cannot give up root's rights in this directory.
        download.args(["-qq", "--print-uris", "--"]).args(names);
        let said = explained(&mut download)?;
        let mut packages: Vec<Package> = said.lines().map(parse_uri).collect::<Result<_>>()?;
        packages.sort();
        Ok(packages)
    }

    fn apt(&self, verb: &str) -> Command {
        let mut apt = command::clean("apt-get");
        for (key, path) in [
            ("Dir::State", "state"),
            ("Dir::State::status", "status"),
            ("Dir::Cache", "cache"),
            ("Dir::Etc::sourcelist", "sources.list"),
            ("Dir::Etc::sourceparts", "none"),
            ("Dir::Etc::preferences", "none"),
            ("Dir::Etc::preferencesparts", "none"),
        ] {
            apt.arg("-o").arg(format!("{key}={}", self.directory.join(path).display()));
        }
        apt.args([
            "-o",
            "Debug::NoLocking=1",
            "-o",
            "APT::Sandbox::User=root",
            "-o",
            "APT::Architecture=amd64",
        ]);
        apt.args(["-o", "Acquire::Retries=3", "-o", "Acquire::Languages=none", verb]);
        apt.env("LC_ALL", "C");
        apt
    }
}

/// What apt prints.
///
/// # Errors
/// It has refused, with its own words.
fn explained(apt: &mut Command) -> Result<String> {
    let output = apt.output().context("cannot start apt-get")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let progress = |line: &&str| {
            ["Reading ", "Building ", "Correcting "].iter().any(|start| line.starts_with(start))
        };
        let mut lines: Vec<&str> = said.lines().filter(|line| !progress(line)).collect();
        let error = String::from_utf8_lossy(&output.stderr);
        lines.extend(error.lines());
        bail!("apt refuses:\n{}", lines.join("\n").trim());
    }
    Ok(said.into_owned())
}

/// A line of `apt-get download --print-uris`: `'ADDRESS' FILE SIZE SHA256:...`.
fn parse_uri(line: &str) -> Result<Package> {
    let parts = || {
        let [address, file, size, sum] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        let (name, version, architecture) = Package::parts(file)?;
        let address = address.trim_matches('\'');
        Some(Package {
            name: name.to_string(),
            version,
            architecture: architecture.to_string(),
            path: address[address.find("/pool/")? + 1..].to_string(),
            size: size.parse().ok()?,
            sha256: sum.strip_prefix("SHA256:")?.to_string(),
        })
    };
    parts().with_context(|| format!("apt said something else than a package's address: {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mac_build::scratch::Scratch;

    /// Lists of a repository that has `packages` alone: each a name and further fields.
    fn lists_of(scratch: &Scratch, packages: &[(&str, &str)]) -> Lists {
        let lists = Lists { directory: scratch.0.join("lists") };
        for part in ["state/lists/partial", "cache/archives/partial", "none"] {
            fs::create_dir_all(lists.directory.join(part)).unwrap();
        }
        let repository = scratch.0.join("repository");
        fs::create_dir_all(&repository).unwrap();
        let sum = "0".repeat(64);
        let entries = packages.iter().map(|(name, more)| {
            format!(
                "Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: no <no@no>\n{more}\
                 Filename: pool/{name}_1_all.deb\nSize: 17\nSHA256: {sum}\nDescription: no\n\n"
            )
        });
        fs::write(repository.join("Packages"), entries.collect::<String>()).unwrap();
        let source = format!("deb [trusted=yes] file:{} ./\n", repository.display());
        fs::write(lists.directory.join("sources.list"), source).unwrap();
        fs::write(lists.directory.join("status"), "").unwrap();
        explained(lists.apt("update").args(["-qq", "--error-on=any"])).unwrap();
        lists
    }

    #[test]
    fn what_apt_refuses_it_says_in_its_own_words() {
        let scratch = Scratch::new("apt-refuses").unwrap();
        let packages = [("one", "Conflicts: two\n"), ("two", ""), ("wanting", "Depends: absent (>= 2)\n")];
        let lists = lists_of(&scratch, &packages);
        let refused = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            format!("{:#}", lists.with_dependencies(&names).unwrap_err())
        };
        let missing = refused(&["nothing"]);
        assert!(missing.contains("apt refuses:") && missing.contains("Unable to locate package nothing"));
        let conflict = refused(&["one", "two"]);
        assert!(conflict.contains("one : Conflicts: two"), "{conflict}");
        let unmet = refused(&["wanting"]);
        assert!(unmet.contains("wanting : Depends: absent (>= 2)"), "{unmet}");
    }

    #[test]
    fn apts_addresses_are_read() {
        let line = "'http://deb.debian.org/debian-security/pool/updates/main/b/bb/bb_1%3a2_amd64.deb' bb_1%3a2_amd64.deb \
                    17 SHA256:00ff";
        let package = parse_uri(line).unwrap();
        assert_eq!(package.path, "pool/updates/main/b/bb/bb_1%3a2_amd64.deb");
        assert_eq!((package.version.as_str(), package.size, package.sha256.as_str()), ("1:2", 17, "00ff"));
        assert!(parse_uri("W: something").is_err());
    }
}
