//! The parts of a device's registers, as capabilities of its PCI function tell them (4.1.4).

use crate::Error;
use crate::registers::Part;

/// Offset in configuration space of the status register's word, and the bit in that word that says
/// that there are capabilities.
const STATUS: u8 = 4;
const HAS_CAPABILITIES: u32 = 1 << 20;
/// Offset in configuration space of the pointer to the first capability.
const FIRST: u8 = 0x34;
/// The identifier of a capability that the vendor defines.
const VENDOR: u8 = 9;
/// The most capabilities that fit into configuration space: a list that is longer has a loop.
const MOST: usize = 48;
/// The highest offset of a capability of 16 bytes, and of one of 20 bytes, which says how far the
/// registers of notification are apart.
const LAST: u8 = 0xf0;
const LAST_NOTIFY: u8 = 0xec;

/// The registers of one part: a range in the memory of a base address register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The number of the base address register, 0 to 5.
    pub base_address: u8,
    /// The offset in bytes of the part in the memory of the base address register.
    pub offset: u32,
    /// How many bytes the part takes; 0: there is no such part.
    pub length: u32,
}

/// Where a device has the parts of its registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    parts: [Place; Part::ALL.len()],
    /// The distance in bytes of the registers at which queues are notified.
    pub notify_multiplier: u32,
}

/// The least bytes that each part must have: the registers of a queue's rings are the last that the
/// library uses in the common part.
const LEAST: [(Part, u32); 3] = [(Part::Common, 0x38), (Part::Notify, 2), (Part::Interrupt, 1)];

impl Places {
    /// Finds the parts. `read` reads the word of 32 bits at an offset in configuration space, which
    /// is a multiple of 4. If there are several places for one part, the first is the one that the
    /// device prefers.
    ///
    /// # Errors
    /// `NotModern`: a part is missing or too small.
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

    /// Takes the place of a part from the capability at `at`, unless it is of another kind.
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

    /// The place of a part.
    pub fn of(&self, part: Part) -> Place {
        self.parts[part as usize]
    }
}
