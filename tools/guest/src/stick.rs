//! A system of Linux programs that boots by itself, from a stick or a CD: its shells are on the
//! screen and on the first serial port.

use super::session::{Kernel, Start};
use super::{Request, make};
use anyhow::Result;
use mac_build::scratch::Scratch;
use mac_machine::boots::{self, Verdict};
use mac_machine::devices::{CLOCK, KEYBOARD, SCREEN};
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
    let mut run = run.clone();
    run.machine.image = Some(file(&run, &scratch.0)?);
    boots::run(&run)
}

/// Writes the file from which a suite boots into `scratch`.
fn file(run: &Run, scratch: &Path) -> Result<PathBuf> {
    // Files of hundreds of megabytes are made one after the other.
    static MAKING: Mutex<()> = Mutex::new(());
    let _guard = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let image = run.suite.image.as_deref().unwrap_or_default();
    let machine = on_stick(image, &run.suite.packages, run.machine.clone(), scratch)?;
    let file = scratch.join("system.iso");
    image::write(&machine, &file)?;
    Ok(file)
}

/// Puts the system with this image, and with packages in addition, on a machine with a screen and a
/// PC's keyboard. Its configuration is written into `scratch`.
///
/// # Errors
/// The image cannot be made.
pub fn on_stick(name: &str, packages: &[String], machine: Machine, scratch: &Path) -> Result<Machine> {
    let request = Request { name: name.into(), packages: packages.to_vec(), ..Request::default() };
    with_image(make(&request)?.path, machine, scratch)
}

fn with_image(image: PathBuf, mut machine: Machine, scratch: &Path) -> Result<Machine> {
    machine.devices.extend([KEYBOARD, SCREEN, CLOCK]);
    let (kernel, mode) = (Kernel::Macadamia, Mode::Exception);
    let (image, command, environment) = (Some(image), Vec::new(), Vec::new());
    let streams = Default::default();
    let start = Start { kernel, mode, image, command, streams, greet: true, environment, machine };
    start.by_itself(scratch, |configuration| {
        let places = SECOND.into_iter().zip(FIRST);
        places.fold(configuration, |text, (second, first)| text.replace(second, first))
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
