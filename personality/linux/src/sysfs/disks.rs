//! The nodes of disks and partitions in /sys (Linux' Documentation/ABI, sysfs-block).

use super::Content;
use crate::calls::disk::READ_AHEAD;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;
use unix::disk::{Device, SECTOR};
use unix::vfs::DeviceNumber;

/// What of a device the nodes depend on, apart from what never changes.
pub(super) type Place = (String, Range<u64>);

pub(super) fn place(device: &Device) -> Place {
    (device.name(), device.range())
}

/// Adds the nodes of a disk or partition. Without contents, `add` adds the directories of a path
/// only.
pub(super) fn add(device: &Device, add: &mut impl FnMut(&str, Option<Content>)) {
    let (disk, name) = (&device.disk.name, device.name());
    let bus = format!("devices/virtio{}", device.disk.number.minor / unix::disk::MINORS);
    let whole = format!("{bus}/block/{disk}");
    let is_partition = device.partition.is_some();
    let at = if is_partition { format!("{whole}/{name}") } else { whole.clone() };
    let up = if is_partition { "../../../../.." } else { "../../../.." };
    for (file, text) in texts(device) {
        add(&format!("{at}/{file}"), Some(Content::File(text + "\n")));
    }
    for directory in ["holders", "slaves"] {
        if directory == "holders" || !is_partition {
            add(&format!("{at}/{directory}/"), None);
        }
    }
    add(&format!("{at}/subsystem"), Some(Content::Link(format!("{up}/class/block"))));
    let DeviceNumber { major, minor } = device.number();
    add(&format!("class/block/{name}"), Some(Content::Link(format!("../../{at}"))));
    add(&format!("dev/block/{major}:{minor}"), Some(Content::Link(format!("../../{at}"))));
    if !is_partition {
        add(&format!("block/{name}"), Some(Content::Link(format!("../{at}"))));
        add(&format!("{at}/device"), Some(Content::Link("../../../".to_string() + &bus["devices/".len()..])));
        for (file, text) in [("vendor", "0x1af4"), ("device", "0x0002")] {
            add(&format!("{bus}/{file}"), Some(Content::File(format!("{text}\n"))));
        }
    }
}

/// The files of a device, with their texts.
fn texts(device: &Device) -> Vec<(&'static str, String)> {
    let about = &device.disk.about;
    let DeviceNumber { major, minor } = device.number();
    let zeros = ["       0"; 17].concat();
    let read_only = u32::from(about.read_only).to_string();
    let kind = if device.partition.is_some() { "partition" } else { "disk" };
    let event = format!("MAJOR={major}\nMINOR={minor}\nDEVNAME={}\nDEVTYPE={kind}", device.name());
    let mut texts = alloc::vec![
        ("dev", format!("{major}:{minor}")),
        ("size", (device.size() / SECTOR).to_string()),
        ("ro", read_only),
        ("alignment_offset", "0".into()),
        ("discard_alignment", "0".into()),
        ("inflight", "       0        0".into()),
        ("stat", zeros),
    ];
    if let Some(partition) = &device.partition {
        texts.push(("uevent", format!("{event}\nPARTN={}", partition.number)));
        texts.push(("partition", partition.number.to_string()));
        texts.push(("start", (device.range().start / SECTOR).to_string()));
        return texts;
    }
    let granularity = if about.discard > 0 { about.physical } else { 0 };
    texts.extend([
        ("uevent", event),
        ("removable", "0".into()),
        ("hidden", "0".into()),
        ("range", unix::disk::MINORS.to_string()),
        ("ext_range", unix::disk::MINORS.to_string()),
        ("capability", "0".into()),
        ("serial", String::from_utf8_lossy(&about.serial).into_owned()),
        ("cache_type", if about.has_cache { "write back" } else { "write through" }.into()),
        ("queue/logical_block_size", about.logical.to_string()),
        ("queue/hw_sector_size", about.logical.to_string()),
        ("queue/physical_block_size", about.physical.to_string()),
        ("queue/minimum_io_size", about.physical.to_string()),
        ("queue/optimal_io_size", "0".into()),
        ("queue/rotational", "0".into()),
        ("queue/discard_granularity", granularity.to_string()),
        ("queue/discard_max_bytes", about.discard.to_string()),
        ("queue/discard_max_hw_bytes", about.discard.to_string()),
        ("queue/discard_zeroes_data", "0".into()),
        ("queue/read_ahead_kb", (READ_AHEAD * SECTOR / 1024).to_string()),
        ("queue/max_sectors_kb", "128".into()),
        ("queue/nr_requests", "64".into()),
        ("queue/scheduler", "[none]".into()),
        ("queue/zoned", "none".into()),
        ("queue/add_random", "0".into()),
        ("queue/write_cache", if about.has_cache { "write back" } else { "write through" }.into()),
    ]);
    texts
}
