//! The memory that a driver of an input device and its client share.

use core::sync::atomic::AtomicU32;
use ring::Ring;

/// The size in bytes of the ring of events.
pub const RING: usize = 2048;

/// The structure of the shared memory.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Area {
    /// The ring of events, from driver to client.
    pub events: Ring<RING>,
    /// The lights that the client wants on.
    pub lights: AtomicU32,
}

/// The size in bytes of the memory that root shares for an area.
pub const SIZE: u64 = 4096;

const _: () = assert!(size_of::<Area>() <= SIZE as usize);
const _: () = assert!(core::mem::offset_of!(Area, lights) == 2112);

/// The area in memory that root shares between client and driver.
///
/// # Safety
/// At `address`, a multiple of 4096, there must be [`SIZE`] bytes of memory that stay mapped and
/// that programs use only as an area. All fields are atomic, and every content is valid, so the
/// other side need not be trusted.
#[allow(unsafe_code, reason = "the memory is root's, not a Rust object")]
pub unsafe fn at(address: u64) -> &'static Area {
    // SAFETY: the caller of this function promises that the area is mapped there.
    unsafe { &*(address as *const Area) }
}
