//! Describes an emulated machine, and makes the QEMU command line for it.

use crate::devices::{self, Device, Ends, ScratchDisk};
use crate::mapped::{self, Mapped};
use crate::window::{self, Window};
use anyhow::{Context, Result, bail};
use mac_build::{command, kickstart, tree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest QEMU that the tree is tested with.
const OLDEST: (u32, u32) = (7, 2);

/// The processor of emulated machines, feature by feature, so that it is the same under every QEMU.
/// Features that TCG lacks are left out, since QEMU would warn about each. ERMS and FSRM are left
/// out, too: where instructions are counted, a string instruction counts each of its elements, and
/// a kernel that copies by bytes because the processor says that this is fast would seem eight
/// times as expensive as one that copies by words. With KVM the machine has the host's processor.
const PROCESSOR: &str =
    "Haswell,+fsgsbase,+xsave,+pdpe1gb,-erms,-fsrm,-pcid,-invpcid,-x2apic,-tsc-deadline,-hle,-rtm,-spec-ctrl";

/// A variant's name, as the command line and the tables have it.
pub(crate) fn name_of(variant: &impl clap::ValueEnum) -> String {
    variant.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
}

/// How the guest's instructions are executed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Accelerator {
    /// QEMU's own translator: runs everywhere and repeats
    #[default]
    Tcg,
    /// The host's processor: fast, needs a working /dev/kvm
    Kvm,
}

/// How the kernel is loaded into the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Boot {
    /// QEMU's `-kernel` and `-initrd`: Multiboot 1
    #[default]
    Direct,
    /// QEMU's `-kernel` with the loader of `tests/kickstart`, which loads the kernel as Pistachio's
    /// does
    Kickstart,
    /// GRUB from a CD under BIOS: Multiboot 2
    BiosCd,
    /// GRUB from a USB stick under BIOS
    BiosUsb,
    /// GRUB from a CD under UEFI
    UefiCd,
    /// GRUB from a USB stick under UEFI
    UefiUsb,
    /// GRUB from a disk that boots by itself, under BIOS
    BiosDisk,
    /// GRUB from such a disk under UEFI
    UefiDisk,
}

impl Boot {
    /// Whether QEMU loads the files directly, without an image.
    pub fn imageless(self) -> bool {
        matches!(self, Boot::Direct | Boot::Kickstart)
    }

    /// Whether the firmware is UEFI.
    pub fn uefi(self) -> bool {
        matches!(self, Boot::UefiCd | Boot::UefiUsb | Boot::UefiDisk)
    }

    /// Whether the machine's image is a disk, which the system then has.
    pub fn from_disk(self) -> bool {
        matches!(self, Boot::BiosDisk | Boot::UefiDisk)
    }

    fn usb(self) -> bool {
        matches!(self, Boot::BiosUsb | Boot::UefiUsb)
    }
}

/// An emulated machine and the system that boots on it.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// QEMU's machine type: `pc` or `q35`.
    pub model: String,
    /// How many processors the machine has.
    pub cpus: u32,
    /// The size of memory as QEMU writes it: `128M`, `2G`.
    pub memory: String,
    /// How instructions are executed.
    pub accelerator: Accelerator,
    /// How the kernel is loaded.
    pub boot: Boot,
    /// The kernel's command line.
    pub arguments: String,
    /// Module names (files in `target/boot`), each with its arguments after a space.
    pub modules: Vec<String>,
    /// Modules (or `kernel`) whose files are not in `target/boot`, by name.
    pub elsewhere: BTreeMap<String, PathBuf>,
    /// The kernel and initial root file system of another system, which boot instead of Macadamia.
    pub foreign: Option<(PathBuf, PathBuf)>,
    /// The ISO image, or the disk that boots by itself; none if the boot is direct.
    pub image: Option<PathBuf>,
    /// Whether an instruction takes one virtual nanosecond, independently of the wall clock.
    pub icount: bool,
    /// Devices that the machine has in addition. Their drivers are started where the system has
    /// root and is loaded without an image; one that is loaded from an image has its own.
    pub devices: Vec<Device>,
    /// The drivers that end again and again.
    pub ends: Option<Ends>,
    /// File systems that the guest mounts at its start, as the Unix server's option has them.
    pub mounts: Vec<String>,
    /// An empty disk, which each run has for itself.
    pub disk: Option<ScratchDisk>,
    /// Whether the machine has a screen, and where it is seen.
    pub screen: Option<Window>,
    /// Whether the machine has a unit between devices and memory (an IOMMU).
    pub iommu: bool,
    /// Further QEMU arguments.
    pub extra: Vec<String>,
}

impl Machine {
    /// The files that are loaded into the machine: the kernel and its modules.
    pub fn files(&self) -> Vec<PathBuf> {
        let names = self.modules.iter().map(|module| module_name(module));
        std::iter::once("kernel").chain(names).map(|name| self.file(name)).collect()
    }

    /// The file of a module or of the kernel.
    fn file(&self, name: &str) -> PathBuf {
        self.elsewhere.get(name).cloned().unwrap_or_else(|| tree::boot().join(name))
    }

    /// The machine with the drivers of its devices among the modules, and a boot configuration that
    /// starts them, for an image. The configuration is written into `scratch`.
    ///
    /// # Errors
    /// As for [`command`](Self::command).
    pub(crate) fn with_drivers(&self, scratch: &Path) -> Result<Machine> {
        let mut machine = Machine { devices: Vec::new(), ..self.clone() };
        if self.devices.is_empty() && self.ends.is_none() {
            return Ok(machine);
        }
        let names = self.modules.iter().map(|module| module_name(module));
        let Some(name) = names.into_iter().find(|name| name.ends_with(".conf")) else {
            bail!("a system without root has no drivers of devices");
        };
        let written =
            devices::configuration_with(&self.devices, self.ends.as_ref(), &self.file(name), scratch)?;
        machine.elsewhere.insert(name.into(), written);
        machine.modules.extend(self.programs_of_devices());
        Ok(machine)
    }

    /// The modules that are drivers of the machine's devices: each once, since several devices may
    /// have one program.
    fn programs_of_devices(&self) -> Vec<String> {
        let mut programs = Vec::new();
        for device in &self.devices {
            if !programs.iter().any(|program| program == device.program) {
                programs.push(device.program.to_string());
            }
        }
        programs
    }

    /// The QEMU command line, without console and monitor. `scratch` is a private directory for
    /// this run.
    pub fn command(&self, scratch: &Path) -> Result<Command> {
        let mut qemu = command::clean(binary()?);
        // Default devices are left out, because their option ROMs show prompts, which take time.
        qemu.args(["-nodefaults", "-no-user-config", "-no-reboot", "-net", "none"]);
        qemu.args(["-display", window::display(self.screen)?]);
        if self.screen.is_some() {
            qemu.args(["-device", "VGA"]);
        }
        qemu.args(["-machine", &self.model, "-m", &self.memory, "-smp", &self.cpus.to_string()]);
        match self.accelerator {
            Accelerator::Tcg if self.icount => {
                qemu.args(["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", PROCESSOR]);
            }
            Accelerator::Tcg => {
                let threads = if self.cpus > 1 { "tcg,thread=multi" } else { "tcg" };
                qemu.args(["-accel", threads, "-cpu", PROCESSOR]);
            }
            Accelerator::Kvm => {
                if self.icount {
                    bail!("counting instructions needs --accel tcg: KVM cannot");
                }
                check_kvm()?;
                // Interrupts are remapped where QEMU has the I/O APIC, and not KVM.
                let accelerator = if self.iommu { "kvm,kernel-irqchip=split" } else { "kvm" };
                qemu.args(["-accel", accelerator, "-cpu", "host"]);
            }
        }
        if self.iommu {
            if self.model != "q35" {
                bail!("a machine of type {} has no IOMMU: q35 has", self.model);
            }
            // It must be there before the devices, and those of virtio go through it only if they
            // are told to.
            qemu.args(["-device", "intel-iommu,intremap=on"]);
            qemu.args(["-global", "virtio-device.iommu_platform=on"]);
        }
        qemu.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        match (&self.foreign, &self.image) {
            (Some((kernel, root)), _) => {
                qemu.arg("-kernel").arg(kernel).arg("-initrd").arg(root).args(["-append", &self.arguments]);
                qemu.args(devices::arguments(&self.devices));
            }
            (None, None) => self.direct(&mut qemu, scratch)?,
            (None, Some(image)) => self.disk(&mut qemu, image, scratch)?,
        }
        if let Some(disk) = &self.disk {
            qemu.args(disk.make(scratch)?);
        }
        qemu.args(&self.extra);
        Ok(qemu)
    }

    fn direct(&self, qemu: &mut Command, scratch: &Path) -> Result<()> {
        let remapping = if self.iommu { " interrupt-remapping" } else { "" };
        let arguments = format!("{}{remapping}", self.arguments);
        let (first, arguments, mut modules) = match self.boot {
            Boot::Kickstart => ("kickstart", "", vec![format!("kernel {arguments}")]),
            _ => ("kernel", arguments.trim(), Vec::new()),
        };
        modules.extend(self.modules.iter().cloned());
        modules.extend(self.programs_of_devices());
        qemu.arg("-kernel").arg(present(self.file(first))?);
        if modules.is_empty() {
            qemu.args(["-append", arguments]);
            return Ok(());
        }
        let mut files = Vec::new();
        for module in &modules {
            let name = module_name(module);
            let mut path = present(self.file(name))?;
            if self.boot == Boot::Kickstart {
                path = kickstart::stripped(&path, scratch)?;
            }
            files.push((path, module[name.len()..].to_string()));
        }
        if !self.devices.is_empty() || self.ends.is_some() {
            devices::with_drivers(&self.devices, self.ends.as_ref(), &mut files, scratch)?;
            qemu.args(devices::arguments(&self.devices));
        }
        let mapped = match self.boot {
            Boot::Kickstart => Vec::new(),
            _ => mapped::take(&mut files, &self.memory),
        };
        let options: String = mapped.iter().map(Mapped::option).collect();
        qemu.arg("-append").arg((arguments.to_string() + &options).trim());
        qemu.args(mapped::arguments(&mapped, &self.memory)?);
        let list = files.iter().map(|(path, arguments)| module_option(path, arguments));
        let list = list.collect::<Result<Vec<_>>>()?;
        qemu.args(["-initrd", &list.join(",")]);
        Ok(())
    }

    fn disk(&self, qemu: &mut Command, image: &Path, scratch: &Path) -> Result<()> {
        if self.boot.uefi() {
            let (code, variables) = firmware()?;
            let fresh = scratch.join("uefi-variables.fd");
            std::fs::copy(variables, &fresh).context("copying the firmware's variables")?;
            let flash = |file: &Path, more: &str| {
                Ok::<_, anyhow::Error>(format!("if=pflash,format=raw,file={}{more}", value(file)?))
            };
            qemu.args(["-drive", &flash(&code, ",readonly=on")?, "-drive", &flash(&fresh, "")?]);
        }
        if self.boot.from_disk() {
            qemu.args(devices::boot_disk(image)?).args(devices::arguments(&self.devices));
            return Ok(());
        }
        let drive = format!("if=none,id=boot,format=raw,readonly=on,file={}", value(image)?);
        qemu.args(["-drive", &drive]);
        if self.boot.usb() {
            qemu.args(["-device", "qemu-xhci", "-device", "usb-storage,drive=boot,bootindex=0"]);
        } else {
            qemu.args(["-device", "ide-cd,drive=boot,bootindex=0"]);
        }
        Ok(())
    }
}

/// The name of a module without its arguments.
pub fn module_name(module: &str) -> &str {
    module.split_once(' ').map_or(module, |(name, _)| name)
}

/// A path as a value in one of QEMU's options: these are separated by commas, and a comma inside a
/// value is doubled.
pub fn value(path: &Path) -> Result<String> {
    let path = path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
    Ok(path.replace(',', ",,"))
}

/// A module in QEMU's list: its file, and its arguments, which begin with a blank. QEMU takes
/// everything after the first blank for arguments, so the path must have no blank. QEMU is started
/// in the root of the tree, and files of the tree are named relative to it, since their paths there
/// have no blanks.
fn module_option(file: &Path, arguments: &str) -> Result<String> {
    let file = value(file.strip_prefix(tree::root()).unwrap_or(file))?;
    if file.contains(' ') {
        bail!("QEMU loads no module whose path has a blank: {file:?} (is TMPDIR such a path?)");
    }
    Ok(file + &arguments.replace(',', ",,"))
}

fn present(file: PathBuf) -> Result<PathBuf> {
    if !file.is_file() {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        bail!("no program of the tree is called {name:?} (looked for {})", file.display());
    }
    Ok(file)
}

/// The emulator, if it exists and is new enough. The check is made once in each process.
pub(crate) fn binary() -> Result<&'static Path> {
    use std::sync::OnceLock;
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let path = command::find("qemu-system-x86_64")
            .ok_or("qemu-system-x86_64 is not installed (Debian: apt-get install qemu-system-x86)")?;
        let said =
            command::output(Command::new(&path).arg("--version")).map_err(|error| format!("{error:#}"))?;
        match version(&said) {
            Some(version) if version >= OLDEST => Ok(path),
            Some((major, minor)) => Err(format!(
                "{} is version {major}.{minor}; at least {}.{} is needed",
                path.display(),
                OLDEST.0,
                OLDEST.1
            )),
            None => Err(format!("{} does not say its version: {said:?}", path.display())),
        }
    });
    found.as_deref().map_err(|error| anyhow::anyhow!("{error}"))
}

/// The version that the emulator prints, in one line.
pub fn version_line() -> Result<String> {
    let said = command::output(Command::new(binary()?).arg("--version"))?;
    Ok(said.lines().next().unwrap_or_default().to_string())
}

/// Major and minor from `QEMU emulator version 7.2.22 (...)`.
fn version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.split_once("version ")?.1.split(['.', ' ', '(']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// An error if KVM cannot be used.
fn check_kvm() -> Result<()> {
    let device = std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm");
    device.map(drop).context(
        "--accel kvm: /dev/kvm cannot be opened; it is there if the host has virtualisation and the module \
         kvm is loaded, and for the members of its group (usually kvm)",
    )
}

/// The UEFI firmware: code and empty variables.
fn firmware() -> Result<(PathBuf, PathBuf)> {
    let places = [
        ("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"),
        ("/usr/share/OVMF/OVMF_CODE.fd", "/usr/share/OVMF/OVMF_VARS.fd"),
        ("/usr/share/edk2/ovmf/OVMF_CODE.fd", "/usr/share/edk2/ovmf/OVMF_VARS.fd"),
        ("/usr/share/edk2/x64/OVMF_CODE.4m.fd", "/usr/share/edk2/x64/OVMF_VARS.4m.fd"),
    ];
    let found = places
        .into_iter()
        .find(|(code, variables)| Path::new(code).is_file() && Path::new(variables).is_file());
    let Some((code, variables)) = found else {
        bail!("no UEFI firmware for QEMU found (Debian: apt-get install ovmf)");
    };
    Ok((code.into(), variables.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_qemu_says() {
        assert_eq!(version("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)"), Some((7, 2)));
        assert_eq!(version("QEMU emulator version 10.0.0"), Some((10, 0)));
        assert_eq!(version("something else"), None);
    }

    #[test]
    fn a_module_of_a_tree_with_blanks_and_commas_in_its_path_is_loaded() {
        let option = |file: &Path| module_option(file, " a=1,2 b");
        assert_eq!(option(&tree::boot().join("root")).unwrap(), "target/boot/root a=1,,2 b");
        assert_eq!(option(Path::new("/x,y/z")).unwrap(), "/x,,y/z a=1,,2 b");
        assert!(option(Path::new("/x y/z")).is_err());
    }

    #[test]
    fn a_comma_in_a_path_does_not_end_an_option() {
        let mut machine = crate::systems::Hardware::plain().machine();
        machine.boot = Boot::UefiCd;
        let mut qemu = Command::new("qemu");
        let scratch = mac_build::scratch::Scratch::new("a, comma").unwrap();
        let scratch = scratch.0.join("a, b");
        std::fs::create_dir_all(&scratch).unwrap();
        machine.disk(&mut qemu, Path::new("/x, y/image.iso"), &scratch).unwrap();
        let options: Vec<_> = qemu.get_args().map(|option| option.to_string_lossy().into_owned()).collect();
        assert!(options.iter().any(|option| option.ends_with(",file=/x,, y/image.iso")), "{options:?}");
        assert!(options.iter().any(|option| option.ends_with("/a,, b/uefi-variables.fd")), "{options:?}");
    }

    #[test]
    fn a_device_comes_with_its_driver() {
        let scratch = mac_build::scratch::Scratch::new("devices").unwrap();
        let file = |name: &str, text: &str| {
            let path = scratch.0.join(name);
            std::fs::write(&path, text).unwrap();
            (name.to_string(), path)
        };
        let mut machine = crate::systems::Hardware::plain().machine();
        machine.boot = Boot::Direct;
        machine.modules = vec!["root".into(), "boot.conf".into()];
        let conf = "server unix\n    program unix\n";
        let files = [("kernel", ""), ("root", ""), ("boot.conf", conf), (devices::ENTROPY.program, "")];
        machine.elsewhere = files.map(|(name, text)| file(name, text)).into();
        let options = |machine: &Machine| {
            let mut qemu = Command::new("qemu");
            machine.direct(&mut qemu, &scratch.0).unwrap();
            let options = qemu.get_args().map(|option| option.to_string_lossy().into_owned());
            options.collect::<Vec<_>>()
        };
        assert!(!options(&machine).iter().any(|option| option == "-device"));
        machine.devices = vec![devices::ENTROPY];
        // A machine can be started more than once.
        for options in [options(&machine), options(&machine)] {
            assert!(options.windows(2).any(|pair| pair == ["-device", devices::ENTROPY.qemu]));
            let modules: Vec<&str> = options.last().unwrap().split(',').collect();
            let [root, written, driver] = modules[..] else { panic!("{modules:?}") };
            assert!(root.ends_with("/root") && driver.ends_with("/virtio-rng"));
            let text = std::fs::read_to_string(written).unwrap();
            assert_eq!(text, devices::ENTROPY.server.to_string() + conf);
        }
        machine.modules.pop();
        let error = machine.direct(&mut Command::new("qemu"), &scratch.0).unwrap_err();
        assert!(error.to_string().contains("without root"), "{error}");
    }

    #[test]
    fn a_module_is_named_by_its_first_word() {
        assert_eq!(module_name("sigma0"), "sigma0");
        assert_eq!(module_name("root a=1,2 b"), "root");
    }
}
