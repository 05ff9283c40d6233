//! GRUB, the boot loader of images and of disks that boot by themselves: what it loads, and how a
//! disk has it.
//!
//! A BIOS starts the first sector of a disk, which has GRUB's `boot.img` before the table of
//! partitions. It loads GRUB's core from a partition of its own. UEFI firmware starts a program of
//! the system partition, a FAT file system. Both find their configuration, the kernel and the
//! modules in the system partition.

use crate::qemu::{Machine, module_name};
use anyhow::{Context, Result, bail};
use mac_build::command;
use std::fs;
use std::path::Path;
use std::process::Command;

/// GRUB's modules that a configuration uses, and those that find its file system in a GPT.
pub(crate) const MODULES: &str =
    "multiboot2 normal fat search serial terminal all_video echo sleep reboot part_gpt";

/// The bytes of a sector, by which GRUB counts.
const SECTOR: usize = 512;
/// How many bytes of the first sector are the loader's. The table of partitions follows.
const BOOT_CODE: usize = 440;
/// Where the first sector has the number of the core's first sector
/// (`GRUB_BOOT_MACHINE_KERNEL_SECTOR` in GRUB's headers).
const KERNEL_SECTOR: usize = 0x5c;
/// Where the first sector has a jump that trusts the BIOS to say from which disk it has started.
/// GRUB replaces it by two NOPs on hard disks, because some do not
/// (`GRUB_BOOT_MACHINE_DRIVE_CHECK`).
const DRIVE_CHECK: usize = 0x66;
const NOPS: [u8; 2] = [0x90, 0x90];
/// Where the core's first sector has the number of its second one.
const CORE_SECOND: usize = 0x1f4;
/// Where Debian has GRUB's parts for a BIOS.
const BIOS_PARTS: &str = "/usr/lib/grub/i386-pc";

/// The number of the system partition in the table of a disk that boots by itself.
pub const SYSTEM_PARTITION: u32 = 2;

/// Checks that the programs that make boot loaders exist. The error names the Debian packages
/// that have them.
pub(crate) fn check_tools() -> Result<()> {
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

/// What GRUB does: it loads the kernel and the modules of the machine, and starts them.
pub(crate) fn configuration(machine: &Machine) -> Result<String> {
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

/// Writes what GRUB loads into `directory`: the configuration, the kernel and the modules.
pub(crate) fn write_files(machine: &Machine, configuration: &str, directory: &Path) -> Result<()> {
    let boot = directory.join("boot");
    fs::create_dir_all(boot.join("grub")).with_context(|| format!("cannot create {}", boot.display()))?;
    for file in machine.files() {
        let name = file.file_name().context("a boot file without a name")?;
        fs::copy(&file, boot.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    fs::write(boot.join("grub/grub.cfg"), configuration).context("cannot write grub.cfg")
}

/// What makes a disk boot by itself.
pub struct Loader {
    /// The first bytes of the disk, before its table of partitions.
    pub boot_code: Vec<u8>,
    /// What the partition for the BIOS's loader begins with.
    pub core: Vec<u8>,
    /// The system partition: a file in the directory that was given.
    pub system: std::path::PathBuf,
}

/// Makes the loader of a disk from which `machine` boots. The core will begin at the sector
/// `core_at`, and the system partition has `size` bytes. Everything is written into `scratch`.
///
/// # Errors
/// A program that makes it is missing or fails, or the files of the machine do not fit.
pub fn loader(machine: &Machine, core_at: u64, size: u64, scratch: &Path) -> Result<Loader> {
    check_tools()?;
    let machine = machine.with_drivers(scratch)?;
    let files = scratch.join("system-files");
    write_files(&machine, &configuration(&machine)?, &files)?;
    let efi = files.join("EFI/BOOT");
    fs::create_dir_all(&efi).with_context(|| format!("cannot create {}", efi.display()))?;
    make_core("x86_64-efi", "/boot/grub", "", &efi.join("BOOTX64.EFI"))?;
    let core = scratch.join("core.img");
    make_core("i386-pc", &format!("(,gpt{SYSTEM_PARTITION})/boot/grub"), "biosdisk", &core)?;
    let core = fs::read(&core).context("reading GRUB's core")?;
    let boot = Path::new(BIOS_PARTS).join("boot.img");
    let boot = fs::read(&boot).with_context(|| format!("reading {}", boot.display()))?;
    let (boot_code, core) = placed(boot, core, core_at)?;
    let system = scratch.join("system.img");
    fs::File::create(&system)?.set_len(size)?;
    let image = |program: &str| {
        let mut command = Command::new(program);
        command.arg("-i").arg(&system);
        command
    };
    let sectors = (size / SECTOR as u64).to_string();
    // It begins after others: programs that read the file system's own idea of that agree.
    command::output(image("mformat").args(["-F", "-v", "MACADAMIA", "-T", &sectors, "::"]))
        .context("making the system partition")?;
    let copied = image("mcopy").arg("-s").args([files.join("boot"), files.join("EFI")]).arg("::").output();
    let copied = copied.context("starting mcopy")?;
    if !copied.status.success() {
        bail!(
            "the kernel and the servers do not fit into a system partition of {} MiB: {}",
            size >> 20,
            String::from_utf8_lossy(&copied.stderr).trim_end()
        );
    }
    Ok(Loader { boot_code, core, system })
}

/// Makes GRUB's core with its modules, for a kind of firmware.
fn make_core(format: &str, prefix: &str, more: &str, output: &Path) -> Result<()> {
    let mut make = Command::new("grub-mkimage");
    make.args(["-O", format, "-p", prefix, "-o"]).arg(output);
    make.args(MODULES.split_whitespace().chain(more.split_whitespace()));
    command::output(&mut make).map(drop).with_context(|| format!("making GRUB for {format}"))
}

/// The boot code and the core of a disk on which the core begins at the sector `at`.
fn placed(mut boot: Vec<u8>, mut core: Vec<u8>, at: u64) -> Result<(Vec<u8>, Vec<u8>)> {
    if boot.len() != SECTOR || core.len() < 2 * SECTOR {
        bail!("GRUB's boot sector or core has another size than was expected");
    }
    boot[KERNEL_SECTOR..KERNEL_SECTOR + 8].copy_from_slice(&at.to_le_bytes());
    boot[DRIVE_CHECK..DRIVE_CHECK + 2].copy_from_slice(&NOPS);
    boot.truncate(BOOT_CODE);
    core[CORE_SECOND..CORE_SECOND + 8].copy_from_slice(&(at + 1).to_le_bytes());
    Ok((boot, core))
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

    #[test]
    fn the_boot_sector_finds_the_core_and_the_core_the_rest_of_it() {
        let (boot, core) = placed(vec![0xeb; SECTOR], vec![7; 3 * SECTOR], 34).unwrap();
        assert_eq!((boot.len(), core.len()), (440, 3 * SECTOR));
        assert_eq!(boot[KERNEL_SECTOR..KERNEL_SECTOR + 8], 34_u64.to_le_bytes());
        assert_eq!(boot[DRIVE_CHECK..DRIVE_CHECK + 2], NOPS);
        assert_eq!(core[CORE_SECOND..CORE_SECOND + 8], 35_u64.to_le_bytes());
        assert!(placed(vec![0; 100], vec![0; 3 * SECTOR], 34).is_err());
    }
}
