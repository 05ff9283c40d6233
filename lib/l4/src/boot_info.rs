//! The part of the boot info that a root task needs: its command line.

use crate::{kip, sigma0};
use x2::Fpage;
use x2::boot_info::{BootInfo, HEADER_SIZE, Record};

/// Copies this program's command line from the boot info into `copy`, and returns it; empty if
/// there is none. The boot info's record of this program is found by its entry address. A copy is
/// made because tests may unmap the boot info.
pub fn command_line(copy: &mut [u8; 1024]) -> &[u8] {
    let address = kip().word(x2::kip::BOOT_INFO);
    let entry = kip().word(x2::kip::ROOT + x2::kip::server::IP);
    let left = 4096 - (address & 0xfff) as usize;
    if address == 0 || !address.is_multiple_of(8) || left < HEADER_SIZE {
        return &[];
    }
    // SAFETY: boot info lies outside this program, so no Rust object is replaced.
    if !matches!(unsafe { sigma0::request(Fpage::memory(address, 12)) }, Ok(true)) {
        return &[];
    }
    // SAFETY: the page has been mapped, and no program writes to it.
    let bytes = unsafe { core::slice::from_raw_parts(address as *const u8, left) };
    let line = BootInfo::new(bytes).and_then(|info| {
        info.records().find_map(|record| match record {
            Record::SimpleExec { program, command_line } if program.initial_ip == entry => Some(command_line),
            _ => None,
        })
    });
    let line = line.unwrap_or_default();
    let copy = &mut copy[..line.len()];
    copy.copy_from_slice(line);
    copy
}
