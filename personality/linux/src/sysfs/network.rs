//! The nodes of interfaces of the network in /sys (Linux' Documentation/ABI, sysfs-class-net).
//! Their texts are made when they are read.

use super::Content;
use crate::layout::interface::{device_type, flags, state};
use crate::procfs::network::hardware_address;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use inet::{Counters, Interface, InterfaceIndex};
use unix::network::Network;

/// What of the interfaces the nodes depend on.
pub(super) type Place = (InterfaceIndex, String);

/// A file of an interface: its name, and its text.
type File = (&'static str, fn(&Interface) -> String);

/// The files that each interface has.
const FILES: [File; 20] = [
    ("addr_assign_type", |_| "0".into()),
    ("addr_len", |_| "6".into()),
    ("address", |interface| hardware_address(interface.mac)),
    ("broadcast", |interface| hardware_address(if interface.loopback { [0; 6] } else { [0xff; 6] })),
    ("carrier", |interface| u8::from(interface.up && interface.link).to_string()),
    ("dev_id", |_| "0x0".into()),
    ("dev_port", |_| "0".into()),
    ("dormant", |_| "0".into()),
    ("flags", |interface| format!("{:#x}", flags(interface) & 0xffff)),
    ("ifalias", |_| String::new()),
    ("ifindex", |interface| interface.index.0.to_string()),
    ("iflink", |interface| interface.index.0.to_string()),
    ("link_mode", |_| "0".into()),
    ("mtu", |interface| interface.mtu.to_string()),
    ("netdev_group", |_| "0".into()),
    ("operstate", |interface| {
        match state(interface) {
            0 => "unknown",
            6 => "up",
            _ => "down",
        }
        .into()
    }),
    ("testing", |_| "0".into()),
    ("tx_queue_len", |_| "1000".into()),
    ("type", |interface| device_type(interface).to_string()),
    ("uevent", |interface| format!("INTERFACE={}\nIFINDEX={}", interface.name, interface.index.0)),
];

/// The files that only interfaces with a device have. Its speed is not known.
const OF_DEVICES: [File; 2] = [("duplex", |_| "unknown".into()), ("speed", |_| "-1".into())];

/// How a number is found among an interface's counters.
type Count = fn(&Counters) -> u64;

/// The files of what went through an interface. Those that Linux has in addition are 0.
const COUNTERS: [(&str, Count); 9] = [
    ("multicast", |counters| counters.received_multicast),
    ("rx_bytes", |counters| counters.received_bytes),
    ("rx_dropped", |counters| counters.received_drops),
    ("rx_errors", |counters| counters.received_errors),
    ("rx_packets", |counters| counters.received_packets),
    ("tx_bytes", |counters| counters.sent_bytes),
    ("tx_dropped", |counters| counters.sent_drops),
    ("tx_errors", |counters| counters.sent_errors),
    ("tx_packets", |counters| counters.sent_packets),
];
const ZEROS: [&str; 15] = [
    "collisions",
    "rx_compressed",
    "rx_crc_errors",
    "rx_fifo_errors",
    "rx_frame_errors",
    "rx_length_errors",
    "rx_missed_errors",
    "rx_nohandler",
    "rx_over_errors",
    "tx_aborted_errors",
    "tx_carrier_errors",
    "tx_compressed",
    "tx_fifo_errors",
    "tx_heartbeat_errors",
    "tx_window_errors",
];

/// The interfaces that there are now.
pub(super) fn places(network: &Network) -> alloc::vec::Vec<Place> {
    network.interface_names()
}

/// Adds the nodes of an interface. Without contents, `add` adds the directories of a path only.
pub(super) fn add(network: &Arc<Network>, place: &Place, add: &mut impl FnMut(&str, Option<Content>)) {
    let (index, name) = place;
    let is_loopback = index.0 == 1;
    let at = format!("devices/virtual/net/{name}");
    let live = |text: Box<dyn Fn(&Interface) -> String + Send + Sync>| {
        let (network, index) = (network.clone(), *index);
        let live = move || {
            let known = network.with(|stack| stack.interface(index));
            // A file that was found before the interface went away is empty.
            known.map_or_else(String::new, |known| text(&known) + "\n")
        };
        Some(Content::Live(Box::new(live)))
    };
    let of_device = OF_DEVICES.iter().filter(|_| !is_loopback);
    for (file, text) in FILES.iter().chain(of_device) {
        add(&format!("{at}/{file}"), live(Box::new(text)));
    }
    for (file, value) in &COUNTERS {
        let text = |interface: &Interface| value(&interface.counters).to_string();
        add(&format!("{at}/statistics/{file}"), live(Box::new(text)));
    }
    for file in ZEROS {
        add(&format!("{at}/statistics/{file}"), Some(Content::File("0\n".into())));
    }
    for queue in ["rx-0", "tx-0"] {
        add(&format!("{at}/queues/{queue}/"), None);
    }
    add(&format!("{at}/subsystem"), Some(Content::Link("../../../../class/net".into())));
    add(&format!("class/net/{name}"), Some(Content::Link(format!("../../{at}"))));
}
