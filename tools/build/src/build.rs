//! `./mac build`: the kernel and every native program, for the bare machine.
//!
//! Each flag set has its own target directory, so that no build invalidates another. Finished files
//! are copied to `target/boot/NAME`, where everything that boots takes them from.

use crate::packages::{Kind, Package};
use crate::toolchain::{TARGET, Toolchain};
use crate::{command, guests, kickstart, mach_programs, packages, programs_c, toolchain, tree};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Options of `./mac build`.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Show the compilers' command lines
    #[arg(long, short)]
    verbose: bool,
    /// Only build the programs of this package outside the tree, into target/outside
    #[arg(long, value_name = "DIR")]
    program: Option<PathBuf>,
    /// Only build the native Mach program of the C sources and interface definitions in this
    /// directory, into target/outside
    #[arg(long, value_name = "DIR", conflicts_with = "program")]
    mach: Option<PathBuf>,
}

/// Builds and reports where the boot files are.
pub fn run(options: &Options) -> Result<()> {
    let built = match (&options.program, &options.mach) {
        (Some(directory), _) => outside(&std::path::absolute(directory)?, options.verbose)?,
        (None, Some(directory)) => {
            vec![mach_programs::outside(&std::path::absolute(directory)?, options.verbose)?]
        }
        (None, None) => everything(options)?,
    };
    let directory = built.first().and_then(|file| file.parent()).unwrap_or(Path::new("."));
    println!("{} boot files in {}", built.len(), directory.display());
    Ok(())
}

/// Builds the kernel and all programs; returns the boot files.
pub fn everything(options: &Options) -> Result<Vec<PathBuf>> {
    let profile = profile()?;
    let toolchain = toolchain::find()?;
    let packages = packages::all(&toolchain.cargo)?;
    let mut files = Vec::new();
    for set in [FlagSet::kernel(), FlagSet::user()?] {
        let chosen: Vec<&Package> = packages.iter().filter(|package| package.kind == set.kind).collect();
        // The kernel is always built with the release profile, because it is what is measured.
        let profile = if matches!(set.kind, Kind::Kernel) { RELEASE } else { profile };
        files.extend(set.build(&toolchain, &chosen, profile, options.verbose)?);
    }
    let c_programs = programs_c::build(options.verbose)?.into_iter().chain(guests::build(options.verbose)?);
    let c_programs = c_programs.chain(mach_programs::build(options.verbose)?);
    let others = c_programs.chain([kickstart::build(options.verbose)?]).chain(configurations()?);
    for file in others {
        files.push(install(&file)?);
    }
    remove_others(&files)?;
    Ok(files)
}

/// Builds a package that is outside the tree, with the flags of the tree's own programs.
fn outside(directory: &Path, verbose: bool) -> Result<Vec<PathBuf>> {
    let results = tree::target().join("outside");
    let toolchain = toolchain::find()?;
    let manifest = directory.join("Cargo.toml");
    let packages = packages::of(&toolchain.cargo, &manifest)?;
    let programs: Vec<&Package> = packages.iter().filter(|package| package.kind == Kind::Program).collect();
    if programs.is_empty() {
        bail!("{}: [package.metadata.macadamia] does not say kind = \"program\"", manifest.display());
    }
    let mut cargo = FlagSet::user()?.unlocked(&toolchain, "build", &results.join("build"));
    cargo.args(["--profile", RELEASE, "--manifest-path"]).arg(&manifest);
    if verbose {
        cargo.arg("--verbose");
    }
    command::run(&mut cargo, &format!("building {}", directory.display()))?;
    let built = results.join("build").join(TARGET).join(RELEASE);
    let binaries = programs.iter().flat_map(|package| &package.binaries);
    binaries.map(|binary| copy(&built.join(binary), &results.join(binary))).collect()
}

/// Builds the programs to which the named boot files belong, and no others.
pub fn programs(names: &[&str]) -> Result<()> {
    let toolchain = toolchain::find()?;
    named(&FlagSet::user()?, &toolchain, names, profile()?).map(drop)
}

/// Builds the kernel and those programs of the tree to which the named boot files belong. Other
/// names are ignored.
pub fn kernel_and_programs(names: &[&str]) -> Result<()> {
    let toolchain = toolchain::find()?;
    named(&FlagSet::kernel(), &toolchain, &["kernel"], RELEASE)?;
    named(&FlagSet::user()?, &toolchain, names, profile()?)?;
    programs_c::build_named(names)?
        .iter()
        .chain(&mach_programs::build_named(names)?)
        .chain(&configurations()?)
        .try_for_each(|file| install(file).map(drop))
}

/// The feature that builds the kernel for one processor, without the code that only several need.
pub const UNIPROCESSOR: &str = "uniprocessor";

/// Builds the kernel with a feature that only a benchmark uses. Returns the file, which does not
/// replace the usual kernel.
pub fn kernel_with(feature: &str) -> Result<PathBuf> {
    let results = tree::target().join(format!("kernel-{feature}"));
    let mut cargo = FlagSet::kernel().cargo_into(&toolchain::find()?, "build", &results);
    cargo.args(["--profile", RELEASE, "--package", "macadamia-kernel", "--features", feature]);
    command::run(&mut cargo, &format!("building the kernel with {feature}"))?;
    Ok(results.join(TARGET).join(RELEASE).join("kernel"))
}

/// Builds the packages of a set to which the named boot files belong.
fn named(set: &FlagSet, toolchain: &Toolchain, names: &[&str], profile: &str) -> Result<Vec<PathBuf>> {
    let packages = packages::all(&toolchain.cargo)?;
    let is_named = |package: &&Package| {
        package.kind == set.kind && package.binaries.iter().any(|binary| names.contains(&binary.as_str()))
    };
    let chosen: Vec<&Package> = packages.iter().filter(is_named).collect();
    set.build(toolchain, &chosen, profile, false)
}

/// Builds the kernel and the servers that guests need, and nothing else.
pub fn guest_system() -> Result<()> {
    kernel_and_programs(&GUEST_SYSTEM)
}

/// The boot files that run guests, the kernel first.
pub fn guest_files() -> impl Iterator<Item = PathBuf> {
    ["kernel"].into_iter().chain(GUEST_SYSTEM).map(|name| tree::boot().join(name))
}

const GUEST_SYSTEM: [&str; 15] = [
    "sigma0",
    "root",
    "console",
    "virtio-blk",
    "nvme",
    "virtio-console",
    "virtio-net",
    "virtio-rng",
    "virtio-9p",
    "ps2",
    "rtc",
    "screen",
    "ext4",
    "network",
    "unix",
];

/// The profile with which the kernel, and the programs of published figures, are built.
pub const RELEASE: &str = "release";

/// The profile with which programs are built: `MAC_PROFILE`, else [`RELEASE`].
///
/// # Errors
/// The variable names no profile of this tree.
pub fn profile() -> Result<&'static str> {
    match std::env::var("MAC_PROFILE").as_deref() {
        Err(_) | Ok("" | RELEASE) => Ok(RELEASE),
        Ok("quick") => Ok("quick"),
        Ok(other) => bail!("MAC_PROFILE is {other}; it can be release (the default) or quick"),
    }
}

/// Refuses to measure programs that were built with another profile.
///
/// # Errors
/// The profile is not [`RELEASE`].
pub fn only_release() -> Result<()> {
    match profile()? {
        RELEASE => Ok(()),
        other => bail!("MAC_PROFILE is {other}: only the release profile is measured"),
    }
}

/// The boot configurations of the tests that boot root.
fn configurations() -> Result<Vec<PathBuf>> {
    tree::files(&tree::root().join("tests/servers"), &[".conf"])
}

/// Removes boot files of programs that no longer exist, so that no stale one is booted.
fn remove_others(built: &[PathBuf]) -> Result<()> {
    let Ok(present) = fs::read_dir(tree::boot()) else { return Ok(()) };
    for path in present.flatten().map(|entry| entry.path()).filter(|path| !built.contains(path)) {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// A set of compiler flags and the packages that are built with it.
pub struct FlagSet {
    /// The kind of these packages.
    pub kind: Kind,
    what: &'static str,
    flags: Vec<String>,
}

impl FlagSet {
    /// The set of the kernel, which runs in the top 2 GiB, at a fixed address. Its build script
    /// passes its linker script.
    pub fn kernel() -> FlagSet {
        let flags = ["-Crelocation-model=static", "-Ccode-model=kernel", "-Cforce-frame-pointers=yes"];
        FlagSet { kind: Kind::Kernel, what: "the kernel", flags: flags.map(String::from).to_vec() }
    }

    /// The set of programs, which run at a fixed low address, where the boot loader puts them.
    /// Without `norelro` .data and .bss would share a page across two segments, and pages must have
    /// one set of rights. The code model is the target's default (kernel), as in the libraries that
    /// programs are linked with, because link-time optimisation refuses to mix models. It reaches
    /// the lowest 2 GiB as well as the highest.
    pub fn user() -> Result<FlagSet> {
        let flags = [
            "-Crelocation-model=static",
            "-Cforce-frame-pointers=yes",
            "-Clink-arg=-znorelro",
            "-Clink-arg=--no-pie",
        ];
        let mut flags = flags.map(String::from).to_vec();
        flags.push(format!("-Clink-arg=-T{}", program_script()?.display()));
        Ok(FlagSet { kind: Kind::Program, what: "the native programs", flags })
    }

    /// A call of cargo with the flags and the target directory of this set.
    pub fn cargo(&self, toolchain: &Toolchain, verb: &str) -> std::process::Command {
        self.cargo_into(toolchain, verb, &self.directory())
    }

    /// A call of cargo with the flags of this set, whose results go to the directory `results`.
    pub fn cargo_into(&self, toolchain: &Toolchain, verb: &str, results: &Path) -> std::process::Command {
        let mut cargo = self.unlocked(toolchain, verb, results);
        cargo.arg("--locked");
        cargo
    }

    /// A cargo call like that of `cargo_into`, for packages that have a lock file of their own or
    /// none yet.
    fn unlocked(&self, toolchain: &Toolchain, verb: &str, results: &Path) -> std::process::Command {
        let flags: Vec<&str> = toolchain.flags.iter().chain(&self.flags).map(String::as_str).collect();
        let mut cargo = command::clean(&toolchain.cargo);
        cargo.arg(verb).args(["--target", TARGET, "--target-dir"]).arg(results);
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        cargo
    }

    /// Builds these packages of the set. Returns their boot files.
    fn build(
        &self,
        toolchain: &Toolchain,
        packages: &[&Package],
        profile: &str,
        verbose: bool,
    ) -> Result<Vec<PathBuf>> {
        if packages.is_empty() {
            return Ok(Vec::new());
        }
        let mut cargo = self.cargo(toolchain, "build");
        cargo.args(["--profile", profile]);
        for package in packages {
            cargo.args(["--package", &package.name]);
        }
        if verbose {
            cargo.arg("--verbose");
        }
        command::run(&mut cargo, &format!("building {}", self.what))?;
        let binaries = packages.iter().flat_map(|package| &package.binaries);
        let results = self.directory().join(TARGET).join(profile);
        binaries.map(|binary| install(&results.join(binary))).collect()
    }

    fn directory(&self) -> PathBuf {
        tree::target().join(match self.kind {
            Kind::Kernel => "kernel",
            Kind::Program | Kind::Host => "user",
        })
    }
}

/// The linker script of native programs, under a name that changes with its content: linker
/// arguments are part of cargo's fingerprint but the files that they name are not, and a changed
/// script must relink every program.
pub(crate) fn program_script() -> Result<PathBuf> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    PROGRAM_SCRIPT.hash(&mut hasher);
    let path = tree::target().join(format!("program-{:016x}.ld", hasher.finish()));
    write_if_changed(&path, PROGRAM_SCRIPT.as_bytes())?;
    Ok(path)
}

/// The linker script: page-aligned segments, each with one set of rights, at equal physical and
/// virtual addresses.
const PROGRAM_SCRIPT: &str = include_str!("program.ld");

/// Puts a finished file into `target/boot`, only if it differs: what boots it can trust time
/// stamps.
fn install(built: &Path) -> Result<PathBuf> {
    copy(built, &tree::boot().join(built.file_name().unwrap_or_default()))
}

/// Copies a finished file. A copy that does not differ keeps its time stamp.
fn copy(built: &Path, path: &Path) -> Result<PathBuf> {
    let content = fs::read(built).with_context(|| format!("reading {}", built.display()))?;
    write_if_changed(path, &content)?;
    Ok(path.to_path_buf())
}

/// Replaces a file in one step, unless it already has that content.
pub fn write_if_changed(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    let write = || {
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        let partial = path.with_file_name(format!(".partial-{}", std::process::id()));
        let result = fs::write(&partial, content).and_then(|()| fs::rename(&partial, path));
        if result.is_err() {
            let _ = fs::remove_file(&partial);
        }
        result
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let scratch = Scratch::new("write").unwrap();
        fs::create_dir_all(scratch.0.join("occupied/by-a-directory")).unwrap();
        assert!(write_if_changed(&scratch.0.join("occupied"), b"content").is_err());
        let names: Vec<_> =
            fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["occupied"]);
    }

    #[test]
    fn an_unchanged_file_is_not_touched() {
        let scratch = Scratch::new("unchanged").unwrap();
        let path = scratch.0.join("file");
        write_if_changed(&path, b"one").unwrap();
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        write_if_changed(&path, b"one").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
        write_if_changed(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }
}
