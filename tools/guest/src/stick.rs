//! A system of Linux programs that boots by itself, from a stick, a CD or a disk: its shells are on
//! the screen and on the first serial port.

use super::disk::{self, Size};
use super::session::{FIRST_DISK, Kernel, Start};
use super::{Request, make};
use anyhow::{Context, Result, bail};
use mac_build::scratch::Scratch;
use mac_machine::boots::{self, Verdict};
use mac_machine::devices::{self, CLOCK, KEYBOARD, SCREEN};
use mac_machine::image;
use mac_machine::qemu::Machine;
use mac_machine::suites::{Mode, Run};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How the boot configuration names the second serial port, where guests in an emulated machine
/// have their terminal, and the first, which a real machine has.
const SECOND: [&str; 2] = ["interrupt  3\n", "0x2f8..0x2ff"];
const FIRST: [&str; 2] = ["interrupt  4\n", "0x3f8..0x3ff"];

/// Boots a suite whose image is a stick: from a file that is written as `./mac image` writes it.
pub(crate) fn run(run: &Run) -> Result<Verdict> {
    let scratch = Scratch::new(&format!("{}-stick", run.name))?;
    if run.machine.boot.from_disk() {
        return run_disk(run, &scratch.0);
    }
    let mut run = run.clone();
    run.machine.image = Some(file(&run, &scratch.0)?);
    boots::run(&run)
}

/// Boots a suite from a disk that is written as `./mac image --disk` writes it into `scratch`. Its
/// file system must be sound at the end.
fn run_disk(run: &Run, scratch: &Path) -> Result<Verdict> {
    let about = run.suite.root_disk().context("a suite that boots from a disk describes it")?;
    let disk = scratch.join("system.img");
    let (image, packages) = (run.suite.image.clone(), run.suite.packages.clone());
    let options = DiskOptions { size: Some(Size(about.size << 20)), image, packages };
    options.write(&disk, &run.machine.arguments)?;
    let mut booted = run.clone();
    booted.machine.image = Some(disk.clone());
    booted.machine.devices = vec![devices::firmware_disk(about.controller)];
    let mut verdict = boots::run(&booted)?;
    verdict.failures.extend(disk::check_sound(&disk).err().map(|error| format!("{error:#}")));
    Ok(verdict)
}

/// What a disk is to have that boots by itself.
#[derive(Clone, Debug, clap::Args)]
pub struct DiskOptions {
    /// The size of a disk that --disk makes, 8G if none is given; or to which it grows
    #[arg(long, value_name = "SIZE", requires = "disk")]
    size: Option<Size>,
    /// The image of Debian's programs (guests/images.toml) that the system has, if none is named;
    /// default: shell
    #[arg(long, value_name = "NAME", conflicts_with_all = ["system", "bench"])]
    image: Option<String>,
    /// Add these Debian packages and what they depend on
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', conflicts_with_all = ["system", "bench"])]
    packages: Vec<String>,
}

impl DiskOptions {
    /// Writes a disk with the image, which boots by itself; or writes this tree's system to such a
    /// disk that there is, whose files stay. `arguments` are the kernel's.
    ///
    /// # Errors
    /// The file is no disk of ours, or one without partitions for a system, or in use; files are
    /// asked for and it has its own; or it cannot be written. A new file is complete, or not there.
    pub fn write(&self, file: &Path, arguments: &str) -> Result<()> {
        let request = self.request();
        if file.exists() && (self.image.is_some() || !self.packages.is_empty()) {
            bail!(
                "the disk {} has its files already, and only the system on it is replaced: leave out --image and \
                 --packages",
                file.display()
            );
        }
        let system = |root: &str, scratch: &Path| {
            on_disk(root, Machine { arguments: arguments.into(), ..Machine::default() }, scratch)
        };
        if !disk::provide_bootable(file, self.size, &request, &system)? {
            eprintln!("mac: the disk {} has this tree's system now; its files stay", file.display());
        }
        Ok(())
    }

    /// Puts the system with this image on a machine that boots from a stick or a CD. The system's
    /// configuration is written into `scratch`.
    ///
    /// # Errors
    /// The image cannot be made.
    pub fn on_stick(&self, machine: Machine, scratch: &Path) -> Result<Machine> {
        with_image(make(&self.request())?.path, machine, scratch)
    }

    fn request(&self) -> Request {
        let name = self.image.clone().unwrap_or_else(|| "shell".into());
        Request { name, packages: self.packages.clone(), ..Request::default() }
    }
}

/// Writes the file from which a suite boots into `scratch`.
fn file(run: &Run, scratch: &Path) -> Result<PathBuf> {
    // Files of hundreds of megabytes are made one after the other.
    static MAKING: Mutex<()> = Mutex::new(());
    let _guard = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let image = run.suite.image.clone();
    let options = DiskOptions { size: None, image, packages: run.suite.packages.clone() };
    let machine = options.on_stick(run.machine.clone(), scratch)?;
    let file = scratch.join("system.iso");
    image::write(&machine, &file)?;
    Ok(file)
}

fn with_image(image: PathBuf, machine: Machine, scratch: &Path) -> Result<Machine> {
    by_itself(Some(image), machine, scratch, |configuration| configuration)
}

/// Puts the system on a machine that boots from a disk, whose root partition has the GUID `root`.
fn on_disk(root: &str, mut machine: Machine, scratch: &Path) -> Result<Machine> {
    machine.devices.extend(devices::of_any_disk());
    by_itself(None, machine, scratch, |text| text.replace(FIRST_DISK, &format!("root=PARTUUID={root}")))
}

/// Puts the system on a machine with a screen and a PC's keyboard.
fn by_itself(
    image: Option<PathBuf>,
    mut machine: Machine,
    scratch: &Path,
    adapt: impl FnOnce(String) -> String,
) -> Result<Machine> {
    machine.devices.extend([KEYBOARD, SCREEN, CLOCK]);
    let (kernel, mode) = (Kernel::Macadamia, Mode::Exception);
    let (command, environment) = (Vec::new(), Vec::new());
    let streams = Default::default();
    let start = Start { kernel, mode, image, command, streams, greet: true, environment, machine };
    start.by_itself(scratch, |configuration| {
        let places = SECOND.into_iter().zip(FIRST);
        adapt(places.fold(configuration, |text, (second, first)| text.replace(second, first)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stick_has_shells_on_the_first_port_and_on_the_screen() {
        let scratch = Scratch::new("stick").unwrap();
        let machine = with_image("/x/image.cpio".into(), Machine::default(), &scratch.0).unwrap();
        let configuration = std::fs::read_to_string(&machine.elsewhere["boot.conf"]).unwrap();
        for part in ["interrupt  4\n", "0x3f8..0x3ff\n", " env=CONSOLES=tty1,"] {
            assert!(configuration.contains(part), "{part}: {configuration}");
        }
        assert!(!configuration.contains("telnet") && !configuration.contains("0x2f8"));
        assert_eq!(machine.modules.last().unwrap(), "image.cpio");
    }
}
