//! The places of a device's registers, as capabilities of its PCI function describe them (4.1.4).

use crate::Error;
use crate::registers::Part;

/// The offset in configuration space of the word with the status register, and the bit of that word
/// that says that the function has a list of capabilities.
const STATUS: u8 = 4;
const HAS_CAPABILITIES: u32 = 1 << 20;
/// The offset in configuration space of the pointer to the first capability.
const FIRST: u8 = 0x34;
/// The identifier of a capability that the vendor defines.
const VENDOR: u8 = 9;
/// The most capabilities that fit into configuration space. A longer list has a loop.
const MOST: usize = 48;
/// The highest offset at which a capability of 16 bytes fits, and the highest for one of 20 bytes.
/// The capability of the notification registers has 20, because it has their distance too.
const LAST: u8 = 0xf0;
const LAST_NOTIFY: u8 = 0xec;

/// The place of one part of the registers: a range in the memory of a base address register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The number of the base address register, 0 to 5.
    pub base_address: u8,
    /// The offset of the part in the memory of the base address register, in bytes.
    pub offset: u32,
    /// The length of the part in bytes; 0: the device does not have the part.
    pub length: u32,
}

/// The places of all parts of a device's registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    parts: [Place; Part::ALL.len()],
    /// The distance in bytes of the registers at which queues are notified.
    pub notify_multiplier: u32,
}

/// The least length in bytes of each part that a device must have. In the common part, the last
/// registers that the library uses are those with the addresses of a queue's rings.
const LEAST: [(Part, u32); 3] = [(Part::Common, 0x38), (Part::Notify, 2), (Part::Interrupt, 1)];

impl Places {
    /// Finds the places of all parts. `read` reads the 32-bit word at an offset in configuration
    /// space, a multiple of 4. If the device has several places for one part, the first counts,
    /// which is the one that the device prefers.
    ///
    /// # Errors
    /// `NotModern`: a part is missing or too small. An error of `read` is returned as it is.
    pub fn find(mut read: impl FnMut(u8) -> Result<u32, Error>) -> Result<Places, Error> {
        let mut places = Places::default();
        if read(STATUS)? & HAS_CAPABILITIES == 0 {
            return Err(Error::NotModern);
        }
        let mut at = read(FIRST)? as u8 & 0xfc;
        for _ in 0..MOST {
            if at < 0x40 {
                break;
            }
            let word = read(at)?;
            if word as u8 == VENDOR && at <= LAST {
                places.take(at, (word >> 24) as u8, &mut read)?;
            }
            at = (word >> 8) as u8 & 0xfc;
        }
        match LEAST.iter().all(|&(part, least)| places.of(part).length >= least) {
            true => Ok(places),
            false => Err(Error::NotModern),
        }
    }

    /// Records the place of a part from the capability at `at`, if it is one for a part that has no
    /// place yet.
    fn take(
        &mut self,
        at: u8,
        kind: u8,
        read: &mut impl FnMut(u8) -> Result<u32, Error>,
    ) -> Result<(), Error> {
        let Some(part) = Part::ALL.into_iter().find(|&part| part as u8 + 1 == kind) else { return Ok(()) };
        let base_address = read(at + 4)? as u8;
        let (offset, length) = (read(at + 8)?, read(at + 12)?);
        let is_known = self.of(part).length != 0;
        if is_known || base_address > 5 || offset.checked_add(length).is_none() {
            return Ok(());
        }
        if part == Part::Notify {
            if at > LAST_NOTIFY {
                return Ok(());
            }
            self.notify_multiplier = read(at + 16)?;
        }
        self.parts[part as usize] = Place { base_address, offset, length };
        Ok(())
    }

    /// The place of the registers of `part`.
    pub fn of(&self, part: Part) -> Place {
        self.parts[part as usize]
    }
}
