//! Native Mach programs in C: each file `tests/native-mach/NAME.c` is the boot file `mach-NAME`.
//! The sources that they share, those of `lib/mach/c`, and the stubs that `mig` writes for the
//! interfaces of the kernel's objects are linked into each.

use crate::build::write_if_changed;
use crate::programs_c::{FREESTANDING, make};
use crate::{command, tree};
use anyhow::{Result, bail};
use mig::options::{Options, Request};
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of the programs, relative to the root of the tree.
const PROGRAMS: &str = "tests/native-mach";
/// The directories of what all programs are linked with, and of the headers.
const LIBRARY: &str = "lib/mach/c";
const HEADERS: &str = "lib/mach/include";
/// The interfaces for which programs get stubs.
const INTERFACES: [&str; 2] = ["mach", "mach_port"];
/// The source in the directory of the programs that is not a program itself.
const SHARED: &str = "tap.c";

/// Builds the programs whose sources have changed. Returns all programs.
pub(crate) fn build(verbose: bool) -> Result<Vec<PathBuf>> {
    build_chosen(|_| true, verbose)
}

/// Builds those of the named boot files that are such programs. Returns them.
pub(crate) fn build_named(names: &[&str]) -> Result<Vec<PathBuf>> {
    build_chosen(|name| names.contains(&name), false)
}

fn build_chosen(is_chosen: impl Fn(&str) -> bool, verbose: bool) -> Result<Vec<PathBuf>> {
    let sources = tree::files(&tree::root().join(PROGRAMS), &[".c"])?;
    let is_program = |source: &&PathBuf| source.file_name().is_some_and(|name| name != SHARED);
    let programs = sources.iter().filter(is_program).filter(|source| is_chosen(&boot_file(source)));
    let programs: Vec<&PathBuf> = programs.collect();
    if programs.is_empty() {
        return Ok(Vec::new());
    }
    let stubs = INTERFACES.iter().map(|name| stubs(name)).collect::<Result<Vec<_>>>()?;
    programs.into_iter().map(|source| program(source, &stubs, verbose)).collect()
}

/// The name of the boot file of a program.
fn boot_file(source: &Path) -> String {
    format!("mach-{}", source.file_stem().unwrap_or_default().to_string_lossy())
}

/// Writes the stubs of an interface. Returns their source; the header is next to it.
fn stubs(name: &str) -> Result<PathBuf> {
    let directory = tree::target().join("native-mach/stubs");
    let fresh = directory.join("fresh");
    fs::create_dir_all(&fresh)?;
    let (source, header) = (format!("{name}_user.c"), format!("{name}_user.h"));
    let path = |path: PathBuf| path.to_string_lossy().into_owned();
    let interfaces = tree::root().join("interfaces");
    let words = [
        "-n".into(),
        "-I".into(),
        path(interfaces.clone()),
        "-user".into(),
        path(fresh.join(&source)),
        "-header".into(),
        path(fresh.join(&header)),
        path(interfaces.join(format!("mach/{name}.defs"))),
    ];
    let Request::Compile(options) = Options::parse(words)? else {
        bail!("mig was asked for stubs");
    };
    mig::driver::run(&options)?;
    for file in [&source, &header] {
        // The source includes its header by the path that mig was given.
        let text = tree::read(&fresh.join(file))?.replace(&path(fresh.join(&header)), &header);
        write_if_changed(&directory.join(file), text.as_bytes())?;
    }
    Ok(directory.join(source))
}

fn program(source: &Path, stubs: &[PathBuf], verbose: bool) -> Result<PathBuf> {
    let output = tree::target().join("native-mach").join(boot_file(source));
    let directory = source.parent().unwrap_or(Path::new("."));
    let mut sources = vec![source.to_path_buf(), directory.join(SHARED)];
    sources.extend(tree::files(&tree::root().join(LIBRARY), &[".c", ".S"])?);
    sources.extend_from_slice(stubs);
    let mut inputs = sources.clone();
    inputs.extend(tree::files(&tree::root().join(HEADERS), &[".h"])?);
    inputs.extend(tree::files(directory, &[".h"])?);
    make(&output, &inputs, verbose, || {
        let mut gcc = command::clean("gcc");
        gcc.args(FREESTANDING.split(' ')).args(["-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none"]);
        gcc.args(["-ffunction-sections", "-Wl,--gc-sections"]);
        for include in [Path::new(HEADERS), Path::new(PROGRAMS), &output.with_file_name("stubs")] {
            gcc.arg("-I").arg(include);
        }
        gcc.arg("-o").arg(&output).args(&sources);
        gcc
    })?;
    Ok(output)
}
