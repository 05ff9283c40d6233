//! The memory that the console's driver and its client share.

use core::sync::atomic::AtomicU32;
use ring::Ring;

/// The size in bytes of the ring of output, which is on its way to the serial port.
pub const OUTPUT: usize = 8192;
/// The size in bytes of the ring of input, which has come from the serial port.
pub const INPUT: usize = 4096;

/// The structure of the shared memory.
#[repr(C)]
#[derive(Debug)]
pub struct Area {
    /// The ring from client to driver.
    pub output: Ring<OUTPUT>,
    /// The ring from driver to client.
    pub input: Ring<INPUT>,
    /// How many bytes of input were lost because the client had not read earlier ones in time.
    pub lost: AtomicU32,
    /// The number of the driver's console that is visible; 0: the driver has only one.
    pub visible: AtomicU32,
    /// The number of the console that the client wants visible; 0: there is no such wish. The
    /// driver takes the wish by setting it to 0.
    pub wanted: AtomicU32,
    /// The locks of the keyboard that are on: bits 0 Scroll Lock, 1 Num Lock, 2 Caps Lock.
    pub locks: AtomicU32,
}

/// The size in bytes of the memory that root shares for an area.
pub const SIZE: u64 = 16 << 10;

const _: () = assert!(size_of::<Area>() <= SIZE as usize);

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
