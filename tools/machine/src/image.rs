//! Makes bootable images: an ISO file that starts under BIOS and under UEFI, from a CD or unchanged
//! from a USB stick.

use crate::qemu::{Machine, module_name};
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
    let configuration = grub_configuration(machine)?;
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
    make(&machine, &grub_configuration(&machine)?, path)
}

fn make(machine: &Machine, configuration: &str, image: &Path) -> Result<()> {
    check_tools()?;
    let directory = image.parent().context("an image path without a directory")?;
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let scratch = directory.join(format!(".partial-{}", std::process::id()));
    let result = assemble(machine, configuration, &scratch).and_then(|made| {
        fs::rename(made, image).with_context(|| format!("cannot write {}", image.display()))
    });
    let _ = fs::remove_dir_all(&scratch);
    result
}

/// GRUB's modules in the image: the default set would double its size.
const MODULES: &str = "multiboot2 normal iso9660 fat search serial terminal all_video echo sleep reboot part_gpt \
                       part_msdos part_acorn part_amiga part_apple part_bsd part_dfly part_dvh part_plan part_sun \
                       part_sunpc";

/// Writes the image's files below `scratch` and packs them. Returns the image, which is also below
/// `scratch`.
fn assemble(machine: &Machine, configuration: &str, scratch: &Path) -> Result<PathBuf> {
    let boot = scratch.join("files/boot");
    fs::create_dir_all(boot.join("grub")).with_context(|| format!("cannot create {}", boot.display()))?;
    for file in machine.files() {
        let name = file.file_name().context("a boot file without a name")?;
        fs::copy(&file, boot.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    fs::write(boot.join("grub/grub.cfg"), configuration).context("cannot write grub.cfg")?;
    let made = scratch.join("image.iso");
    let mut grub = Command::new("grub-mkrescue");
    // Only the modules are installed that the configuration uses, and those of grub-mkrescue's own
    // start-up script.
    grub.args(["--locales=", "--fonts=", "--themes="]).arg(format!("--install-modules={MODULES}"));
    grub.arg("-o").arg(&made).arg(scratch.join("files")).env("TMPDIR", scratch);
    command::output(&mut grub).context("grub-mkrescue could not make the image")?;
    if !made.is_file() {
        bail!("grub-mkrescue said nothing but made no image (is the disk full?)");
    }
    Ok(made)
}

/// Checks that the programs which grub-mkrescue needs exist. The error names the Debian packages
/// that have them.
fn check_tools() -> Result<()> {
    let needed = [
        ("grub-mkrescue", "grub-common"),
        ("/usr/lib/grub/i386-pc", "grub-pc-bin"),
        ("/usr/lib/grub/x86_64-efi", "grub-efi-amd64-bin"),
        ("xorriso", "xorriso"),
        ("mformat", "mtools"),
    ];
    let is_there = |tool: &str| Path::new(tool).is_dir() || command::find(tool).is_some();
    let missing = needed.into_iter().filter(|(tool, _)| !is_there(tool));
    let missing: Vec<&str> = missing.map(|(_, package)| package).collect();
    if !missing.is_empty() {
        bail!("making an image needs {0} (Debian: apt-get install {0})", missing.join(" "));
    }
    Ok(())
}

fn grub_configuration(machine: &Machine) -> Result<String> {
    let mut commands = vec![format!("multiboot2 /boot/kernel {}", quoted(&machine.arguments)?)];
    for module in &machine.modules {
        commands.push(format!("module2 /boot/{} {}", module_name(module), quoted(module)?));
    }
    commands.push("boot".into());
    // There is no menu, since there is one system to boot. When one of the commands fails, GRUB has
    // said what is wrong. The configuration then waits ten seconds, so that a user can read it, and
    // restarts the machine. An emulated machine ends at the restart, so it never waits for a key.
    Ok(format!(
        "# A machine without a serial port makes the serial command fail, which harms nothing.\n\
         serial --unit=0 --speed=115200\n\
         terminal_output console serial\n\
         # The drivers of screens, for a system that asks for pixels.\n\
         insmod all_video\n\
         {}\n\
         echo 'The system could not be loaded; restarting in ten seconds.'\n\
         sleep 10\n\
         reboot\n",
        commands.join("\n")
    ))
}

/// Words for GRUB's command line, each in quotes, so that special characters have no meaning.
fn quoted(arguments: &str) -> Result<String> {
    if arguments.contains(['\'', '\n']) {
        bail!("GRUB cannot pass a quote or a line end: {arguments:?}");
    }
    Ok(arguments.split_whitespace().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_grub() {
        assert_eq!(quoted("a b=$c;d").unwrap(), "'a' 'b=$c;d'");
        assert_eq!(quoted("").unwrap(), "");
        assert!(quoted("it's").is_err());
    }
}
