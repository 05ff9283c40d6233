//! The memory that a client shares with the driver.

use crate::SLOTS;
use crate::request::Slot;
use ring::lane::Lane;

/// The structure of the shared memory. If its lanes are empty, there are no requests and no
/// answers.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Area {
    /// The numbers of the slots with new requests.
    pub(crate) requests: Lane<SLOTS>,
    /// The numbers of the slots whose requests have ended (bits 0..32), with the number of the
    /// result (32..64).
    pub(crate) answers: Lane<SLOTS>,
    pub(crate) slots: [Slot; SLOTS],
}

impl Default for Area {
    fn default() -> Area {
        let slots = core::array::from_fn(|_| Slot::default());
        Area { requests: Lane::default(), answers: Lane::default(), slots }
    }
}

impl Area {
    /// Makes the area as it is for a new driver. The earlier one must have ended.
    pub(crate) fn clear(&self) {
        [&self.requests, &self.answers].into_iter().for_each(Lane::clear);
    }
}

/// The size in bytes of the memory that root shares for an area.
pub const SIZE: u64 = 32 << 10;

#[cfg(not(loom))]
const _: () = assert!(size_of::<Area>() <= SIZE as usize);

/// The area in memory that root shares between client and driver.
///
/// # Safety
/// At `address`, a multiple of 4096, there must be [`SIZE`] bytes of memory that stay mapped and
/// that programs use only as an area. All fields are atomic, and every content is valid, so the
/// other side need not be trusted.
#[cfg(not(loom))]
#[allow(unsafe_code, reason = "the memory is root's, not a Rust object")]
pub unsafe fn at(address: u64) -> &'static Area {
    // SAFETY: the caller of this function promises that the area is mapped there.
    unsafe { &*(address as *const Area) }
}
