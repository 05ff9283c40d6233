//! Builds the 32-bit boot loader of `tests/kickstart`, which takes the place of Pistachio's.

use crate::programs_c::{FREESTANDING, make};
use crate::{command, tree};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// 32-bit, and no library function made out of loops: the loader's own are all there are.
const FLAGS: &str = "-m32 -march=i686 -fno-tree-loop-distribute-patterns";
const LINKER_FLAGS: &str =
    "-nostdlib -static -no-pie -Wl,-znorelro -Wl,--build-id=none -Wl,--no-warn-rwx-segments";

/// Builds the loader if its sources have changed.
pub fn build(verbose: bool) -> Result<PathBuf> {
    let source = tree::root().join("tests/kickstart");
    let elf = tree::target().join("kickstart/kickstart");
    let inputs = ["start.S", "loader.c", "multiboot.h", "kickstart.ld"].map(|name| source.join(name));
    make(&elf, &inputs, verbose, || {
        let mut gcc = command::clean("gcc");
        gcc.args([FREESTANDING, FLAGS, LINKER_FLAGS].iter().flat_map(|flags| flags.split(' ')));
        gcc.arg("-T").arg(&inputs[3]).arg("-o").arg(&elf).args(&inputs[..2]);
        gcc
    })?;
    Ok(elf)
}

/// Puts a boot file without its debugging information into a directory; returns where. The loader
/// refuses a program whose place a module occupies, and puts the modules where it finds them: right
/// after itself, so that they must end below the kernel's place at 8 MiB.
pub fn stripped(file: &Path, directory: &Path) -> Result<PathBuf> {
    let out = directory.join(file.file_name().context("a boot file has a name")?);
    let mut strip = command::clean("strip");
    strip.arg("--strip-debug").arg("-o").arg(&out).arg(file);
    command::run(&mut strip, "stripping a boot file")?;
    Ok(out)
}
