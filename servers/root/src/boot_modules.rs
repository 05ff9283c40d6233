//! The boot modules and what the boot loader tells, found through the boot info.

use core::slice;
use l4::{kip, sigma0};
use root::executable::PAGE;
use root::modules::Module;
use root::pages;
use x2::Fpage;
use x2::boot_info::{BootInfo, Nodes, Record, Screen};

/// The first boot module for whose file name `is_it` is true. The file name is the end of the first
/// word of the module's command line.
pub(crate) fn find(is_it: impl Fn(&[u8]) -> bool) -> Option<Module> {
    boot_info()?.modules().find_map(|(start, size, command_line)| {
        let program = command_line.split(|&byte| byte == b' ').next()?;
        let file = program.rsplit(|&byte| byte == b'/').next()?;
        if !is_it(file) {
            return None;
        }
        Some(Module { start, content: bytes(start, size)? })
    })
}

/// The NUMA nodes of the machine: which memory and processors belong together. `None` if there is
/// only one node.
pub(crate) fn nodes() -> Option<Nodes<'static>> {
    boot_info()?.records().find_map(|record| match record {
        Record::Nodes(nodes) => Some(nodes),
        _ => None,
    })
}

/// The machine's screen, if it has one.
pub(crate) fn screen() -> Option<Screen> {
    boot_info()?.records().find_map(|record| match record {
        Record::Screen(screen) => Some(screen),
        _ => None,
    })
}

/// The firmware's table of units between devices and memory, if it has one. An empty table stands
/// for one that cannot be read.
pub(crate) fn remapping_table() -> Option<&'static [u8]> {
    boot_info()?.records().find_map(|record| match record {
        Record::Remapping { start, size } => Some(bytes(start, size).unwrap_or_default()),
        _ => None,
    })
}

fn boot_info() -> Option<BootInfo<'static>> {
    let address = kip().word(x2::kip::BOOT_INFO);
    let head = bytes(address, PAGE - address % PAGE)?;
    BootInfo::new(bytes(address, BootInfo::announced_size(head)?)?)
}

/// The content of the physical memory `start .. start + size`.
fn bytes(start: u64, size: u64) -> Option<&'static [u8]> {
    map(start, size)?;
    // SAFETY: `map` has mapped the memory, which is never unmapped, and no code writes to it.
    Some(unsafe { slice::from_raw_parts(start as *const u8, size as usize) })
}

/// Has sigma0 map the physical pages of `start .. start + size` at the same addresses in root's
/// space, in the largest possible pages. Pages that are mapped already stay mapped.
pub(crate) fn map(start: u64, size: u64) -> Option<()> {
    let first = start & !(PAGE - 1);
    let end = start.checked_add(size)?.checked_next_multiple_of(PAGE)?;
    for run in pages::runs(first, first, end - first) {
        for page in 0..u64::from(run.count) {
            let fpage = Fpage::memory(run.address + (page << run.size_log2), run.size_log2);
            // SAFETY: boot info and modules lie outside root's program, so no reference points into
            // these pages.
            unsafe { sigma0::request(fpage) }.ok().filter(|&mapped| mapped)?;
        }
    }
    Some(())
}
