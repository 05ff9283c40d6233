//! The registers of a PCI function that root gives to a driver.

use crate::Error;
use crate::capability::{Place, Places};
use crate::mapped::Mapped;
use crate::registers::Part;
use core::ops::Range;
use rt::root::device;
use rt::root::pci::{Function, Region};

/// The size of a page in bytes.
const PAGE: u64 = 4096;
/// The distance in bytes of the mappings of two base address registers.
const DISTANCE: u64 = 1 << 32;

/// Maps the registers of a virtio device. The address space must be empty for 32 GiB from `address`
/// on, which is a multiple of 4096. Blocks until root has answered.
///
/// # Errors
/// `NotModern`: the function is no virtio device of version 1. `Root`: root refuses the function or
/// its memory, with this status.
pub fn open(function: Function, address: u64) -> Result<Mapped, Error> {
    let places = Places::find(|register| Ok(function.configuration(register)?))?;
    let mut mapped: [Option<Range<u64>>; 6] = Default::default();
    for part in Part::ALL {
        let Place { base_address, offset, length } = places.of(part);
        if length == 0 {
            continue;
        }
        let (first, end) = (u64::from(offset), u64::from(offset) + u64::from(length));
        let pages = &mut mapped[usize::from(base_address)];
        let known = pages.clone().unwrap_or(first..end);
        let first = known.start.min(first) & !(PAGE - 1);
        *pages = Some(first..known.end.max(end).next_multiple_of(PAGE));
    }
    for (number, pages) in (0u64..).zip(&mapped) {
        let Some(pages) = pages else { continue };
        let Region::Memory { base, size } = function.region(number)? else { return Err(Error::NotModern) };
        if pages.end > size || pages.end > DISTANCE {
            return Err(Error::NotModern);
        }
        let at = address + number * DISTANCE + pages.start;
        device::map_device(base + pages.start, pages.end - pages.start, at)?;
    }
    let parts = Part::ALL.map(|part| {
        let Place { base_address, offset, length } = places.of(part);
        (address + u64::from(base_address) * DISTANCE + u64::from(offset), length)
    });
    if parts.iter().any(|&(address, length)| length > 0 && !address.is_multiple_of(4)) {
        return Err(Error::NotModern);
    }
    #[allow(unsafe_code, reason = "root has mapped the registers")]
    // SAFETY: root has mapped the memory of the function's base address registers at these
    // addresses, which are multiples of 4, and each part lies within the memory of its register.
    // Root unmaps memory only when it is freed, which this program does not do.
    Ok(unsafe { Mapped::new(parts, places.notify_multiplier) })
}
