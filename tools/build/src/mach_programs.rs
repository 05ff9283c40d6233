//! Native Mach programs in C: each file `tests/native-mach/NAME.c` is the boot file `mach-NAME`.
//! The sources that they share, and those of `lib/mach/c`, are linked into each.

use crate::programs_c::{FREESTANDING, make};
use crate::{command, tree};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// The directory of the programs, relative to the root of the tree.
const PROGRAMS: &str = "tests/native-mach";
/// The directories of what all programs are linked with, and of the headers.
const LIBRARY: &str = "lib/mach/c";
const HEADERS: &str = "lib/mach/include";
/// The source in the directory of the programs that is not a program itself.
const SHARED: &str = "tap.c";

/// Builds the programs whose sources have changed. Returns all programs.
pub(crate) fn build(verbose: bool) -> Result<Vec<PathBuf>> {
    let sources = tree::files(&tree::root().join(PROGRAMS), &[".c"])?;
    let programs = sources.iter().filter(|source| source.file_name().is_some_and(|name| name != SHARED));
    programs.map(|source| program(source, verbose)).collect()
}

fn program(source: &Path, verbose: bool) -> Result<PathBuf> {
    let name = format!("mach-{}", source.file_stem().unwrap_or_default().to_string_lossy());
    let output = tree::target().join("native-mach").join(name);
    let directory = source.parent().unwrap_or(Path::new("."));
    let mut sources = vec![source.to_path_buf(), directory.join(SHARED)];
    sources.extend(tree::files(&tree::root().join(LIBRARY), &[".c", ".S"])?);
    let mut inputs = sources.clone();
    inputs.extend(tree::files(&tree::root().join(HEADERS), &[".h"])?);
    inputs.extend(tree::files(directory, &[".h"])?);
    make(&output, &inputs, verbose, || {
        let mut gcc = command::clean("gcc");
        gcc.args(FREESTANDING.split(' ')).args(["-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none"]);
        gcc.arg("-I").arg(HEADERS).arg("-I").arg(PROGRAMS).arg("-o").arg(&output).args(&sources);
        gcc
    })?;
    Ok(output)
}
