//! Devices that a machine has in addition, each with the server that drives it.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// A device of the machine and its driver.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// QEMU's description of the device; empty: every machine has it, or another option adds it.
    pub(crate) qemu: &'static str,
    /// The module that is the driver's program.
    pub(crate) program: &'static str,
    /// The lines of the boot configuration that make root start the driver.
    pub(crate) server: &'static str,
}

impl Device {
    /// Whether it is the screen.
    pub fn is_screen(&self) -> bool {
        self.program == SCREEN.program
    }
}

/// A source of random bytes, from which the Unix server seeds its own.
pub const ENTROPY: Device = Device {
    qemu: "virtio-rng-pci,disable-legacy=on",
    program: "virtio-rng",
    server: "server entropy
    program    virtio-rng
    priority   200
    memory     1M
    dma        4K
    pci        1af4:1044
    restart    yes
",
};

/// The keyboard of a PC.
pub const KEYBOARD: Device = Device {
    qemu: "",
    program: "ps2",
    server: "server keyboard
    program    ps2
    priority   200
    memory     1M
    ports      0x60..0x60
    ports      0x64..0x64
    interrupt  1
    restart    yes
",
};

/// The screen that the loader has set up, with virtual consoles at which the keyboard types.
pub const SCREEN: Device = Device {
    qemu: "",
    program: "screen",
    server: "server screen
    program    screen
    priority   200
    memory     12M
    screen     yes
    ports      0x3d4..0x3d5
    arguments  keyboard
",
};

/// Writes a boot configuration that also starts the drivers of the devices, which come before the
/// other servers, into `scratch`. `modules` are the files of the modules with their arguments.
///
/// # Errors
/// There is no boot configuration among the modules, or it cannot be read or written.
pub(crate) fn with_drivers(
    devices: &[Device],
    modules: &mut [(PathBuf, String)],
    scratch: &Path,
) -> Result<()> {
    let configuration =
        modules.iter_mut().find(|(file, _)| file.extension().is_some_and(|name| name == "conf"));
    let Some((file, _)) = configuration else { bail!("a system without root has no drivers of devices") };
    *file = configuration_with(devices, file, scratch)?;
    Ok(())
}

/// Writes the boot configuration of this file, before whose servers the drivers of the devices
/// start, into `scratch`. Returns where.
///
/// # Errors
/// It cannot be read or written.
pub(crate) fn configuration_with(devices: &[Device], file: &Path, scratch: &Path) -> Result<PathBuf> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let directory = scratch.join("drivers");
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let drivers: String = devices.iter().map(|device| device.server).collect();
    let written = directory.join(file.file_name().context("a file has a name")?);
    fs::write(&written, drivers + &text).with_context(|| format!("writing {}", written.display()))?;
    Ok(written)
}

/// The arguments by which QEMU adds the devices.
pub(crate) fn arguments(devices: &[Device]) -> impl Iterator<Item = &'static str> {
    devices.iter().filter(|device| !device.qemu.is_empty()).flat_map(|device| ["-device", device.qemu])
}
