//! Devices that a machine has in addition, each with the server that drives it.

use crate::qemu;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// A device of the machine and its driver.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// QEMU's description of the device.
    pub(crate) qemu: &'static str,
    /// The module that is the driver's program.
    pub(crate) program: &'static str,
    /// The lines of the boot configuration that make root start the driver.
    pub(crate) server: &'static str,
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

/// Streams of bytes to and from the host. Each is a port that [`stream`] adds.
pub const STREAMS: Device = Device {
    qemu: "virtio-serial-pci,id=streams,max_ports=4,disable-legacy=on",
    program: "virtio-console",
    server: "server streams
    program    virtio-console
    priority   200
    memory     2M
    dma        520K
    pci        1af4:1043
    restart    yes
",
};

/// QEMU's arguments for the stream of this number, below 3, which QEMU connects to the Unix socket
/// `socket`. The machine must have [`STREAMS`].
pub fn stream(number: usize, socket: &Path) -> Result<[String; 4]> {
    let channel = format!("socket,id=stream{number},path={}", qemu::value(socket)?);
    // Port 0 is for a console.
    let port = format!("virtserialport,bus=streams.0,nr={},chardev=stream{number}", number + 1);
    Ok(["-chardev".into(), channel, "-device".into(), port])
}

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
    let text = fs::read_to_string(&*file).with_context(|| format!("reading {}", file.display()))?;
    let directory = scratch.join("drivers");
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let drivers: String = devices.iter().map(|device| device.server).collect();
    *file = directory.join(file.file_name().context("a file has a name")?);
    fs::write(&*file, drivers + &text).with_context(|| format!("writing {}", file.display()))
}

/// The arguments by which QEMU adds the devices.
pub(crate) fn arguments(devices: &[Device]) -> impl Iterator<Item = &'static str> {
    devices.iter().flat_map(|device| ["-device", device.qemu])
}
