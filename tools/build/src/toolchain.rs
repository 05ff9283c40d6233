//! Finds a compiler that can build for the bare machine.
//!
//! The kernel and the native programs are built for `x86_64-unknown-none` on stable Rust. The
//! target's `core` is prebuilt (rustup's target), or is built once from the library source that
//! comes with a compiler (rustup's rust-src, Debian's rust-web-src). Nothing is ever downloaded.

use crate::{command, tree};
use anyhow::{Context, Result, bail};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The target of the kernel and of native programs: no operating system, no floating-point
/// registers.
pub const TARGET: &str = "x86_64-unknown-none";

/// A compiler that can build for [`TARGET`].
pub struct Toolchain {
    /// The cargo in the directory of that compiler.
    pub cargo: PathBuf,
    /// Flags that every compilation for the target needs: the sysroot and the linker, where they
    /// are not the default.
    pub flags: Vec<String>,
}

impl Toolchain {
    /// The version that the compiler prints, in one line.
    pub fn version(&self) -> Result<String> {
        command::output(command::clean(self.cargo.with_file_name("rustc")).arg("--version"))
    }
}

/// A compiler on this machine, and what it says about itself.
struct Candidate {
    rustc: PathBuf,
    sysroot: PathBuf,
    /// The directory in which the compiler looks for the target's libraries.
    libdir: PathBuf,
    /// The triple of the host.
    host: String,
    /// The output of `rustc -vV`.
    version: String,
}

impl Candidate {
    fn probe(rustc: PathBuf) -> Option<Candidate> {
        if !rustc.is_file() {
            return None;
        }
        let version = command::output(command::clean(&rustc).arg("-vV")).ok()?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "))?.to_string();
        let mut places = command::clean(&rustc);
        places.args(["--print=sysroot", "--print=target-libdir", "--target", TARGET]);
        let places = command::output(&mut places).ok()?;
        let (sysroot, libdir) = places.split_once('\n')?;
        let (sysroot, libdir) = (PathBuf::from(sysroot), PathBuf::from(libdir));
        Some(Candidate { rustc, sysroot, libdir, host, version })
    }

    fn has_prebuilt_core(&self) -> bool {
        let Ok(entries) = fs::read_dir(&self.libdir) else { return false };
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libcore-"))
    }

    fn library_source(&self) -> Option<PathBuf> {
        let library = self.sysroot.join("lib/rustlib/src/rust/library");
        library.join("core/Cargo.toml").is_file().then_some(library)
    }

    fn cargo(&self) -> PathBuf {
        self.rustc.with_file_name("cargo")
    }

    /// The linker flag that is needed if the target's default linker (`rust-lld`) does not come
    /// with this compiler.
    fn linker_flag(&self) -> Result<Option<String>> {
        let bundled = self.sysroot.join("lib/rustlib").join(&self.host).join("bin/rust-lld");
        if bundled.is_file() {
            return Ok(None);
        }
        let major =
            self.version.lines().find_map(|line| line.strip_prefix("LLVM version: ")?.split('.').next());
        let versioned = major.map(|major| format!("ld.lld-{major}")).unwrap_or_default();
        let linker = [versioned.as_str(), "rust-lld", "ld.lld"].into_iter().find_map(command::find);
        match linker {
            Some(path) => Ok(Some(format!("-Clinker={}", path.display()))),
            None => bail!(
                "{} comes without a linker for {TARGET}: install {} (Debian: lld-{})",
                self.rustc.display(),
                if versioned.is_empty() { "ld.lld" } else { &versioned },
                major.unwrap_or("22"),
            ),
        }
    }
}

/// The cargo for host code: the one that built this program.
pub fn host_cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// Finds a toolchain. If there is only the source of the target's libraries, they are built, once
/// for each compiler version, into `target/sysroot-<hash>`.
pub fn find() -> Result<Toolchain> {
    let mut places: Vec<PathBuf> = Vec::new();
    if let Some(named) = std::env::var_os("MAC_RUSTC") {
        places.push(named.into());
    } else {
        places.extend(std::env::var_os("CARGO").map(|cargo| PathBuf::from(cargo).with_file_name("rustc")));
        places.push("/usr/bin/rustc".into());
    }
    let candidates: Vec<Candidate> = places.into_iter().filter_map(Candidate::probe).collect();
    if let Some(candidate) = candidates.iter().find(|candidate| candidate.has_prebuilt_core()) {
        return Ok(Toolchain {
            cargo: candidate.cargo(),
            flags: candidate.linker_flag()?.into_iter().collect(),
        });
    }
    for candidate in &candidates {
        if let Some(library) = candidate.library_source() {
            let mut flags: Vec<String> = candidate.linker_flag()?.into_iter().collect();
            flags.push(format!("--sysroot={}", sysroot(candidate, &library)?.display()));
            return Ok(Toolchain { cargo: candidate.cargo(), flags });
        }
    }
    bail!(
        "no compiler here can build for {TARGET}. Either\n  rustup target add {TARGET}\nor, on Debian,\n  \
         apt-get install rustc-web cargo-web rust-web-src lld-22"
    )
}

/// The sysroot built from the library source of that compiler; built now if it does not exist.
fn sysroot(compiler: &Candidate, library: &Path) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    (&compiler.version, &compiler.rustc, SYSROOT_MANIFEST, SYSROOT_FLAGS).hash(&mut hasher);
    let finished = tree::target().join(format!("sysroot-{:016x}", hasher.finish()));
    if finished.is_dir() {
        return Ok(finished);
    }
    eprintln!("mac: building core and alloc for {TARGET} (once, about half a minute)");
    let scratch = tree::target().join(format!("sysroot-build-{}", std::process::id()));
    let built = build_sysroot(compiler, library, &scratch).and_then(|()| {
        fs::rename(scratch.join("sysroot"), &finished).context("cannot move the finished sysroot")
    });
    let _ = fs::remove_dir_all(&scratch);
    match built {
        // If another process has finished this sysroot meanwhile, that one is used.
        Err(_) if finished.is_dir() => Ok(finished),
        Err(error) => Err(error.context(format!("cannot build the libraries of {TARGET}"))),
        Ok(()) => Ok(finished),
    }
}

/// The manifest of a crate that depends on the libraries and on nothing else.
const SYSROOT_MANIFEST: &str = r#"
[package]
name = "sysroot"
version = "0.0.0"
edition = "2024"

[lib]
path = "lib.rs"

[dependencies]
core = { path = "LIBRARY/core" }
alloc = { path = "LIBRARY/alloc" }
compiler_builtins = { path = "LIBRARY/compiler-builtins/compiler-builtins", features = ["compiler-builtins", "mem"] }

[profile.release]
panic = "abort"
debug = 1

[workspace]
"#;

/// Flags with which the libraries are built: frame pointers, for backtraces through library code;
/// bitcode, so that the kernel's link-time optimisation includes the libraries.
const SYSROOT_FLAGS: [&str; 3] =
    ["-Cforce-frame-pointers=yes", "-Cembed-bitcode=yes", "-Zforce-unstable-if-unmarked"];

fn build_sysroot(compiler: &Candidate, library: &Path, scratch: &Path) -> Result<()> {
    let library_path = library.to_str().context("the path of the library source is not UTF-8")?;
    fs::create_dir_all(scratch.join(".cargo"))?;
    fs::write(scratch.join("Cargo.toml"), SYSROOT_MANIFEST.replace("LIBRARY", library_path))?;
    fs::write(scratch.join("lib.rs"), "#![no_std]\n")?;
    fs::copy(library.join("Cargo.lock"), scratch.join("Cargo.lock"))?;
    if library.join("vendor").is_dir() {
        let vendored = format!(
            "[source.crates-io]\nreplace-with = \"vendored\"\n[source.vendored]\ndirectory = \"{library_path}/vendor\"\n"
        );
        fs::write(scratch.join(".cargo/config.toml"), vendored)?;
    }
    let mut cargo = command::clean(compiler.cargo());
    cargo
        .current_dir(scratch)
        .args(["build", "--release", "--offline", "--quiet", "--target", TARGET, "--target-dir", "target"])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", SYSROOT_FLAGS.join("\x1f"));
    command::run(&mut cargo, "building core and alloc")?;
    let libraries = scratch.join("sysroot/lib/rustlib").join(TARGET).join("lib");
    fs::create_dir_all(&libraries)?;
    for entry in fs::read_dir(scratch.join("target").join(TARGET).join("release/deps"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".rlib") && !name.starts_with("libsysroot") {
            fs::copy(&path, libraries.join(&name))?;
        }
    }
    Ok(())
}
