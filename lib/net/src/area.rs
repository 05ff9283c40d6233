//! The memory that a client shares with the driver.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};

use crate::BUFFERS;
use ring::lane::Lane;

/// The structure of the shared memory. If it is all zero, the driver has no buffers, and the link
/// is down.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Area {
    /// Buffers of frames to send.
    pub(crate) to_send: Lane<BUFFERS>,
    /// The first buffers of frames that were sent.
    pub(crate) sent: Lane<BUFFERS>,
    /// Empty buffers.
    pub(crate) to_fill: Lane<BUFFERS>,
    /// Buffers that the device has filled, with how many bytes.
    pub(crate) filled: Lane<BUFFERS>,
    /// Whether the link is up.
    pub(crate) link: AtomicU32,
}

impl Area {
    /// Makes the area as it is for a new driver. The earlier one must have ended.
    pub(crate) fn clear(&self) {
        [&self.to_send, &self.sent, &self.to_fill, &self.filled].into_iter().for_each(Lane::clear);
        self.link.store(0, Ordering::Relaxed);
    }
}

/// The size in bytes of the memory that root shares for an area.
pub const SIZE: u64 = 16 << 10;

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
