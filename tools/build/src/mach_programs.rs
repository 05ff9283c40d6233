//! Native Mach programs in C: each file `tests/native-mach/NAME.c` is the boot file `mach-NAME`.
//! The sources that they share, those of `lib/mach/c`, and the stubs that `mig` writes for the
//! interfaces of the kernel's objects are linked into each.

use crate::build::write_if_changed;
use crate::programs_c::{FREESTANDING, make};
use crate::{command, tree};
use anyhow::{Context, Result, bail};
use mig::options::{Options, Request};
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of the programs, relative to the root of the tree.
const PROGRAMS: &str = "tests/native-mach";
/// The directories of what all programs are linked with, and of the headers.
const LIBRARY: &str = "lib/mach/c";
const HEADERS: &str = "lib/mach/include";
/// The interfaces for which programs get stubs to call, and those for which they get stubs to
/// serve.
const CALLED: [&str; 2] = ["mach", "mach_port"];
const SERVED: [&str; 1] = ["memory_object"];
/// The source in the directory of the programs that is not a program itself.
const SHARED: &str = "tap.c";
/// The directory of the stubs, relative to that of what is built.
const STUBS: &str = "native-mach/stubs";

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
    let stubs = all_stubs()?;
    programs.into_iter().map(|source| program(source, &stubs, verbose)).collect()
}

/// The name of the boot file of a program.
fn boot_file(source: &Path) -> String {
    format!("mach-{}", source.file_stem().unwrap_or_default().to_string_lossy())
}

/// Builds the program of a directory outside the tree from its C and assembler sources, and from
/// both sides of the stubs of its interface definitions. Returns the program,
/// `target/outside/NAME`, where NAME is the directory's.
pub(crate) fn outside(directory: &Path, verbose: bool) -> Result<PathBuf> {
    let name = directory.file_name().with_context(|| format!("{}: no name", directory.display()))?;
    let output = tree::target().join("outside").join(name);
    let own = tree::files(directory, &[".c", ".S"])?;
    if own.is_empty() {
        bail!("{}: there are no C sources", directory.display());
    }
    let mut stubs = all_stubs()?;
    let written = output.with_extension("stubs");
    for definition in tree::files(directory, &[".defs"])? {
        for side in [USER, SERVER] {
            stubs.push(write_stubs(&definition, &written, side)?);
        }
    }
    let headers = tree::files(directory, &[".h"])?;
    link(&output, &own, &stubs, &[directory, &written], &headers, verbose)?;
    Ok(output)
}

/// A side of an interface: the ending of its files' names, and `mig`'s options for source and
/// header.
type Side = (&'static str, [&'static str; 2]);

const USER: Side = ("user", ["-user", "-header"]);
const SERVER: Side = ("server", ["-server", "-sheader"]);

/// Writes all stubs of the tree's interfaces. Returns their sources; their headers are next to
/// them.
fn all_stubs() -> Result<Vec<PathBuf>> {
    let written = tree::target().join(STUBS);
    let definition = |name: &str| tree::root().join(format!("interfaces/mach/{name}.defs"));
    let called = CALLED.iter().map(|name| write_stubs(&definition(name), &written, USER));
    let served = SERVED.iter().map(|name| write_stubs(&definition(name), &written, SERVER));
    called.chain(served).collect()
}

/// Writes the stubs of one side of an interface into a directory. Returns their source.
fn write_stubs(definition: &Path, written: &Path, (ending, options): Side) -> Result<PathBuf> {
    let name = definition.file_stem().unwrap_or_default().to_string_lossy();
    let fresh = written.join("fresh");
    fs::create_dir_all(&fresh)?;
    let (source, header) = (format!("{name}_{ending}.c"), format!("{name}_{ending}.h"));
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let words = [
        "-n".into(),
        "-I".into(),
        path(&tree::root().join("interfaces")),
        options[0].into(),
        path(&fresh.join(&source)),
        options[1].into(),
        path(&fresh.join(&header)),
        path(definition),
    ];
    let Request::Compile(options) = Options::parse(words)? else {
        bail!("mig was asked for stubs");
    };
    mig::driver::run(&options)?;
    for file in [&source, &header] {
        // The source includes its header by the path that mig was given.
        let text = tree::read(&fresh.join(file))?.replace(&path(&fresh.join(&header)), &header);
        write_if_changed(&written.join(file), text.as_bytes())?;
    }
    Ok(written.join(source))
}

fn program(source: &Path, stubs: &[PathBuf], verbose: bool) -> Result<PathBuf> {
    let output = tree::target().join("native-mach").join(boot_file(source));
    let directory = source.parent().unwrap_or(Path::new("."));
    let own = [source.to_path_buf(), directory.join(SHARED)];
    let headers = tree::files(directory, &[".h"])?;
    link(&output, &own, stubs, &[Path::new(PROGRAMS)], &headers, verbose)?;
    Ok(output)
}

/// Links a program from its own sources, stubs, and what every program is linked with, unless it is
/// newer than all of them.
fn link(
    output: &Path,
    own: &[PathBuf],
    stubs: &[PathBuf],
    includes: &[&Path],
    headers: &[PathBuf],
    verbose: bool,
) -> Result<()> {
    let mut sources = own.to_vec();
    sources.extend(tree::files(&tree::root().join(LIBRARY), &[".c", ".S"])?);
    sources.extend_from_slice(stubs);
    let mut inputs = [&sources, headers].concat();
    inputs.extend(tree::files(&tree::root().join(HEADERS), &[".h"])?);
    make(output, &inputs, verbose, || {
        let mut gcc = command::clean("gcc");
        gcc.args(FREESTANDING.split(' ')).args(["-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none"]);
        gcc.args(["-ffunction-sections", "-Wl,--gc-sections"]);
        for include in [Path::new(HEADERS), &tree::target().join(STUBS)].iter().chain(includes) {
            gcc.arg("-I").arg(include);
        }
        gcc.arg("-o").arg(output).args(&sources);
        gcc
    })
}
