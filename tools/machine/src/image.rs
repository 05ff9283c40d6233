//! Makes bootable images: an ISO file that starts under BIOS and under UEFI, from a CD or unchanged
//! from a USB stick.

use crate::grub;
use crate::qemu::Machine;
use anyhow::{Context, Result, bail};
use mac_build::scratch::Scratch;
use mac_build::{command, tree};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// The image with the files of this machine; it is made once for the same content.
pub fn cached(machine: &Machine) -> Result<PathBuf> {
    // If several threads want an image, one makes it, and the others find it.
    static MAKING: Mutex<()> = Mutex::new(());
    let _guard = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let configuration = grub::configuration(machine)?;
    let mut hasher = DefaultHasher::new();
    configuration.hash(&mut hasher);
    for file in machine.files() {
        fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?.hash(&mut hasher);
    }
    let image = tree::target().join("images").join(format!("{:016x}.iso", hasher.finish()));
    if !image.is_file() {
        make(machine, &configuration, &image)?;
    }
    Ok(image)
}

/// Writes an image to `path`. After an error there is no incomplete file.
/// The drivers of the machine's devices start first.
pub fn write(machine: &Machine, path: &Path) -> Result<()> {
    let scratch = Scratch::new("image")?;
    let machine = machine.with_drivers(&scratch.0)?;
    make(&machine, &grub::configuration(&machine)?, path)
}

fn make(machine: &Machine, configuration: &str, image: &Path) -> Result<()> {
    grub::check_tools()?;
    let directory = image.parent().context("an image path without a directory")?;
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let scratch = directory.join(format!(".partial-{}", std::process::id()));
    let result = assemble(machine, configuration, &scratch).and_then(|made| {
        fs::rename(made, image).with_context(|| format!("cannot write {}", image.display()))
    });
    let _ = fs::remove_dir_all(&scratch);
    result
}

/// What GRUB finds the image by on a CD or stick: the default set would double the image's size.
const PARTITIONS: &str = "iso9660 part_msdos part_acorn part_amiga part_apple part_bsd part_dfly part_dvh part_plan \
                          part_sun part_sunpc";

/// Writes the image's files below `scratch` and packs them. Returns the image, which is also below
/// `scratch`.
fn assemble(machine: &Machine, configuration: &str, scratch: &Path) -> Result<PathBuf> {
    let files = scratch.join("files");
    grub::write_files(machine, configuration, &files)?;
    let made = scratch.join("image.iso");
    let mut grub = Command::new("grub-mkrescue");
    // Only the modules are installed that the configuration uses, and those of grub-mkrescue's own
    // start-up script.
    grub.args(["--locales=", "--fonts=", "--themes="])
        .arg(format!("--install-modules={} {PARTITIONS}", grub::MODULES));
    grub.arg("-o").arg(&made).arg(&files).env("TMPDIR", scratch);
    command::output(&mut grub).context("grub-mkrescue could not make the image")?;
    if !made.is_file() {
        bail!("grub-mkrescue said nothing but made no image (is the disk full?)");
    }
    Ok(made)
}
