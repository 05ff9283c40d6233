//! The files of /sys that describe terminals: those that `login`, `agetty` and scripts of
//! distributions read (Linux' Documentation/ABI, sysfs-tty).

use super::Content;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use unix::devfs::Terminals;
use unix::vfs::DeviceNumber;

/// The nodes below `devices/virtual/tty` and `class/tty`, as path and content.
pub(super) fn nodes(terminals: &Arc<Terminals>) -> Vec<(String, Content)> {
    let mut nodes = Vec::new();
    let mut add = |name: &str, DeviceNumber { major, minor }: DeviceNumber| {
        let directory = format!("devices/virtual/tty/{name}");
        let event = format!("MAJOR={major}\nMINOR={minor}\nDEVNAME={name}\n");
        nodes.push((format!("{directory}/dev"), Content::File(format!("{major}:{minor}\n"))));
        nodes.push((format!("{directory}/uevent"), Content::File(event)));
        nodes.push((format!("class/tty/{name}"), Content::Link(format!("../../{directory}"))));
        directory
    };
    for terminal in terminals.named() {
        add(&terminal.name(), terminal.number());
    }
    for (name, minor) in [("tty", 0), ("ptmx", 2)] {
        add(name, DeviceNumber { major: 5, minor });
    }
    let mut active: Vec<(String, Content)> = Vec::new();
    if let Some(console) = &terminals.console {
        let directory = add("console", DeviceNumber { major: 5, minor: 1 });
        // A virtual console has the name of all of them there.
        let name = match terminals.virtual_consoles.as_ref().and_then(|all| all.number_of(console)) {
            Some(_) => String::from("tty0"),
            None => console.name(),
        };
        active.push((format!("{directory}/active"), Content::File(name + "\n")));
    }
    if let Some(consoles) = &terminals.virtual_consoles {
        let directory = add("tty0", DeviceNumber { major: unix::tty::CONSOLE_MAJOR, minor: 0 });
        let consoles = consoles.clone();
        let visible = move || consoles.visible_terminal().name() + "\n";
        active.push((format!("{directory}/active"), Content::Live(Box::new(visible))));
    }
    nodes.extend(active);
    nodes
}
