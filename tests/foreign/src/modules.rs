//! Finds the boot modules through the boot info.

use core::slice;
use l4::{kip, sigma0};
use x2::Fpage;
use x2::boot_info::BootInfo;

/// The content of the module whose command line's first word ends in `name`.
pub(crate) fn find(name: &str) -> Option<&'static [u8]> {
    let address = kip().word(x2::kip::BOOT_INFO);
    let info = BootInfo::new(bytes(address, 4096 - (address & 0xfff))?)?;
    info.modules().find_map(|(start, size, command_line)| {
        let program = command_line.split(|&byte| byte == b' ').next()?;
        let file = program.rsplit(|&byte| byte == b'/').next()?;
        if file == name.as_bytes() { bytes(start, size) } else { None }
    })
}

/// The content of the physical memory `start .. start + size`. sigma0 maps it here; pages that are
/// mapped already stay mapped.
fn bytes(start: u64, size: u64) -> Option<&'static [u8]> {
    for page in (start & !0xfff..start + size).step_by(4096) {
        // SAFETY: boot info and modules lie outside this program, so no Rust object is replaced.
        unsafe { sigma0::request(Fpage::memory(page, 12)) }.ok().filter(|&mapped| mapped)?;
    }
    // SAFETY: the memory is mapped and never unmapped, and no program writes to it.
    Some(unsafe { slice::from_raw_parts(start as *const u8, size as usize) })
}
