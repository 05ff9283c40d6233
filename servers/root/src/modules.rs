//! The boot modules, found through the boot info.

use core::slice;
use l4::{kip, sigma0};
use x2::Fpage;
use x2::boot_info::BootInfo;

/// The content of the first module whose file name, the end of its command line's first word, `is_it`.
pub(crate) fn find(is_it: impl Fn(&[u8]) -> bool) -> Option<&'static [u8]> {
    let address = kip().word(x2::kip::BOOT_INFO);
    let head = bytes(address, 4096 - (address & 0xfff))?;
    let info = BootInfo::new(bytes(address, BootInfo::announced_size(head)?)?)?;
    info.modules().find_map(|(start, size, command_line)| {
        let program = command_line.split(|&byte| byte == b' ').next()?;
        let file = program.rsplit(|&byte| byte == b'/').next()?;
        if is_it(file) { bytes(start, size) } else { None }
    })
}

/// The physical memory `start .. start + size`, which sigma0 maps here idempotently.
fn bytes(start: u64, size: u64) -> Option<&'static [u8]> {
    for page in (start & !0xfff..start.checked_add(size)?).step_by(4096) {
        // SAFETY: boot info and modules lie outside this program.
        unsafe { sigma0::request(Fpage::memory(page, 12)) }.ok().filter(|&mapped| mapped)?;
    }
    // SAFETY: the memory is mapped, stays so, and nobody writes to it.
    Some(unsafe { slice::from_raw_parts(start as *const u8, size as usize) })
}
