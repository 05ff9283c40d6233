//! Device memory that root's configuration gives the server. The server maps it in one place of its
//! own space, so that it can enter the pages into programs' spaces. It never accesses them itself.
//!
//! Pages are cached as in sigma0's and root's mappings of them; [`mach::machine::Caching`] has no
//! effect.

use alloc::vec::Vec;

use rt::root::device;

/// The address in the server's space that stands for physical address 0 of device memory.
const DEVICES: u64 = 0x2000_0000_0000;

/// The ranges of device memory, as (first physical address, bytes). Each is mapped at [`DEVICES`]
/// plus its physical address.
pub(crate) struct Devices(Vec<(u64, u64)>);

impl Devices {
    /// Has root map all device memory that the configuration gives. Ranges that the machine does
    /// not have, or that overlap others, are left out.
    pub(crate) fn map() -> Self {
        let given = (0..).map_while(device::device_memory);
        let map =
            |&(physical, size): &(u64, u64)| device::map_device(physical, size, DEVICES + physical).is_ok();
        Self(given.filter(|&(physical, _)| physical < DEVICES).filter(map).collect())
    }

    /// The address in the server's space of the device page at a physical address.
    pub(crate) fn address(&self, physical: u64) -> Option<u64> {
        let is_there = |&(start, size): &(u64, u64)| physical >= start && physical - start < size;
        self.0.iter().any(is_there).then(|| DEVICES + physical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_given_device_memory_is_found() {
        let devices = Devices(alloc::vec![(0xb_8000, 0x1000), (0xfed0_0000, 0x2000)]);
        for (physical, there) in [
            (0, false),
            (0xb_7000, false),
            (0xb_8000, true),
            (0xb_9000, false),
            (0xfed0_1000, true),
            (0xfed0_2000, false),
            (0xffff_ffff_ffff_f000, false),
        ] {
            assert_eq!(devices.address(physical), there.then(|| DEVICES + physical), "{physical:#x}");
        }
    }
}
