//! Programs in C, C++ and assembly: each directory below `tests/c` is one program of that name.
//!
//! All its `*.c`, `*.cc` and `*.S` files are compiled freestanding with gcc and linked by the
//! script that the native programs use. Headers come from the program's own directory,
//! `tests/c/include` and `lib/l4/include`; sources in `tests/c/common` are linked into every
//! program. A file `link-address` in the directory moves the program.

use crate::{build, command, tree};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where the programs are. Compilers get paths from the root of the tree, in which they are
/// started: what they keep of them, in lists of dependencies, holds wherever the tree is moved.
const SOURCES: &str = "tests/c";

/// Flags of every compilation: no host library, no red zone (a program's stack is its own, but
/// exception handlers may run on it), frame pointers for backtraces, fixed address.
const FLAGS: [&str; 12] = [
    "-O2",
    "-g",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-ffreestanding",
    "-fno-pic",
    "-fno-stack-protector",
    "-fno-omit-frame-pointer",
    "-fno-asynchronous-unwind-tables",
    "-mno-red-zone",
    "-fcf-protection=none",
];

/// Further flags of C++ sources.
const CXX_FLAGS: [&str; 3] = ["-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"];

/// Builds every program whose inputs have changed; returns all of them.
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
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
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
    if !newer_than(&elf, &inputs) {
        let mut gcc = command::clean("gcc");
        gcc.args(["-nostdlib", "-static", "-no-pie", "-Wl,-znorelro", "-Wl,--build-id=none"]);
        if let Ok(address) = fs::read_to_string(&address_file) {
            gcc.arg(format!("-Wl,--defsym=LINK_ADDRESS={}", address.trim()));
        }
        gcc.arg("-T").arg(script).arg("-o").arg(&elf).args(&objects).arg("-lgcc");
        execute(gcc, verbose, &format!("linking {name}"))?;
    }
    Ok(elf)
}

/// The compilable files of a directory, in a fixed order and from the root of the tree.
fn source_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir(tree::root().join(directory)) else { return Ok(Vec::new()) };
    let compilable = |path: &PathBuf| {
        path.extension().is_some_and(|extension| ["c", "cc", "S"].iter().any(|known| extension == *known))
    };
    let files = entries.flatten().map(|entry| directory.join(entry.file_name()));
    let mut files: Vec<PathBuf> = files.filter(compilable).collect();
    files.sort();
    Ok(files)
}

fn object(directory: &Path, source: &Path, out: &Path, verbose: bool) -> Result<PathBuf> {
    let stem = source.file_name().unwrap_or_default().to_string_lossy();
    let prefix = directory.file_name().unwrap_or_default().to_string_lossy();
    let object = out.join(format!("{prefix}-{stem}.o"));
    let dependencies = object.with_extension("d");
    let inputs = fs::read_to_string(&dependencies).map(|rule| prerequisites(&rule)).unwrap_or_default();
    if !inputs.is_empty() && newer_than(&object, &inputs) {
        return Ok(object);
    }
    let mut gcc = command::clean("gcc");
    gcc.args(FLAGS);
    if source.extension().is_some_and(|extension| extension == "cc") {
        gcc.args(CXX_FLAGS);
    }
    for include in [directory, &Path::new(SOURCES).join("include"), Path::new("lib/l4/include")] {
        gcc.arg("-I").arg(include);
    }
    gcc.args(["-MMD", "-MF"]).arg(&dependencies).arg("-c").arg(source).arg("-o").arg(&object);
    execute(gcc, verbose, &format!("compiling {}", source.display()))?;
    Ok(object)
}

/// Runs a compiler, showing the command first if asked to.
pub fn execute(mut command: std::process::Command, verbose: bool, what: &str) -> Result<()> {
    if verbose {
        eprintln!("{command:?}");
    }
    command::run(&mut command, what)
}

/// The files on the right of a make rule as gcc writes it.
fn prerequisites(rule: &str) -> Vec<PathBuf> {
    // On the left is the object, whose path may have colons and blanks; the first source is the
    // first word after `.o: `.
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
