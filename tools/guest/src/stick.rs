//! A system of Linux programs that boots by itself, from a stick or a CD: its shells are on the
//! screen and on the first serial port.

use super::session::{Kernel, Start};
use super::{Request, make};
use anyhow::Result;
use mac_machine::qemu::Machine;
use mac_machine::suites::Mode;
use std::path::{Path, PathBuf};

/// How the boot configuration names the second serial port, where guests in an emulated machine
/// have their terminal, and the first, which a real machine has.
const SECOND: [&str; 2] = ["interrupt  3\n", "0x2f8..0x2ff"];
const FIRST: [&str; 2] = ["interrupt  4\n", "0x3f8..0x3ff"];

/// Puts the system with this image, and with packages in addition, on a machine. Its configuration
/// is written into `scratch`.
///
/// # Errors
/// The image cannot be made.
pub fn on_stick(name: &str, packages: &[String], machine: Machine, scratch: &Path) -> Result<Machine> {
    let request = Request { name: name.into(), packages: packages.to_vec(), ..Request::default() };
    with_image(make(&request)?.path, machine, scratch)
}

fn with_image(image: PathBuf, machine: Machine, scratch: &Path) -> Result<Machine> {
    let (kernel, mode) = (Kernel::Macadamia, Mode::Exception);
    let (command, environment) = (Vec::new(), Vec::new());
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
    use mac_build::scratch::Scratch;
    use mac_machine::devices::{KEYBOARD, SCREEN};

    #[test]
    fn a_stick_has_shells_on_the_first_port_and_on_the_screen() {
        let scratch = Scratch::new("stick").unwrap();
        let machine = Machine { devices: vec![KEYBOARD, SCREEN], ..Machine::default() };
        let machine = with_image("/x/image.cpio".into(), machine, &scratch.0).unwrap();
        let configuration = std::fs::read_to_string(&machine.elsewhere["boot.conf"]).unwrap();
        for part in ["interrupt  4\n", "0x3f8..0x3ff\n", " env=CONSOLES=tty1,"] {
            assert!(configuration.contains(part), "{part}: {configuration}");
        }
        assert!(!configuration.contains("telnet") && !configuration.contains("0x2f8"));
        assert_eq!(machine.modules.last().unwrap(), "image.cpio");
    }
}
