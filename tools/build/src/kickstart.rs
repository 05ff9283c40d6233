//! The 32-bit boot loader of `tests/kickstart`, which stands for Pistachio's.

use crate::programs_c::{execute, newer_than};
use crate::{command, tree};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// 32-bit, freestanding, and no library function made out of loops: the loader's own are all there
/// are.
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
pub fn build(verbose: bool) -> Result<PathBuf> {
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

/// A boot file without its debugging information. The loader refuses a program whose place a module
/// occupies, and puts the modules where it finds them: right after itself, so that they must end
/// below the kernel's place at 8 MiB.
pub fn stripped(file: &Path) -> Result<PathBuf> {
    let name = file.file_name().context("a boot file has a name")?;
    let directory = tree::target().join("kickstart/stripped");
    let out = directory.join(name);
    if !newer_than(&out, &[file.to_path_buf()]) {
        fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        // Several machines start at the same time: each makes its own copy, and the last one stays.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let own = directory.join(format!("{}.{}.{number}", name.display(), std::process::id()));
        let mut strip = command::clean("strip");
        strip.arg("--strip-debug").arg("-o").arg(&own).arg(file);
        command::run(&mut strip, "stripping a boot file")?;
        fs::rename(&own, &out).with_context(|| format!("cannot create {}", out.display()))?;
    }
    Ok(out)
}
