//! Debian's own kernel, taken from its package, as the kernel that a guest is compared with.

use super::lock::Lock;
use super::package::Package;
use super::{apt, packages};
use anyhow::{Context, Result};
use mac_build::command;
use mac_machine::qemu::Machine;
use mac_machine::suites::Suite;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Puts Debian's kernel and the image on a machine. The guest's terminal is the second serial port,
/// or with `terminal_is_first` the first one, which is the console then.
pub(super) fn on(
    machine: &mut Machine,
    image: PathBuf,
    terminal_is_first: bool,
    environment: &[(String, String)],
) -> Result<()> {
    let (kernel, _) = kernel()?;
    // An oops ends the machine immediately. The kernel's check of its timer is switched off,
    // because on a busy host it takes an emulated timer for broken. The last words tell the guest's
    // init where its terminal is, and where to report the status with which it ends.
    let ports = match terminal_is_first {
        false => "console=ttyS0 loglevel=4 LOG=/dev/ttyS0 TERMINAL=/dev/ttyS1",
        // The kernel has one serial console, on which Debian's init speaks, too. Of what the kernel
        // itself says the terminal shows only how it ends.
        true => "console=ttyS0 loglevel=1 LOG=/dev/ttyS1 TERMINAL=/dev/ttyS0",
    };
    machine.arguments = format!(
        "{ports} panic=-1 oops=panic no_timer_check rdinit=/{}{}",
        super::image::INIT,
        environment.iter().map(|(name, value)| format!(" {name}={value}")).collect::<String>()
    );
    machine.foreign = Some((kernel, image));
    Ok(())
}

/// The kernel's file and its package with its version.
pub fn kernel() -> Result<(PathBuf, String)> {
    let lock = Lock::read()?;
    let locked = lock.set("linux")?;
    let locked = locked.first().context("no package has Debian's kernel")?;
    let file = |package: &Package| apt::cache().join(format!("{}_{}.vmlinuz", package.name, package.version));
    let name = |package: &Package| format!("{} {}", package.name, package.version);
    if file(locked).is_file() {
        return Ok((file(locked), name(locked)));
    }
    let provided = packages::provide(&[locked])?;
    let (package, archive) = &provided[0];
    extract(archive, "./boot/vmlinuz-*", &file(package))?;
    Ok((file(package), name(package)))
}

/// Takes one file out of a package, and keeps it as `kept`.
fn extract(archive: &Path, pattern: &str, kept: &Path) -> Result<()> {
    let partial = apt::cache().join(format!(".{}-extracted", std::process::id()));
    let script = "dpkg-deb --fsys-tarfile \"$1\" | tar --extract --to-stdout --wildcards \"$2\" >\"$3\"";
    let mut extract = Command::new("sh");
    extract.args(["-c", script, "sh"]).arg(archive).arg(pattern).arg(&partial);
    command::run(&mut extract, "taking a file out of the kernel's package")?;
    std::fs::rename(&partial, kept).with_context(|| format!("keeping {}", kept.display()))
}

/// The modules of Debian's kernel that every virtio device needs, each after those that it needs.
const VIRTIO: [&str; 5] =
    ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci"];

/// Those of a virtio network device.
const NETWORK: [&str; 3] = ["failover", "net_failover", "virtio_net"];

/// Those of a virtio disk, and of the ext4 file system.
const DISK: [&str; 6] = ["virtio_blk", "crc32c_generic", "crc16", "mbcache", "jbd2", "ext4"];

/// The files of the modules of Debian's kernel that a suite's devices need, and where they are in
/// an image.
pub fn modules(suite: &Suite) -> Result<Vec<(String, PathBuf)>> {
    let (network, disk) = (suite.has_network(), suite.has_disk());
    if !network && !disk {
        return Ok(Vec::new());
    }
    let mut names = VIRTIO.to_vec();
    names.extend(NETWORK.iter().filter(|_| network));
    names.extend(DISK.iter().filter(|_| disk));
    let lock = Lock::read()?;
    let package = lock.set("linux")?.first().copied().context("no package has Debian's kernel")?;
    let kept = |module: &str| apt::cache().join(format!("{}_{}.{module}.ko", package.name, package.version));
    let modules: Vec<_> =
        names.iter().map(|module| (format!("tests/modules/{module}.ko"), kept(module))).collect();
    if !modules.iter().all(|(_, file)| file.is_file()) {
        let provided = packages::provide(&[package])?;
        let (_, archive) = provided.first().context("the kernel's package was not provided")?;
        for (module, (_, file)) in names.iter().zip(&modules) {
            extract(archive, &format!("./lib/modules/*/{module}.ko"), file)?;
        }
    }
    Ok(modules)
}
