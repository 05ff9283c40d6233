//! Programs in C, C++ and assembly: each directory below `tests/c` is one program of that name.
//!
//! All `*.c`, `*.cc` and `*.S` files of the directory are compiled freestanding with gcc and linked
//! by the script that the native programs use. Headers come from the program's own directory,
//! `tests/c/include` and `lib/l4/include`; sources in `tests/c/common` are linked into every
//! program. A file `link-address` in the directory sets the address at which the program is linked.

use crate::{build, command, tree};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The directory of the programs, relative to the root of the tree, in which compilers are started.
/// Compilers write such paths into lists of dependencies, which stay right when the tree is moved.
const SOURCES: &str = "tests/c";

/// What keeps a compiler from everything of the host, for code that runs without an operating
/// system.
pub(crate) const FREESTANDING: &str = "-O2 -g -Wall -Wextra -Werror -ffreestanding -fno-pic -fno-stack-protector \
    -fno-asynchronous-unwind-tables -fcf-protection=none";
/// Flags of every compilation: no red zone (a program's stack is its own, but exception handlers
/// may run on it), frame pointers for backtraces.
const FLAGS: &str = "-fno-omit-frame-pointer -mno-red-zone";

/// Further flags of C++ sources.
const CXX_FLAGS: &str = "-fno-exceptions -fno-rtti -fno-threadsafe-statics";

/// Builds every program whose inputs have changed. Returns all programs.
pub fn build(verbose: bool) -> Result<Vec<PathBuf>> {
    build_chosen(|_| true, verbose)
}

/// Builds those of the programs that are named; returns them. Other names are left alone.
pub(crate) fn build_named(names: &[&str]) -> Result<Vec<PathBuf>> {
    build_chosen(|name| names.contains(&name), false)
}

fn build_chosen(is_chosen: impl Fn(&str) -> bool, verbose: bool) -> Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir(tree::root().join(SOURCES)) else { return Ok(Vec::new()) };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != "common" && name != "include" && is_chosen(name))
        .collect();
    names.sort();
    let script = build::program_script()?;
    names.iter().map(|name| program(name, &script, verbose)).collect()
}

fn program(name: &str, script: &Path, verbose: bool) -> Result<PathBuf> {
    let sources = Path::new(SOURCES);
    let out = tree::target().join("c").join(name);
    let mut objects = Vec::new();
    for directory in [sources.join("common"), sources.join(name)] {
        for source in source_files(&directory)? {
            objects.push(object(&directory, &source, &out, verbose)?);
        }
    }
    let elf = out.join(name);
    let mut inputs = objects.clone();
    inputs.push(script.to_path_buf());
    let address_file = tree::root().join(sources).join(name).join("link-address");
    if address_file.is_file() {
        inputs.push(address_file.clone());
    }
    make(&elf, &inputs, verbose, || {
        let mut gcc = command::clean("gcc");
        gcc.args(["-nostdlib", "-static", "-no-pie", "-Wl,-znorelro", "-Wl,--build-id=none"]);
        if let Ok(address) = fs::read_to_string(&address_file) {
            gcc.arg(format!("-Wl,--defsym=LINK_ADDRESS={}", address.trim()));
        }
        gcc.arg("-T").arg(script).arg("-o").arg(&elf).args(&objects).arg("-lgcc");
        gcc
    })?;
    Ok(elf)
}

/// The source files of a directory, in a fixed order, relative to the root of the tree.
fn source_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let files = tree::files(&tree::root().join(directory), &[".c", ".cc", ".S"])?;
    files.iter().map(|file| Ok(file.strip_prefix(tree::root())?.to_path_buf())).collect()
}

fn object(directory: &Path, source: &Path, out: &Path, verbose: bool) -> Result<PathBuf> {
    let stem = source.file_name().unwrap_or_default().to_string_lossy();
    let prefix = directory.file_name().unwrap_or_default().to_string_lossy();
    let object = out.join(format!("{prefix}-{stem}.o"));
    let dependencies = object.with_extension("d");
    let inputs = fs::read_to_string(&dependencies).map(|rule| prerequisites(&rule)).unwrap_or_default();
    make(&object, &inputs, verbose, || {
        let mut gcc = command::clean("gcc");
        let is_cxx = source.extension().is_some_and(|extension| extension == "cc");
        let flags = [FREESTANDING, FLAGS].into_iter().chain(is_cxx.then_some(CXX_FLAGS));
        gcc.args(flags.flat_map(|flags| flags.split(' ')));
        for include in [directory, &Path::new(SOURCES).join("include"), Path::new("lib/l4/include")] {
            gcc.arg("-I").arg(include);
        }
        gcc.args(["-MMD", "-MF"]).arg(&dependencies).arg("-c").arg(source).arg("-o").arg(&object);
        gcc
    })?;
    Ok(object)
}

/// Makes a file by this command, which it shows first if asked to, unless the file is newer than
/// its inputs; without inputs it is not known what it was made of.
pub(crate) fn make(
    output: &Path,
    inputs: &[PathBuf],
    verbose: bool,
    command: impl FnOnce() -> Command,
) -> Result<()> {
    if !inputs.is_empty() && newer_than(output, inputs) {
        return Ok(());
    }
    let directory = output.parent().unwrap_or(output);
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let mut command = command();
    if verbose {
        eprintln!("{command:?}");
    }
    command::run(&mut command, &format!("making {}", output.display()))
}

/// The prerequisites in a make rule that gcc has written.
fn prerequisites(rule: &str) -> Vec<PathBuf> {
    // The target of the rule is an object file, whose path may have colons and blanks. The
    // prerequisites follow the first `.o: `.
    let right = rule.split_once(".o: ").map_or("", |(_, right)| right);
    let files = right.split_whitespace().filter(|word| *word != "\\");
    files.map(|file| tree::root().join(file)).collect()
}

/// Whether a file exists and is newer than all its inputs and than the builder itself.
pub(crate) fn newer_than(output: &Path, inputs: &[PathBuf]) -> bool {
    let modified = |path: &Path| -> Option<SystemTime> { fs::metadata(path).ok()?.modified().ok() };
    let Some(built) = modified(output) else { return false };
    let builder = std::env::current_exe().ok();
    inputs.iter().chain(builder.iter()).all(|input| modified(input).is_some_and(|time| time <= built))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_make_rule_gives_its_prerequisites() {
        let rule = "out/a.o: a.c \\\n include/x.h include/y.h\n";
        let here = |files: [&str; 3]| files.map(|file| tree::root().join(file));
        assert_eq!(prerequisites(rule), here(["a.c", "include/x.h", "include/y.h"]));
        assert!(prerequisites("").is_empty());
    }

    #[test]
    fn a_missing_input_or_output_means_building() {
        assert!(!newer_than(Path::new("/nonexistent"), &[]));
        let here = std::env::current_exe().unwrap();
        assert!(!newer_than(&here, &[PathBuf::from("/nonexistent")]));
    }
}
