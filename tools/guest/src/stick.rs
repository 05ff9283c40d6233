//! A system of Linux programs that boots by itself, from a stick or a CD: its shells are on the screen
//! and on the first serial port.

use super::session::{Kernel, Start};
use super::{Request, make};
use anyhow::Result;
use mac_machine::qemu::Machine;
use mac_machine::suites::Mode;
use std::path::Path;

/// How the boot configuration names the second serial port, where guests in an emulated machine have
/// their terminal, and the first, which a real machine has.
const SECOND: [&str; 2] = ["interrupt  3\n", "0x2f8..0x2ff"];
const FIRST: [&str; 2] = ["interrupt  4\n", "0x3f8..0x3ff"];

/// Puts the system with this image, and with packages in addition, on a machine. Its configuration
/// is written into `scratch`.
///
/// # Errors
/// The image cannot be made.
pub fn on_stick(name: &str, packages: &[String], machine: Machine, scratch: &Path) -> Result<Machine> {
    let request = Request { name: name.into(), packages: packages.to_vec(), ..Request::default() };
    let start = Start {
        kernel: Kernel::Macadamia,
        mode: Mode::Exception,
        image: make(&request)?.path,
        command: Vec::new(),
        greet: true,
        environment: Vec::new(),
        machine,
    };
    start.by_itself(scratch, |configuration| {
        let places = SECOND.into_iter().zip(FIRST);
        places.fold(configuration, |text, (second, first)| text.replace(second, first))
    })
}
