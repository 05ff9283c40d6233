//! Access to registers that are mapped into the driver's memory.
#![allow(unsafe_code, reason = "a device's registers are not Rust objects")]

use crate::registers::{Part, Registers, Width};

/// The registers of a device, which are mapped at addresses of this program.
#[derive(Debug)]
pub struct Mapped {
    /// The address, and the length in bytes, of each part.
    parts: [(u64, u32); Part::ALL.len()],
    notify_multiplier: u32,
}

impl Mapped {
    /// Makes access to the registers in `parts`: the address and the length in bytes of each part,
    /// in the order of [`Part::ALL`].
    ///
    /// # Safety
    /// For the whole lifetime of the program, each range must be mapped, uncached, and lead to
    /// registers of one virtio device. Each part that is not empty must begin at a multiple of 4.
    pub unsafe fn new(parts: [(u64, u32); Part::ALL.len()], notify_multiplier: u32) -> Mapped {
        Mapped { parts, notify_multiplier }
    }

    /// The address of a register; `None`: the part is too short for it.
    fn address(&self, part: Part, offset: u32, width: Width) -> Option<u64> {
        let (address, length) = self.parts[part as usize];
        let is_inside = offset.checked_add(width.bytes()).is_some_and(|end| end <= length);
        (is_inside && offset.is_multiple_of(width.bytes())).then_some(address + u64::from(offset))
    }
}

impl Registers for Mapped {
    fn read(&mut self, part: Part, offset: u32, width: Width) -> u32 {
        let Some(address) = self.address(part, offset, width) else { return u32::MAX };
        // SAFETY: the maker of this value promises that registers of a virtio device are mapped at
        // this address, which is aligned; reading them does not affect Rust's memory.
        unsafe {
            match width {
                Width::Byte => (address as *const u8).read_volatile().into(),
                Width::Half => (address as *const u16).read_volatile().into(),
                Width::Word => (address as *const u32).read_volatile(),
            }
        }
    }

    fn write(&mut self, part: Part, offset: u32, width: Width, value: u32) {
        let Some(address) = self.address(part, offset, width) else { return };
        // SAFETY: the maker of this value promises that registers of a virtio device are mapped at
        // this address, which is aligned. The device writes only to memory whose addresses the
        // driver has told it, and that memory is accessed as shared with a device.
        unsafe {
            match width {
                Width::Byte => (address as *mut u8).write_volatile(value as u8),
                Width::Half => (address as *mut u16).write_volatile(value as u16),
                Width::Word => (address as *mut u32).write_volatile(value),
            }
        }
    }

    fn length(&self, part: Part) -> u32 {
        self.parts[part as usize].1
    }

    fn notify_multiplier(&self) -> u32 {
        self.notify_multiplier
    }
}
