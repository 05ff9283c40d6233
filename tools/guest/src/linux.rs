//! Debian's own kernel, taken from its package, as the kernel that a guest is compared with.

use super::lock::Lock;
use super::package::Package;
use super::{apt, packages};
use anyhow::{Context, Result};
use mac_build::command;
use mac_machine::qemu::Machine;
use std::path::PathBuf;
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
    let partial = apt::cache().join(format!(".{}-vmlinuz", std::process::id()));
    let script =
        "dpkg-deb --fsys-tarfile \"$1\" | tar --extract --to-stdout --wildcards './boot/vmlinuz-*' >\"$2\"";
    let mut extract = Command::new("sh");
    extract.args(["-c", script, "sh"]).arg(archive).arg(&partial);
    command::run(&mut extract, "taking the kernel out of its package")?;
    std::fs::rename(&partial, file(package)).context("keeping the kernel")?;
    Ok((file(package), name(package)))
}
