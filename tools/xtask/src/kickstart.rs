//! The 32-bit boot loader of `tests/kickstart`, which stands for Pistachio's.

use crate::programs_c::{execute, newer_than};
use crate::{command, tree};
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;

/// 32-bit, freestanding, and no library function made out of loops: the loader's own are all there are.
const FLAGS: [&str; 12] = [
    "-m32",
    "-march=i686",
    "-O2",
    "-g",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-ffreestanding",
    "-fno-pic",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-tree-loop-distribute-patterns",
];

/// Builds the loader if its sources have changed.
pub(crate) fn build(verbose: bool) -> Result<PathBuf> {
    let source = tree::root().join("tests/kickstart");
    let out = tree::target().join("kickstart");
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let elf = out.join("kickstart");
    let inputs = ["start.S", "loader.c", "multiboot.h", "kickstart.ld"].map(|name| source.join(name));
    if !newer_than(&elf, &inputs) {
        let mut gcc = command::clean("gcc");
        gcc.args(FLAGS).args(["-fcf-protection=none", "-nostdlib", "-static", "-no-pie", "-Wl,-znorelro"]);
        gcc.args(["-Wl,--build-id=none", "-Wl,--no-warn-rwx-segments", "-T"]).arg(&inputs[3]);
        gcc.arg("-o").arg(&elf).args(&inputs[..2]);
        execute(gcc, verbose, "building the kickstart loader")?;
    }
    Ok(elf)
}
