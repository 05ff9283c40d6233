//! Devices that a machine has in addition, each with the server that drives it.

use crate::qemu::{self, Machine};
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

/// The clock that runs while the machine is off.
pub const CLOCK: Device = Device {
    qemu: "",
    program: "rtc",
    server: "server rtc
    program    rtc
    priority   200
    memory     1M
    ports      0x70..0x71
    restart    yes
",
};

/// The names of QEMU's nodes for the contents of the disks.
const DISK_NODES: [&str; 2] = ["disk", "disk1"];

/// The devices that a disk whose contents are this node of QEMU's can be: by [`Controller`].
macro_rules! disk {
    ($node:literal) => {
        [
            Device {
                qemu: concat!("virtio-blk-pci,disable-legacy=on,drive=", $node),
                program: "virtio-blk",
                server: concat!(
                    "server ",
                    $node,
                    "\n    program    virtio-blk\n    priority   200\n    memory     1M\n    dma        256K\n",
                    "    pci        1af4:1042\n    restart    yes\n"
                ),
            },
            Device {
                qemu: concat!("nvme,serial=", $node, ",drive=", $node),
                program: "nvme",
                server: concat!(
                    "server ",
                    $node,
                    "\n    program    nvme\n    priority   200\n    memory     1M\n    dma        128K\n",
                    "    pci        class:010802\n    restart    yes\n"
                ),
            },
        ]
    };
}

/// Disks, whose contents are QEMU's nodes [`DISK_NODES`].
const DISKS: [[Device; 2]; 2] = [disk!("disk"), disk!("disk1")];

/// The device by which a machine reaches a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Controller {
    /// A virtio block device.
    #[default]
    Virtio,
    /// An NVMe controller with one disk.
    Nvme,
}

/// The servers of the files of file systems on disks: each has one file system.
const FILE_SERVERS: [Device; 2] = [
    Device {
        qemu: "",
        program: "ext4",
        server: "server ext4
    program    ext4
    priority   150
    memory     24M
    restart    yes
",
    },
    Device {
        qemu: "",
        program: "ext4",
        server: "server ext41
    program    ext4
    priority   150
    memory     24M
    restart    yes
",
    },
];

/// The drivers that a disk has on which a system boots by itself: it does not know by which device
/// it will be reached. A driver whose device is missing ends.
pub fn of_any_disk() -> [Device; 4] {
    let [virtio, nvme] = [DISKS[0][Controller::Virtio as usize], DISKS[1][Controller::Nvme as usize]];
    [virtio, nvme, FILE_SERVERS[0], FILE_SERVERS[1]]
}

/// The device by which firmware reaches the disk of a machine that boots from one.
pub fn firmware_disk(controller: Controller) -> Device {
    DISKS[0][controller as usize]
}

/// The arguments by which QEMU opens the disk that a machine boots from.
///
/// # Errors
/// As for [`Machine::add_disk`].
pub(crate) fn boot_disk(file: &Path) -> Result<[String; 2]> {
    DiskImage::of(file).arguments(DISK_NODES[0])
}

/// An empty disk that a machine has for itself, as a suite describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScratchDisk {
    /// The size in mebibytes.
    pub size: u64,
    /// Whether a file system on it can be mounted, by a server of its files.
    #[serde(default)]
    pub mountable: bool,
    /// Whether it is made from the suite's image, and the system boots from it. It lasts as long as
    /// the suite, also if the machine starts again.
    #[serde(default)]
    pub root: bool,
    /// By which device the machine reaches it.
    #[serde(default)]
    pub controller: Controller,
    /// What the disk refuses: each a rule of QEMU's `blkdebug`, such as `iotype=read,sector=7`.
    #[serde(default)]
    pub refuses: Vec<String>,
    /// How many power cuts are made from its recorded writes when the suite has ended.
    #[serde(default)]
    pub power_cuts: u32,
    /// Where its writes are recorded.
    #[serde(skip)]
    pub log: Option<PathBuf>,
}

impl ScratchDisk {
    /// The disk, and the file server if there is one.
    pub(crate) fn devices(&self) -> impl Iterator<Item = Device> + use<> {
        [DISKS[0][self.controller as usize]].into_iter().chain(self.mountable.then_some(FILE_SERVERS[0]))
    }

    /// Makes the disk in a directory. Returns the arguments by which QEMU opens it.
    ///
    /// # Errors
    /// The file cannot be made, or its name cannot be written in an option.
    pub(crate) fn make(&self, scratch: &Path) -> Result<[String; 2]> {
        let path = scratch.join("disk.img");
        let file = fs::File::create(&path).with_context(|| format!("making {}", path.display()))?;
        file.set_len(self.size << 20).with_context(|| format!("making {}", path.display()))?;
        let file = crate::qemu::value(&path)?;
        let mut node = format!("driver=raw,node-name={},discard=unmap,file.discard=unmap", DISK_NODES[0]);
        if let Some(log) = &self.log {
            fs::write(log, []).with_context(|| format!("making {}", log.display()))?;
            node = format!("driver=blklogwrites,node-name={},log-sector-size=512", DISK_NODES[0]);
            node += &format!(",file.driver=file,file.filename={file}");
            node += &format!(",log.driver=file,log.filename={}", crate::qemu::value(log)?);
        } else if self.refuses.is_empty() {
            node += &format!(",file.driver=file,file.filename={file}");
        } else {
            node += &format!(",file.driver=blkdebug,file.image.driver=file,file.image.filename={file}");
        }
        for (number, rule) in self.refuses.iter().enumerate() {
            node += &format!(",file.inject-error.{number}.event=none,file.inject-error.{number}.errno=5");
            for word in rule.split(',') {
                node += &format!(",file.inject-error.{number}.{word}");
            }
        }
        Ok(["-blockdev".into(), node])
    }
}

/// An image file that is a machine's disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskImage {
    /// The file, byte for byte what is on the disk.
    pub file: PathBuf,
    /// Whether the disk is read-only.
    pub read_only: bool,
    /// By which device the machine reaches it.
    pub controller: Controller,
}

impl std::str::FromStr for DiskImage {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<DiskImage, Self::Err> {
        let mut disk = DiskImage::of(text);
        loop {
            let file = disk.file.to_string_lossy().into_owned();
            if let Some(file) = file.strip_suffix(",ro") {
                (disk.file, disk.read_only) = (file.into(), true);
            } else if let Some(file) = file.strip_suffix(",nvme") {
                (disk.file, disk.controller) = (file.into(), Controller::Nvme);
            } else {
                return Ok(disk);
            }
        }
    }
}

impl DiskImage {
    /// The image file, of which the machine has a virtio disk that it can write.
    pub fn of(file: impl Into<PathBuf>) -> DiskImage {
        DiskImage { file: file.into(), read_only: false, controller: Controller::Virtio }
    }

    /// Checks that no emulator uses the image.
    ///
    /// # Errors
    /// One does, or the file cannot be opened.
    pub fn check_free(&self) -> Result<()> {
        if is_in_use(&self.file)? {
            bail!("the disk {} is used by another emulator: one at a time can have it", self.file.display());
        }
        Ok(())
    }

    /// The arguments by which QEMU opens the image as the node `node`. It locks the file: another
    /// emulator that opens it, too, is refused, unless both only read.
    ///
    /// # Errors
    /// There is no such file, another emulator uses it, or its name cannot be written in an option.
    fn arguments(&self, node: &str) -> Result<[String; 2]> {
        let file = self.file.canonicalize().with_context(|| format!("the disk {}", self.file.display()))?;
        if !self.read_only {
            self.check_free()?;
        }
        let read_only = if self.read_only { "on" } else { "off" };
        let file = crate::qemu::value(&file)?;
        let node = format!(
            "driver=raw,node-name={node},read-only={read_only},discard=unmap,file.driver=file,file.discard=unmap,\
             file.locking=on,file.filename={file}"
        );
        Ok(["-blockdev".into(), node])
    }
}

/// Whether another process has locked a part of an image file, as QEMU does.
fn is_in_use(file: &Path) -> Result<bool> {
    use rustix::fs::{FlockOperation, fcntl_lock};
    use rustix::io::Errno;
    let opening = || format!("the disk {}", file.display());
    let opened = fs::File::options().read(true).write(true).open(file).with_context(opening)?;
    // A lock that can be had ends when the file is closed.
    match fcntl_lock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(false),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(true),
        Err(error) => Err(error).with_context(opening),
    }
}

impl Machine {
    /// Adds a disk with its driver, and a server for the files of a file system on it. The order of
    /// the calls is that of the disks' names.
    ///
    /// # Errors
    /// There is no such file, another emulator uses it, its name cannot be written in an option, or
    /// the machine has too many disks.
    pub fn add_disk(&mut self, image: &DiskImage) -> Result<()> {
        let is_disk = |device: &&Device| DISKS[0].iter().any(|disk| disk.program == device.program);
        let number = self.devices.iter().filter(is_disk).count();
        let Some(disk) = DISKS.get(number) else { bail!("a machine has {} disks at most", DISKS.len()) };
        self.extra.extend(image.arguments(DISK_NODES[number])?);
        self.devices.extend([disk[image.controller as usize], FILE_SERVERS[number]]);
        Ok(())
    }
}

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
    dma        1M
    screen     yes
    ports      0x3d4..0x3d5
    restart    yes
    arguments  keyboard
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
    ends: Option<&Ends>,
    modules: &mut [(PathBuf, String)],
    scratch: &Path,
) -> Result<()> {
    let configuration =
        modules.iter_mut().find(|(file, _)| file.extension().is_some_and(|name| name == "conf"));
    let Some((file, _)) = configuration else { bail!("a system without root has no drivers of devices") };
    *file = configuration_with(devices, ends, file, scratch)?;
    Ok(())
}

/// Writes the boot configuration of this file, before whose servers the drivers of the devices
/// start, into `scratch`. With `ends`, drivers end again and again. Returns where.
///
/// # Errors
/// It cannot be read or written, or it has no such server that ends.
pub(crate) fn configuration_with(
    devices: &[Device],
    ends: Option<&Ends>,
    file: &Path,
    scratch: &Path,
) -> Result<PathBuf> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let directory = scratch.join("drivers");
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let drivers: String = devices.iter().map(|device| device.server).collect();
    let written = directory.join(file.file_name().context("a file has a name")?);
    let mut text = drivers + &text;
    if let Some(ends) = ends {
        let ending = ends.ending(&text);
        if let Some(server) = ends.server.as_ref().filter(|_| !ending.contains("end-after=")) {
            bail!("{}: there is no server {server} that root starts again", file.display());
        }
        text = ending;
    }
    fs::write(&written, text).with_context(|| format!("writing {}", written.display()))?;
    Ok(written)
}

/// Ends of drivers in the middle of their work, for tests of their clients.
#[derive(Clone, Debug)]
pub struct Ends {
    /// After how many steps of its work a driver ends, as often as root starts it again.
    pub after: u64,
    /// How often a driver ends and is started again. `None`: as often as root starts a server again
    /// that the configuration does not give a number.
    pub times: Option<u32>,
    /// The server that ends. `None`: each one that root starts again.
    pub server: Option<String>,
}

impl Ends {
    /// The boot configuration with the argument by which these drivers end.
    fn ending(&self, text: &str) -> String {
        let mut argument = format!("end-after={}", self.after);
        if let Some(times) = self.times {
            argument += &format!(" end-times={times}");
        }
        let mut ending = String::new();
        // The lines of one server: the first is not indented.
        let lines: Vec<&str> = text.lines().collect();
        for server in lines.chunk_by(|_, next| !next.starts_with("server ")) {
            let mut words = server.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let name = server.first().and_then(|line| line.strip_prefix("server ")).map(str::trim);
            let is_named = self.server.as_deref().is_none_or(|own| name == Some(own));
            let restarts = |words: &[&str]| *words == ["restart", "yes"];
            let ends = is_named && words.any(|words| restarts(&words));
            let has_arguments = |line: &&str| line.trim_start().starts_with("arguments ");
            for line in server {
                let words: Vec<&str> = line.split_whitespace().collect();
                match self.times.filter(|_| ends && restarts(&words)) {
                    Some(times) => ending += &format!("    restart    {times}"),
                    None => ending += line,
                }
                if ends && has_arguments(line) {
                    ending += &format!(" {argument}");
                }
                ending += "\n";
            }
            if ends && !server.iter().any(has_arguments) {
                ending += &format!("    arguments  {argument}\n");
            }
        }
        ending
    }
}

/// The arguments by which QEMU adds the devices.
pub(crate) fn arguments(devices: &[Device]) -> impl Iterator<Item = &'static str> {
    devices.iter().filter(|device| !device.qemu.is_empty()).flat_map(|device| ["-device", device.qemu])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_an_image_file_that_can_be_read_only() {
        let scratch = mac_build::scratch::Scratch::new("disk-image").unwrap();
        let file = scratch.0.join("a, b.img");
        let name = file.display().to_string();
        let disk: DiskImage = format!("{name},ro").parse().unwrap();
        assert_eq!(disk, DiskImage { read_only: true, ..DiskImage::of(&file) });
        let both = DiskImage { read_only: true, controller: Controller::Nvme, ..DiskImage::of(&file) };
        for order in [",ro,nvme", ",nvme,ro"] {
            assert_eq!(format!("{name}{order}").parse(), Ok(both.clone()));
        }
        let error = disk.arguments("disk1").unwrap_err().to_string();
        assert_eq!(error, format!("the disk {name}"), "there is no such file");
        fs::write(&file, "").unwrap();
        let [option, node] = disk.arguments("disk1").unwrap();
        assert_eq!(option, "-blockdev");
        assert!(node.contains(",read-only=on,") && node.ends_with("/a,, b.img"), "{node}");
        let disk: DiskImage = name.parse().unwrap();
        let node = &disk.arguments("disk1").unwrap()[1];
        assert!(node.contains("node-name=disk1,read-only=off,"), "{node}");
        let mut machine = Machine::default();
        machine.add_disk(&both).unwrap();
        machine.add_disk(&disk).unwrap();
        assert!(machine.add_disk(&disk).is_err());
        let servers: Vec<_> =
            machine.devices.iter().filter_map(|device| device.server.lines().next()).collect();
        assert_eq!(servers, ["server disk", "server ext4", "server disk1", "server ext41"]);
    }

    #[test]
    fn a_disk_that_another_emulator_uses_is_refused() {
        let scratch = mac_build::scratch::Scratch::new("disk-in-use").unwrap();
        let file = scratch.0.join("disk.img");
        fs::write(&file, [0; 4096]).unwrap();
        let disk = DiskImage::of(&file);
        assert!(!is_in_use(&file).unwrap());
        let mut qemu = std::process::Command::new(qemu::binary().unwrap());
        // A node that no device uses is not locked.
        qemu.args(["-m", "16M", "-nodefaults", "-display", "none", "-S"]);
        qemu.args(disk.arguments(DISK_NODES[0]).unwrap()).args(["-device", DISKS[0][0].qemu]);
        qemu.stdin(std::process::Stdio::null());
        let mut other = mac_build::scratch::Guard(qemu.spawn().unwrap());
        while !is_in_use(&file).unwrap() {
            assert!(other.0.try_wait().unwrap().is_none(), "the emulator has ended");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let refused = disk.arguments(DISK_NODES[0]).unwrap_err().to_string();
        assert!(refused.ends_with("is used by another emulator: one at a time can have it"), "{refused}");
    }

    #[test]
    fn servers_that_are_started_again_are_told_to_end() {
        let text = "# about\nserver a\n    program  a\n    restart    yes\nserver b\n    arguments  x\n    \
                    restart yes\nserver c\n    arguments  y\n";
        let ends = Ends { after: 7, times: None, server: None };
        let ending = ends.ending(text);
        let added = ending.lines().filter(|line| !text.lines().any(|other| other == *line));
        assert_eq!(added.collect::<Vec<_>>(), ["    arguments  end-after=7", "    arguments  x end-after=7"]);
        assert!(ending.ends_with("server c\n    arguments  y\n"), "{ending}");
        let only = Ends { server: Some("b".into()), ..ends.clone() }.ending(text);
        assert!(only.matches("end-after").count() == 1 && only.contains("x end-after=7"), "{only}");
        let often = Ends { times: Some(9), server: Some("b".into()), ..ends.clone() }.ending(text);
        assert!(often.contains("x end-after=7 end-times=9\n    restart    9\nserver c"), "{often}");
        assert_eq!(often.matches("restart    yes").count(), 1, "a stays as it is: {often}");
        let scratch = mac_build::scratch::Scratch::new("ends").unwrap();
        let file = scratch.0.join("a.conf");
        fs::write(&file, text).unwrap();
        let never = Ends { server: Some("c".into()), ..ends };
        let refused = configuration_with(&[], Some(&never), &file, &scratch.0).unwrap_err().to_string();
        assert!(refused.ends_with("no server c that root starts again"), "{refused}");
    }

    #[test]
    fn a_scratch_disk_is_empty_and_refuses_what_its_suite_says() {
        let scratch = mac_build::scratch::Scratch::new("scratch-disk").unwrap();
        let mut disk = ScratchDisk { size: 3, ..ScratchDisk::default() };
        let [_, node] = disk.make(&scratch.0).unwrap();
        assert_eq!(fs::metadata(scratch.0.join("disk.img")).unwrap().len(), 3 << 20);
        assert!(node.contains(",file.driver=file,file.filename=") && !node.contains("blkdebug"), "{node}");
        let servers = |disk: &ScratchDisk| disk.devices().map(|it| it.server).collect::<Vec<_>>();
        assert_eq!(servers(&disk), [DISKS[0][0].server]);
        disk.mountable = true;
        assert_eq!(servers(&disk), [DISKS[0][0].server, FILE_SERVERS[0].server]);
        disk.refuses = vec!["iotype=read,sector=7".into(), "iotype=flush".into()];
        let [_, node] = disk.make(&scratch.0).unwrap();
        for part in ["0.event=none", "0.errno=5", "0.iotype=read", "0.sector=7", "1.iotype=flush"] {
            assert!(node.contains(&format!(",file.inject-error.{part}")), "{node}");
        }
    }
}
